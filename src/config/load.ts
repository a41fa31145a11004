import { resolve } from 'node:path';
import type { FlowControlSettings } from '../contract/queue-settings.js';
import type { SaturationSettings } from '../contract/saturation-settings.js';
import { DEFAULT_PARSERS, isParserName } from '../request/dialects.js';
import { readUtf8Text, TEXT_BYTES_MAX } from '../runtime/plain-file.js';
import { readProblem } from '../runtime/read-problem.js';
import { compileScheduling, sharedPrefixSettings } from '../scheduling/compile.js';
import { ProgramTooLarge } from '../scheduling/core-tables.js';
import { MissingProducer, missingProducers } from '../scheduling/data-graph.js';
import type { PluginDefinition } from '../scheduling/plugin.js';
import type { CompiledScheduling } from '../scheduling/program.js';
import { type AdaptationSettings, idleLearning, resolveAdaptation } from './adaptation.js';
import { readVersioned } from './api-versions.js';
import type { AttributeSourceSettings, PageSettings } from './attribute-sources.js';
import {
  type DiscoverySettings,
  type ExtractorSettings,
  type MetricsSourceSettings,
  resolveDataLayer,
} from './data-layer.js';
import { DEFAULT_CONFIGURATION } from './default-configuration.js';
import { ConfigurationDocument } from './document.js';
import { type EffectiveConfiguration, effectiveConfiguration } from './effective-configuration.js';
import { ConfigurationError } from './error.js';
import { type GateEntry, resolveFeatureGates } from './feature-gates.js';
import { resolveFlowControl } from './flow-control.js';
import { type LoadedPlugin, type NamedFile, PluginSet } from './plugin-set.js';
import { type ResolvedProfile, resolveCustomScheduler, resolveProfileHandler, resolveProfiles } from './profiles.js';
import { randomPicks } from './random-picks.js';
import { type ReplicationConfig, resolveReplication } from './replication.js';
import { resolveSaturationDetector, saturationSettings } from './saturation.js';
import type { EndpointPickerConfig } from './schema.js';

/** The configured parsers, else the default ones. */
function resolveParsers(config: EndpointPickerConfig, plugins: PluginSet): readonly LoadedPlugin[] {
  const listed = config.requestHandler?.parsers ?? [];
  if (listed.length === 0) return DEFAULT_PARSERS.map((type) => plugins.ensure(type));
  return listed.map(({ pluginRef }, index) => {
    // A parser need not be listed in plugins to be named by its type.
    if (isParserName(pluginRef)) plugins.ensure(pluginRef);
    return plugins.resolve(pluginRef, ['parser'], ['requestHandler', 'parsers', index, 'pluginRef']);
  });
}

/** Source of the configuration; neither = the default configuration. */
export interface ConfigurationSource {
  readonly file?: string | undefined;
  readonly text?: string | undefined;
}

export interface LoadOptions {
  /** Whether plugins of Alpha stability are loaded. */
  readonly allowExperimental: boolean;
  readonly registry: readonly PluginDefinition[];
  /** Feature gates before those of the configuration. */
  readonly featureGates?: readonly GateEntry[] | undefined;
  /** Endpoints file that replaces `dataLayer.discovery`. */
  readonly endpointsFile?: string | undefined;
}

/** A checked configuration with every default filled in. */
export interface LoadedConfiguration {
  readonly scheduling: CompiledScheduling;
  /** Types of the parsers in the order in which they are asked. */
  readonly parsers: readonly string[];
  readonly discovery: DiscoverySettings | undefined;
  readonly metricsSource: MetricsSourceSettings;
  readonly extractor: ExtractorSettings;
  readonly attributeSources: readonly AttributeSourceSettings[];
  /** Undefined = endpoints are not asked for their models. */
  readonly modelsSource: PageSettings | undefined;
  readonly saturationDetector: SaturationSettings | undefined;
  readonly adaptation: AdaptationSettings;
  /** Settings of replication; undefined = the configuration has none. */
  readonly replication: ReplicationConfig | undefined;
  /** Settings of the queues; undefined = the feature gate is off and no request waits. */
  readonly flowControl: FlowControlSettings | undefined;
  readonly gates: ReadonlyMap<string, boolean>;
  /** Files and folders that the parameters of plugins name. */
  readonly files: readonly NamedFile[];
  /** Name and type of every plugin, those added by default behind the others. */
  readonly plugins: readonly { readonly name: string; readonly type: string }[];
  /** One line each, to be logged once. */
  readonly warnings: readonly string[];
  /** One warning for each profile that picks at random for want of scorers; no part of `warnings`. */
  readonly randomPicks: readonly string[];
  /** Conversions to the newest version, one line each, to be logged once; nothing to be done about. */
  readonly notes: readonly string[];
  readonly effective: EffectiveConfiguration;
}

