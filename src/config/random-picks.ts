import type { CompiledScheduling } from '../scheduling/program.js';
import { DEFAULT_SCORERS } from './default-configuration.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { EndpointPickerConfig } from './schema.js';

const SCORE_PICKERS: ReadonlySet<string> = new Set(['OP_PICK_MAX_SCORE', 'OP_PICK_WEIGHTED_RANDOM']);

/**
 * One warning for each profile whose picker goes by scores and that has no scorer. Such picks cost hits of the KV
 * cache.
 */
export function randomPicks(
  { profiles }: CompiledScheduling,
  config: EndpointPickerConfig,
  document: ConfigurationDocument,
): readonly string[] {
  return profiles.flatMap(({ name, operations }, profile) => {
    const picker = operations.find(({ code }) => code.startsWith('OP_PICK_'));
    const hasScorer = operations.some(({ code }) => code.startsWith('OP_SCORE_'));
    if (picker === undefined || !SCORE_PICKERS.has(picker.code) || hasScorer) return [];
    const path: Path = config.schedulingProfiles.length === 0 ? ['plugins'] : ['schedulingProfiles', profile];
    const text = `profile "${name}" has no scorer: "${picker.name}" picks at random; ${scorerAdvice(config)}`;
    return [document.warning(path, text)];
  });
}

/** How a profile gets scorers: by their entries alone where the file names no profiles. */
function scorerAdvice(config: EndpointPickerConfig): string {
  const types = DEFAULT_SCORERS.map(([type, weight]) => `${type} (weight ${weight})`).join(', ');
  return config.schedulingProfiles.length === 0
    ? `name scorers in plugins, and their weights in schedulingProfiles; without a configuration they are ${types}`
    : `name scorers in plugins and refer to them in the profile; without a configuration they are ${types}`;
}
