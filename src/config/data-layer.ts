import type { PluginDefinition } from '../scheduling/plugin.js';
import {
  type AttributeSourceSettings,
  type PageSettings,
  pageSettings,
  resolveAttributeSources,
} from './attribute-sources.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import {
  coreMetricsExtractor,
  coreMetricsExtractorParameters,
  type EngineConfig,
} from './plugins/core-metrics-extractor.js';
import { fileDiscovery, fileDiscoveryParameters } from './plugins/file-discovery.js';
import { metricsDataSource, metricsDataSourceParameters } from './plugins/metrics-data-source.js';
import { modelsDataExtractor } from './plugins/models-data-extractor.js';
import { modelsDataSource, modelsDataSourceParameters } from './plugins/models-data-source.js';
import { multiclusterFileDiscovery } from './plugins/multicluster-file-discovery.js';
import type { EndpointPickerConfig } from './schema.js';

/** Source of the endpoints. `path` is absolute. */
export interface DiscoverySettings {
  readonly type: 'file-discovery' | 'multicluster-file-discovery';
  readonly path: string;
  readonly watch: boolean;
}

/** Settings of the scrapes; nothing is fetched unless `enabled`. */
export interface MetricsSourceSettings extends PageSettings {
  readonly enabled: boolean;
}

/** Settings for reading a metrics page. */
export interface ExtractorSettings {
  /** Labels that may name the engine, the first present one counts. */
  readonly engineLabelKeys: readonly string[];
  readonly defaultEngine: string;
  readonly engineConfigs: readonly EngineConfig[];
}

/** A data source and what reads it. */
export interface DataSource {
  readonly source: LoadedPlugin;
  readonly extractors: readonly LoadedPlugin[];
}

export interface DataLayer {
  readonly sources: readonly DataSource[];
  readonly discovery: DiscoverySettings | undefined;
  readonly metricsSource: MetricsSourceSettings;
  readonly extractor: ExtractorSettings;
  readonly attributeSources: readonly AttributeSourceSettings[];
  readonly modelsSource: PageSettings | undefined;
}

/** Label with the engine's name that older deployments use. */
const OLDER_ENGINE_LABEL = 'inference.networking.k8s.io/engine-type';

/** Sources, extractors and discovery, with the metrics source added unless `injectDefaults` is false. */
export function resolveDataLayer(
  config: EndpointPickerConfig,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): DataLayer {
  const sources = resolveSources(config, plugins, document);
  checkReplicas(config, plugins, document, warnings);
  const scraping = sources.filter(({ source }) => source.definition === metricsDataSource);
  if (scraping.length > 1) {
    const names = scraping.map(({ source }) => `"${source.name}"`).join(' and ');
    const text = `${names} are both of type metrics-data-source: keep one`;
    throw document.error(['dataLayer', 'sources'], text);
  }
  const metrics = scraping[0];
  const extractor = metrics?.extractors.find(({ definition }) => definition === coreMetricsExtractor);
  if (metrics !== undefined && extractor === undefined) {
    const text = `"${metrics.source.name}" has no core-metrics-extractor: no metrics are fetched`;
    warnings.push(document.warning(['dataLayer', 'sources'], text));
  }
  return {
    sources,
    discovery: resolveDiscovery(config, plugins),
    metricsSource: metricsSourceSettings(metrics?.source, extractor !== undefined),
    extractor: extractorSettings(extractor),
    attributeSources: resolveAttributeSources(sources, document, warnings),
    modelsSource: modelsSourceSettings(sources, plugins, document, warnings),
  };
}

function resolveSources(
  config: EndpointPickerConfig,
  plugins: PluginSet,
  document: ConfigurationDocument,
): readonly DataSource[] {
  const listed = (config.dataLayer?.sources ?? []).map((entry, index): DataSource => {
    const path: Path = ['dataLayer', 'sources', index];
    const extractors = entry.extractors.map(({ pluginRef }, position) =>
      resolveExtractor(pluginRef, plugins, [...path, 'extractors', position, 'pluginRef']),
    );
    refuseRepeated(extractors, [...path, 'extractors'], document);
    return { source: plugins.resolve(entry.pluginRef, ['data-source'], [...path, 'pluginRef']), extractors };
  });
  const withModels = [...listed, ...modelsForReaders(listed, plugins)];
  const hasMetrics = listed.some(({ source }) => source.definition === metricsDataSource);
  if (hasMetrics || config.dataLayer?.injectDefaults === false) return withModels;
  plugins.ensure(metricsDataSource.type);
  plugins.ensure(coreMetricsExtractor.type);
  const path = ['dataLayer', 'sources'];
  const source = plugins.resolve(metricsDataSource.type, ['data-source'], path);
  const extractor = plugins.resolve(coreMetricsExtractor.type, ['extractor'], path);
  return [...withModels, { source, extractors: [extractor] }];
}

/** Refuses an extractor that one source names twice, and a second core-metrics-extractor: it would have no effect. */
function refuseRepeated(extractors: readonly LoadedPlugin[], path: Path, document: ConfigurationDocument): void {
  for (const [position, extractor] of extractors.entries()) {
    const earlier = extractors
      .slice(0, position)
      .find((each) => each === extractor || [each, extractor].every((one) => one.definition === coreMetricsExtractor));
    if (earlier === undefined) continue;
    const text =
      earlier === extractor
        ? `"${extractor.name}" is listed twice: keep one`
        : `"${earlier.name}" and "${extractor.name}" are both of type core-metrics-extractor: keep one`;
    throw document.error([...path, position, 'pluginRef'], text);
  }
}