/**
 * What a running picker says of its configuration: deprecated fields, and picks at random where no profile has a
 * scorer. Beside profiles that have, one without may be meant, as that of encoders.
 */
export function runningWarnings({ warnings, randomPicks: picks, scheduling }: LoadedConfiguration): readonly string[] {
  return picks.length < scheduling.profiles.length ? warnings : [...warnings, ...picks];
}

/**
 * Loads, checks and compiles a configuration. Throws ConfigurationError, whose message is one line with place, field,
 * fault and remedy.
 */
export function loadConfiguration(source: ConfigurationSource, options: LoadOptions): LoadedConfiguration {
  return loadDocument(readDocument(source), options);
}

/** As `loadConfiguration`, of a document that has been read already. */
export function loadDocument(document: ConfigurationDocument, options: LoadOptions): LoadedConfiguration {
  const { config, notes, ...versioned } = readVersioned(document);
  const warnings = [...versioned.warnings];
  const gates = resolveFeatureGates(config.featureGates, options.featureGates ?? [], document);
  const plugins = new PluginSet(document, options.registry, options.allowExperimental);
  plugins.load(config.plugins);

  const profiles = resolveProfiles(config, plugins, document, warnings);
  const handler = resolveProfileHandler(profiles, plugins, document, warnings);
  resolveReferences(plugins);
  resolveCustomScheduler(config, plugins, document, warnings);
  const flowControlOn = gates.get('flowControl') ?? false;
  const detector = resolveSaturationDetector(config, flowControlOn, plugins, document);
  const flowControl = resolveFlowControl(config, flowControlOn, plugins, document, warnings);
  const parsers = resolveParsers(config, plugins);
  const dataLayer = resolveDataLayer(config, plugins, document, warnings);
  addMissingProducers(plugins, options.registry, document);
  const adaptation = resolveAdaptation(config.adaptation, document.folder, (path, message) =>
    warnings.push(document.warning(path, message)),
  );
  const replication = resolveReplication(config.replication, document.folder);
  const scheduling = compile(profiles, handler, plugins, document, warnings);
  const programs = scheduling.profiles.map(({ operations }) => operations);
  const idle = idleLearning(adaptation.settings.mode, programs);
  if (idle !== undefined) warnings.push(document.warning(['adaptation', 'mode'], idle));

  return {
    scheduling,
    parsers: parsers.map((parser) => parser.definition.type),
    discovery: givenDiscovery(options) ?? dataLayer.discovery,
    metricsSource: dataLayer.metricsSource,
    extractor: dataLayer.extractor,
    attributeSources: dataLayer.attributeSources,
    modelsSource: dataLayer.modelsSource,
    saturationDetector: saturationSettings(detector, plugins, document),
    adaptation: adaptation.settings,
    replication,
    flowControl: flowControl?.settings,
    gates,
    files: plugins.files,
    plugins: plugins.list().map(({ name, definition }) => ({ name, type: definition.type })),
    warnings: [...plugins.warnings, ...warnings],
    randomPicks: randomPicks(scheduling, config, document),
    notes,
    effective: effectiveConfiguration(config, {
      gates,
      plugins,
      profiles,
      parsers,
      dataLayer,
      flowControl,
      detector,
      adaptation: adaptation.effective,
      replication,
    }),
  };
}

