import type { CompiledScheduling, HookPluginSettings } from '../scheduling/program.js';
import type { LoadedConfiguration } from './load.js';

type Scheduling = Pick<LoadedConfiguration, 'scheduling'>;

/**
 * Reasons why the profiles of a configuration cannot decide in shadow beside the running one, a few words each; empty =
 * they can. Its profiles read the columns, the prefix index and the hook plugins of the running one, which are set up
 * once. Only the profiles decide: discovery, data sources, parsers and flow control of the candidate are not looked at.
 */
export function candidateRefusals(running: Scheduling, candidate: Scheduling): readonly string[] {
  const [now, next] = [running.scheduling, candidate.scheduling];
  return [
    ...otherProfiles(now, next),
    ...(same(now.handler, next.handler) ? [] : ['it has another profile handler']),
    ...otherPrefix(now, next),
    ...table('label', keysOf(now), keysOf(next)),
    ...table('request header', now.requestKeys, next.requestKeys),
    ...table('attribute', now.attributes, next.attributes),
    ...(next.baseModels.length === 0 || same(now.baseModels, next.baseModels) ? [] : ['it names other base models']),
    ...(next.prediction === undefined || same(now.prediction, next.prediction)
      ? []
      : ['it predicts latency in another way than the running configuration']),
    ...next.host.flatMap((plugin) => otherHook(now.host, plugin)),
  ];
}

/**
 * The handler knows its profiles by name and the core by number, so only the one profile of a configuration may be
 * renamed.
 */
function otherProfiles(now: CompiledScheduling, next: CompiledScheduling): string[] {
  const [before, after] = [now, next].map(({ profiles }) => profiles.map(({ name }) => name));
  if (before!.length === 1 && after!.length === 1) return [];
  return same(before, after) ? [] : ['schedulingProfiles has other profiles'];
}

function otherPrefix({ prefix: now }: CompiledScheduling, { prefix: next }: CompiledScheduling): string[] {
  if (next === undefined) return [];
  if (now === undefined) {
    return ['it reads prefix matches, and the running configuration keeps no prefix index: add its producer there'];
  }
  return now.blockTokens === next.blockTokens ? [] : ['the size of prefix blocks differs'];
}

/**
 * A program names an entry by its position, so the candidate's entries must be the first ones of the running
 * configuration.
 */
function table(what: string, now: readonly string[], next: readonly string[]): string[] {
  const other = next.find((entry, i) => now[i] !== entry);
  return other === undefined
    ? []
    : [`it reads the ${what} ${JSON.stringify(other)}, which the running one does not keep`];
}

function keysOf({ labels }: CompiledScheduling): string[] {
  return labels.map(({ key }) => key);
}

/**
 * Hook plugins run once for each request, in the running configuration; a candidate reads the columns that they fill
 * there.
 */
function otherHook(now: readonly HookPluginSettings[], plugin: HookPluginSettings): string[] {
  if (now.some((running) => same(running, plugin))) return [];
  return [`the hook plugin ${JSON.stringify(plugin.name)} does not run in the same way in the running configuration`];
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