/** The lists of models that a plugin wants fetched, where no source is listed for them. */
function modelsForReaders(listed: readonly DataSource[], plugins: PluginSet): readonly DataSource[] {
  if (!plugins.list().some(({ definition }) => definition.fetchesModels)) return [];
  if (listed.some(({ source }) => source.definition === modelsDataSource)) return [];
  const own = (definition: PluginDefinition) =>
    plugins.list().find((each) => each.definition === definition) ?? plugins.ensure(definition.type);
  return [{ source: own(modelsDataSource), extractors: [own(modelsDataExtractor)] }];
}

/** An extractor, or a producer that llm-d-router tells of the endpoints that come and go. */
function resolveExtractor(name: string, plugins: PluginSet, path: Path): LoadedPlugin {
  const isListed = plugins.list('producer').some((each) => each.name === name && each.definition.listedAsExtractor);
  return plugins.resolve(name, isListed ? ['producer'] : ['extractor'], path);
}

/** Plugins of llm-d-router by which replicas find each other and share state; Pointsman has `replication` for this. */
function checkReplicas(
  config: EndpointPickerConfig,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): void {
  const layer: Path = ['dataLayer'];
  const { discovery, crossReplica } = config.dataLayer ?? {};
  if (discovery?.peers?.pluginRef) {
    const path = [...layer, 'discovery', 'peers', 'pluginRef'];
    const { name } = plugins.resolve(discovery.peers.pluginRef, ['peer-discovery'], path);
    warnings.push(document.warning(path, `"${name}" has no effect: ${FINDS_ITSELF}`));
  }
  if (crossReplica === undefined) return;
  if (crossReplica.syncerPluginRef) {
    const path = [...layer, 'crossReplica', 'syncerPluginRef'];
    const { name } = plugins.resolve(crossReplica.syncerPluginRef, ['replica-syncer'], path);
    warnings.push(document.warning(path, `"${name}" has no effect: ${FINDS_ITSELF}`));
    return;
  }
  for (const [field, value] of Object.entries(crossReplica)) {
    if (!value) continue;
    warnings.push(document.warning([...layer, 'crossReplica', field], 'has no effect without a syncerPluginRef'));
  }
}

const FINDS_ITSELF = 'Pointsman replicates by itself, through NATS: set `replication`, or --replication-url';

function resolveDiscovery(config: EndpointPickerConfig, plugins: PluginSet): DiscoverySettings | undefined {
  const reference = config.dataLayer?.discovery?.endpoints;
  if (reference === undefined) return undefined;
  const path = ['dataLayer', 'discovery', 'endpoints', 'pluginRef'];
  const { definition, parameters } = plugins.resolve(reference.pluginRef, ['discovery'], path);
  const type = definition === fileDiscovery ? 'file-discovery' : 'multicluster-file-discovery';
  if (definition !== fileDiscovery && definition !== multiclusterFileDiscovery) return undefined;
  const given = fileDiscoveryParameters().parse(parameters);
  return { type, path: given.path, watch: given.watchFile };
}

function metricsSourceSettings(source: LoadedPlugin | undefined, enabled: boolean): MetricsSourceSettings {
  return { enabled, ...pageSettings(metricsDataSourceParameters().parse(source?.parameters ?? {})) };
}

/** Address of the lists of models; undefined unless a models-data-source is wired to its extractor. */
function modelsSourceSettings(
  sources: readonly DataSource[],
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): PageSettings | undefined {
  const listed = sources.filter(({ source }) => source.definition === modelsDataSource);
  const wired = listed.filter(({ extractors }) =>
    extractors.some(({ definition }) => definition === modelsDataExtractor),
  );
  for (const { source } of listed.filter((each) => each !== wired[0])) {
    const why = wired.length === 0 ? 'has no models-data-extractor' : `comes after "${wired[0]!.source.name}"`;
    warnings.push(document.warning(['dataLayer', 'sources'], `"${source.name}" ${why}: it is not fetched`));
  }
  const readers = plugins.list().filter(({ definition, parameters }) => readsLists(definition, parameters));
  for (const { name, path } of wired.length === 0 ? readers : []) {
    const text =
      `"${name}" knows no endpoint's models: list a models-data-source with the models-data-extractor under ` +
      'dataLayer.sources';
    warnings.push(document.warning(path ?? ['plugins'], text));
  }
  return wired[0] && pageSettings(modelsDataSourceParameters().parse(wired[0].source.parameters));
}

function readsLists({ consumes }: PluginDefinition, parameters: unknown): boolean {
  return consumes?.(parameters).some(({ key }) => key === 'served-models') ?? false;
}

function extractorSettings(extractor: LoadedPlugin | undefined): ExtractorSettings {
  const given = coreMetricsExtractorParameters().parse(extractor?.parameters ?? {});
  const { defaultEngine, engineConfigs } = given;
  return { engineLabelKeys: [given.engineLabelKey, OLDER_ENGINE_LABEL], defaultEngine, engineConfigs };
}