/** Reads and parses a configuration. Throws ConfigurationError when no document can be read. */
export function readDocument({ file, text }: ConfigurationSource): ConfigurationDocument {
  if (file && text) {
    throw new ConfigurationError('--config-file and --config-text exclude each other: give only one of them');
  }
  if (text) {
    const bytes = Buffer.byteLength(text);
    if (bytes > TEXT_BYTES_MAX)
      throw new ConfigurationError(`--config-text has ${bytes} bytes, and at most ${TEXT_BYTES_MAX} are read`);
    return new ConfigurationDocument(text, '--config-text');
  }
  if (!file) return new ConfigurationDocument(DEFAULT_CONFIGURATION, 'default configuration');
  try {
    const document = ConfigurationDocument.ofFile(readUtf8Text(file, TEXT_BYTES_MAX), file);
    refuseOtherFiles(document);
    return document;
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    throw new ConfigurationError(`${file}: the configuration ${readProblem(error)}`);
  }
}

/** Refuses the files that are mistaken for a configuration most often. */
function refuseOtherFiles(document: ConfigurationDocument): void {
  const fields = (document.data ?? {}) as Readonly<Record<string, unknown>>;
  if (fields.kind !== undefined || fields.plugins !== undefined) return;
  if (fields.pools !== undefined) {
    throw document.error(['pools'], 'this is a pools file, no configuration: give it as --pools', 'key');
  }
  if (fields.endpoints === undefined) return;
  throw document.error(
    ['endpoints'],
    'this is a list of endpoints, no configuration: give it as --endpoints-file',
    'key',
  );
}

function givenDiscovery({ endpointsFile }: LoadOptions): DiscoverySettings | undefined {
  return endpointsFile === undefined
    ? undefined
    : { type: 'file-discovery', path: resolve(endpointsFile), watch: true };
}

function addMissingProducers(
  plugins: PluginSet,
  registry: readonly PluginDefinition[],
  document: ConfigurationDocument,
): void {
  try {
    for (const producer of missingProducers(plugins.list(), registry)) plugins.ensure(producer.type);
  } catch (error) {
    if (!(error instanceof MissingProducer)) throw error;
    const consumer = plugins.list().find((plugin) => plugin.name === error.plugin);
    throw document.error(consumer?.path ?? [], error.message);
  }
}

/** Checks that all plugins exist that are named by parameters of others. */
function resolveReferences(plugins: PluginSet): void {
  for (const { definition, parameters, path } of plugins.list()) {
    for (const reference of definition.references?.(parameters) ?? []) {
      plugins.resolve(reference.name, reference.kinds, [...(path ?? []), 'parameters', ...reference.path]);
    }
  }
}

function compile(
  profiles: readonly ResolvedProfile[],
  handler: LoadedPlugin,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): CompiledScheduling {
  const producers = plugins.list('producer');
  const shared = sharedPrefixSettings(producers);
  if (shared !== undefined && shared.ignored.length > 0) {
    const names = shared.ignored.map((name) => `"${name}"`).join(', ');
    const text =
      `all prefix producers share one index, set up by "${shared.from}": the parameters of ${names} ` +
      'have no effect';
    warnings.push(document.warning(['plugins'], text));
  }
  try {
    const scheduling = compileScheduling(profiles, producers, plugins.list(), handler);
    warnOfEstimates(scheduling, document, warnings);
    warnOfClasses(scheduling, document, warnings);
    return scheduling;
  } catch (error) {
    if (!(error instanceof ProgramTooLarge)) throw error;
    throw document.error(['schedulingProfiles'], error.message);
  }
}

/** Engines tell of their own tokens: blocks of an estimate never match them. */
function warnOfEstimates(
  { kvEvents, tokens }: CompiledScheduling,
  document: ConfigurationDocument,
  warnings: string[],
): void {
  if (kvEvents === undefined || tokens !== undefined) return;
  const text =
    'prefixes are known by KV events, but tokens are estimated: only prompts that bring token ids will match; give ' +
    'token-producer a modelName and vllm';
  warnings.push(document.warning(['plugins'], text));
}

/** Without classes every request counts alike. */
function warnOfClasses(
  { estimateOutput }: CompiledScheduling,
  document: ConfigurationDocument,
  warnings: string[],
): void {
  if (estimateOutput === undefined || estimateOutput.classes || estimateOutput.ratio !== undefined) return;
  const text =
    'addEstimatedOutputTokens counts 1000 output tokens of every request: add "- type: outlen-bucket" to tell long ' +
    'answers from short ones';
  warnings.push(document.warning(['plugins'], text));
}
