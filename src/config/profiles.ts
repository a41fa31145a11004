import type { ProfilePlugin } from '../scheduling/compile.js';
import { singleProfileHandler } from '../scheduling/profile-handlers/single-profile-handler.js';
import { DEFAULT_SCORERS } from './default-configuration.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import type { EndpointPickerConfig } from './schema.js';

const PROFILE_KINDS = ['filter', 'scorer', 'picker'] as const;
/** Kinds of plugins that llm-d-router accepts in a profile without effect. */
const IDLE_KINDS = [
  'producer',
  'profile-handler',
  'decider',
  'parser',
  'data-source',
  'extractor',
  'discovery',
  'peer-discovery',
  'replica-syncer',
  'eviction-policy',
  'responder',
  'header-processor',
  'screener',
  'admitter',
  'reporter',
  'scheduler',
] as const;

export interface ResolvedProfile {
  readonly name: string;
  readonly plugins: readonly ProfilePlugin[];
}

interface ProfileMember extends ProfilePlugin {
  readonly path: Path;
}

/**
 * The profiles with their plugins; without any, one profile `default` of every filter, scorer and picker in the order
 * of the file. Where the file names no plugin at all, that profile has the default scorers. A profile without a
 * picker gets the first configured one, else `max-score-picker`.
 */
export function resolveProfiles(
  config: EndpointPickerConfig,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): readonly ResolvedProfile[] {
  const scorers = addDefaultScorers(config, plugins);
  if (plugins.list('picker').length === 0) plugins.ensure('max-score-picker');
  if (config.schedulingProfiles.length === 0) {
    const members = plugins
      .list()
      .filter((plugin) => isProfilePlugin(plugin))
      .map((plugin) => ({ ...plugin, weight: scorers.get(plugin.name) ?? 1, path: plugin.path ?? [] }));
    return [completeProfile('default', members, plugins, document)];
  }
  const names = new Set<string>();
  return config.schedulingProfiles.map((profile, index) => {
    const path = ['schedulingProfiles', index];
    if (names.has(profile.name)) {
      throw document.error([...path, 'name'], `profile "${profile.name}" is defined twice: rename or remove one`);
    }
    names.add(profile.name);
    const members = profile.plugins.flatMap((reference, position) =>
      resolveMember(reference, [...path, 'plugins', position], plugins, document, warnings),
    );
    return completeProfile(profile.name, members, plugins, document);
  });
}

/**
 * Adds the default scorers to a configuration that names neither a profile nor a plugin: who only turns on a feature
 * gate has not asked for random picks. With any plugin the profile holds what is named, as in llm-d-router.
 * @returns weights of the added ones by name
 */
function addDefaultScorers(config: EndpointPickerConfig, plugins: PluginSet): ReadonlyMap<string, number> {
  if (config.schedulingProfiles.length > 0 || config.plugins.length > 0) return new Map();
  return new Map(DEFAULT_SCORERS.map(([type, weight]) => [plugins.ensure(type).name, weight] as const));
}

/** Exactly one profile handler, fit for the number of profiles; added when there is one profile and no handler. */
export function resolveProfileHandler(
  profiles: readonly ResolvedProfile[],
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): LoadedPlugin {
  const [first, second] = plugins.list('profile-handler');
  if (first !== undefined && second !== undefined) {
    throw document.error(
      second.path ?? [],
      `"${second.name}" is a second profile handler beside "${first.name}": remove one`,
    );
  }
  const names = profiles.map((profile) => `"${profile.name}"`).join(', ');
  if (first === undefined) {
    if (profiles.length === 1) return plugins.ensure(singleProfileHandler.type);
    throw document.error(['schedulingProfiles'], `profiles ${names} need a profile handler: add one to plugins`);
  }
  if (first.definition === singleProfileHandler && profiles.length > 1) {
    throw document.error(
      ['schedulingProfiles'],
      `"${first.name}" runs one profile, but there are ${profiles.length}: ${names}; keep one profile`,
    );
  }
  const { definition, parameters, path } = first;
  const advice = definition.handlerAdvice?.(
    parameters,
    profiles.map((profile) => profile.name),
  );
  for (const text of advice ?? []) warnings.push(document.warning(path ?? [], `${first.name}: ${text}`));
  return first;
}

/** Resolves the plugin that replaces the profiles, at most one; profiles beside it are warned about. */
export function resolveCustomScheduler(
  config: EndpointPickerConfig,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): void {
  const [first, second] = plugins.list('scheduler');
  if (first !== undefined && second !== undefined) {
    throw document.error(
      second.path ?? [],
      `"${second.name}" is a second scheduler beside "${first.name}": remove one`,
    );
  }
  if (first !== undefined && config.schedulingProfiles.length > 0) {
    const text = `the scheduler "${first.name}" decides: the profiles are used only where it asks for them or fails`;
    warnings.push(document.warning(['schedulingProfiles'], text));
  }
}

function isProfilePlugin({ definition }: LoadedPlugin): boolean {
  return PROFILE_KINDS.some((kind) => definition.kinds.includes(kind));
}

function resolveMember(
  reference: { readonly pluginRef: string; readonly weight?: number | undefined },
  path: Path,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): readonly ProfileMember[] {
  const plugin = plugins.resolve(reference.pluginRef, [...PROFILE_KINDS, ...IDLE_KINDS], [...path, 'pluginRef']);
  if (!isProfilePlugin(plugin)) {
    const text = `"${plugin.name}" is a ${plugin.definition.kinds.join(' and ')}: it has no effect in a profile`;
    warnings.push(document.warning([...path, 'pluginRef'], text));
    return [];
  }
  if (reference.weight !== undefined && !plugin.definition.kinds.includes('scorer')) {
    const kinds = plugin.definition.kinds.join(' and ');
    const text = `"${plugin.name}" is a ${kinds}: only scorers have a weight, it is ignored`;
    warnings.push(document.warning([...path, 'weight'], text));
  }
  return [{ ...plugin, weight: reference.weight ?? 1, path }];
}

function completeProfile(
  name: string,
  members: readonly ProfileMember[],
  plugins: PluginSet,
  document: ConfigurationDocument,
): ResolvedProfile {
  const [first, second] = members.filter((plugin) => plugin.definition.kinds.includes('picker'));
  if (first !== undefined && second !== undefined) {
    const text = `profile "${name}" has two pickers, "${first.name}" and "${second.name}": keep one`;
    throw document.error(second.path, text);
  }
  if (first !== undefined) return { name, plugins: members };
  return { name, plugins: [...members, { ...plugins.list('picker')[0]!, weight: 1 }] };
}
