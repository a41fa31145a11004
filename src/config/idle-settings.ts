import type { EndpointSignal, PluginDefinition, PluginKind } from '../scheduling/plugin.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedConfiguration } from './load.js';
import type { EngineConfig } from './plugins/core-metrics-extractor.js';
import type { EndpointPickerConfig } from './schema.js';

/** Signals that an engine reports. */
export type EngineSignals = Pick<
  EngineConfig,
  'name' | 'queuedRequestsSpec' | 'runningRequestsSpec' | 'kvUsageSpec' | 'loraSpec'
>;

/** Inputs of the search for settings without effect. */
export interface IdleContext {
  readonly document: ConfigurationDocument;
  readonly config: EndpointPickerConfig;
  readonly configuration: LoadedConfiguration;
  readonly registry: readonly PluginDefinition[];
  /** Engines whose metrics are known without being configured. */
  readonly engines: readonly EngineSignals[];
}

/**
 * Kinds without effect unless another part of the configuration refers to them. All others act by being in `plugins`.
 */
const REFERRED_KINDS: ReadonlySet<PluginKind> = new Set([
  'filter',
  'scorer',
  'picker',
  'decider',
  'parser',
  'discovery',
  'data-source',
  'extractor',
  'saturation-detector',
  'ordering-policy',
  'fairness-policy',
  'usage-limit-policy',
]);

/** Field of an engine's configuration that names the metric of a signal. */
const SPEC_OF_SIGNAL: Readonly<Record<EndpointSignal, keyof EngineSignals>> = {
  'waiting requests': 'queuedRequestsSpec',
  'running requests': 'runningRequestsSpec',
  'KV usage': 'kvUsageSpec',
  'LoRA adapters': 'loraSpec',
};

/** One line with its place for each setting of a valid configuration that has no effect. */
export function idleSettings(context: IdleContext): readonly string[] {
  return [
    ...unreferencedPlugins(context),
    ...unusedProducers(context),
    ...scorersWithoutSignal(context),
    ...unwrittenAttributes(context),
    ...idleScores(context),
    ...negativeWeights(context),
    ...parsersBehindTheLast(context),
  ];
}

interface UsedPlugin {
  readonly name: string;
  readonly definition: PluginDefinition;
  readonly parameters: unknown;
  /** Position in the file; undefined = added by default. */
  readonly path: Path | undefined;
}

function usedPlugins(context: IdleContext): readonly UsedPlugin[] {
  const { config, registry } = context;
  return context.configuration.effective.plugins.flatMap(({ type, name, parameters }) => {
    const definition = registry.find((candidate) => candidate.type === type);
    if (definition === undefined) return [];
    const index = config.plugins.findIndex((entry) => (entry.name || entry.type) === name);
    return [{ name, definition, parameters, path: index < 0 ? undefined : ['plugins', index] }];
  });
}

function unreferencedPlugins(context: IdleContext): readonly string[] {
  const { plugins: _plugins, ...sections } = context.configuration.effective;
  const all = usedPlugins(context);
  return all.flatMap(({ name, definition, path }) => {
    const acts =
      definition.topologyLabels !== undefined ||
      definition.sessionSettings !== undefined ||
      !definition.kinds.every((kind) => REFERRED_KINDS.has(kind));
    if (path === undefined || acts) return [];
    const elsewhere = all.filter((other) => other.name !== name).map(({ parameters }) => parameters);
    if (mentions([sections, elsewhere], name)) return [];
    const kinds = definition.kinds.join(' and ');
    return [context.document.warning(path, `"${name}" is a ${kinds} that nothing refers to: it has no effect`)];
  });
}

/** Whether a text stands anywhere in a value. */
function mentions(value: unknown, text: string): boolean {
  if (value === null || typeof value !== 'object') return value === text;
  return Object.values(value).some((item) => mentions(item, text));
}

function unusedProducers(context: IdleContext): readonly string[] {
  const all = usedPlugins(context);
  const needs = all.flatMap(({ definition, parameters }) => definition.consumes?.(parameters) ?? []);
  return all.flatMap(({ name, definition, path }) => {
    const produced = definition.produces ?? [];
    const onlyProduces = definition.kinds.every((kind) => kind === 'producer');
    if (path === undefined || produced.length === 0 || !onlyProduces) return [];
    const wanted = needs.some(({ key, producer }) => produced.includes(key) && (producer || name) === name);
    if (wanted) return [];
    const text = `"${name}" produces ${produced.join(' and ')}, which nothing takes from it: it has no effect`;
    return [context.document.warning(path, text)];
  });
}

