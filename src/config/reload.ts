import type { PluginDefinition, PluginKind } from '../scheduling/plugin.js';
import { PLAIN_BLOCK_TOKENS } from '../scheduling/prompt-sizes.js';
import type { LoadedConfiguration } from './load.js';

/** Plan of a running picker for a new configuration. */
export interface ReloadPlan {
  /** True when the two configurations differ. */
  readonly changed: boolean;
  /** Changes that need a restart, a few words each. Empty = the new configuration can replace the old one. */
  readonly restart: readonly string[];
}

/** Plugins of these kinds are compiled to programs or to settings that shards and queues take while they run. */
const LIVE_KINDS: ReadonlySet<PluginKind> = new Set([
  'filter',
  'scorer',
  'picker',
  'producer',
  'parser',
  'saturation-detector',
  'fairness-policy',
  'ordering-policy',
  'usage-limit-policy',
]);

/** Parts of the compiled scheduling that a reload carries over. A change of any other part needs a restart. */
const LIVE_PARTS: ReadonlySet<string> = new Set(['profiles', 'masks', 'prefix', 'estimateOutput', 'prefixProducer']);

/** Compares the running configuration with a new one. */
export function planReload(
  running: LoadedConfiguration,
  next: LoadedConfiguration,
  registry: readonly PluginDefinition[],
): ReloadPlan {
  const restart = [
    ...changedPlugins(running, next, registry),
    ...changedProfiles(running, next),
    ...changedParts(running, next),
  ];
  return { changed: !same(running.effective, next.effective), restart };
}

function changedPlugins(
  running: LoadedConfiguration,
  next: LoadedConfiguration,
  registry: readonly PluginDefinition[],
): readonly string[] {
  const before = standingPlugins(running, registry);
  const after = standingPlugins(next, registry);
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].flatMap((name) => {
    const [old, now] = [before.get(name), after.get(name)];
    if (same(old, now)) return [];
    const what = old === undefined ? 'is new' : now === undefined ? 'is gone' : 'has changed';
    return [`plugin "${name}" (${(now ?? old)!.type}) ${what}`];
  });
}

/** Plugins that are set up once, when the picker starts. */
function standingPlugins({ effective }: LoadedConfiguration, registry: readonly PluginDefinition[]) {
  const plugins = effective.plugins.filter(({ type }) => {
    const kinds = registry.find((definition) => definition.type === type)?.kinds ?? [];
    return !kinds.every((kind) => LIVE_KINDS.has(kind));
  });
  return new Map(plugins.map((plugin) => [plugin.name, plugin]));
}

/**
 * A handler knows its profiles by name and the core by number, so only the one profile of a configuration may be
 * renamed.
 */
function changedProfiles(running: LoadedConfiguration, next: LoadedConfiguration): readonly string[] {
  const [before, after] = [profileNames(running), profileNames(next)];
  if (before.length === 1 && after.length === 1) return [];
  return same(before, after) ? [] : ['schedulingProfiles has other profiles'];
}

function profileNames({ scheduling }: LoadedConfiguration): readonly string[] {
  return scheduling.profiles.map(({ name }) => name);
}

function changedParts(running: LoadedConfiguration, next: LoadedConfiguration): readonly string[] {
  const differs = (read: (configuration: LoadedConfiguration) => unknown) => !same(read(running), read(next));
  return [
    ...(differs(({ discovery }) => discovery) ? ['dataLayer.discovery has changed'] : []),
    ...(differs((each) => [each.metricsSource, each.extractor, each.attributeSources, each.modelsSource])
      ? ['dataLayer.sources has changed']
      : []),
    ...changedGates(running, next),
    ...(differs(({ replication }) => replication) ? ['replication has changed'] : []),
    ...(differs(blockTokens) ? ['the size of prefix blocks has changed'] : []),
    ...(differs(standingParts) ? ['plugins that run on the shards have changed'] : []),
  ];
}

/** flowControl needs a restart too: shards and core lay out waits and gate once. */
function changedGates(running: LoadedConfiguration, next: LoadedConfiguration): readonly string[] {
  const changed = [...next.gates].filter(([name, on]) => running.gates.get(name) !== on);
  return changed.map(([name, on]) => `feature gate ${name} has been turned ${on ? 'on' : 'off'}`);
}

function blockTokens({ scheduling }: LoadedConfiguration): number {
  return scheduling.prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS;
}

function standingParts({ scheduling }: LoadedConfiguration): unknown {
  return Object.entries(scheduling).filter(([part]) => !LIVE_PARTS.has(part));
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