function scorersWithoutSignal(context: IdleContext): readonly string[] {
  const { metricsSource, extractor } = context.configuration;
  const engines: readonly EngineSignals[] = [...extractor.engineConfigs, ...context.engines];
  const engine = engines.find(({ name }) => name === extractor.defaultEngine);
  return usedPlugins(context).flatMap(({ name, definition, path }) => {
    const signals = definition.signals ?? [];
    const missing = signals.filter((signal) => !metricsSource.enabled || !engine?.[SPEC_OF_SIGNAL[signal]]);
    if (path === undefined || missing.length === 0 || missing.length < signals.length) return [];
    const why = metricsSource.enabled ? `the default engine "${engine?.name}" does not tell` : 'nothing fetches';
    const left = definition.consumes === undefined ? 'all endpoints are alike to it' : 'it goes by what else it reads';
    const text = `"${name}" reads ${missing.join(' and ')}, which ${why}: ${left}`;
    return [context.document.warning(path, text)];
  });
}

/** Attributes that filters and scorers read and no source tells. */
function unwrittenAttributes({ document, configuration }: IdleContext): readonly string[] {
  const { scheduling, extractor, attributeSources } = configuration;
  const written = new Set([
    ...extractor.engineConfigs.flatMap(({ customMetrics }) => customMetrics.map(({ attributeKey }) => attributeKey)),
    ...attributeSources.flatMap(({ metrics }) => metrics.map(({ attribute }) => attribute)),
  ]);
  return scheduling.attributes
    .filter((attribute) => !written.has(attribute))
    .map((attribute) =>
      document.warning(['plugins'], `nothing tells the attribute "${attribute}": it is unknown of all endpoints`),
    );
}

/** Warnings about scores that no picker reads, and about weights that switch a scorer off. */
function idleScores(context: IdleContext): readonly string[] {
  const { document, config, configuration } = context;
  return configuration.scheduling.profiles.flatMap(({ name, operations }, profile) => {
    const path: Path = config.schedulingProfiles.length === 0 ? ['plugins'] : ['schedulingProfiles', profile];
    const scorers = operations.filter(({ code }) => code.startsWith('OP_SCORE_'));
    const picker = operations.find(({ code }) => code.startsWith('OP_PICK_'));
    const texts = scorers
      .filter(({ weight }) => weight === 0)
      .map((scorer) => `"${scorer.name}" has weight 0 in profile "${name}": its scores do not count`);
    if (picker?.code === 'OP_PICK_RANDOM' && scorers.length > 0) {
      const names = scorers.map((scorer) => `"${scorer.name}"`).join(', ');
      texts.push(`"${picker.name}" of profile "${name}" picks at random: the scores of ${names} have no effect`);
    }
    return texts.map((text) => document.warning(path, text));
  });
}

/** llm-d-router takes them as well; they turn a preference around, which is seldom meant. */
function negativeWeights({ document, config }: IdleContext): readonly string[] {
  return config.schedulingProfiles.flatMap(({ plugins }, profile) =>
    plugins.flatMap(({ pluginRef, weight }, position) => {
      if (weight === undefined || weight >= 0) return [];
      const path = ['schedulingProfiles', profile, 'plugins', position, 'weight'];
      return [
        document.warning(path, `${weight} is negative: "${pluginRef}" prefers the endpoints that it scores lowest`),
      ];
    }),
  );
}

/** A parser that takes everything ends the list. */
function parsersBehindTheLast({ document, config, configuration }: IdleContext): readonly string[] {
  const last = configuration.parsers.indexOf('passthrough-parser');
  if (last < 0) return [];
  return (config.requestHandler?.parsers ?? []).slice(last + 1).map(({ pluginRef }, behind) => {
    const path = ['requestHandler', 'parsers', last + 1 + behind, 'pluginRef'];
    return document.warning(path, `"${pluginRef}" stands behind a parser that takes every request: it is never asked`);
  });
}
