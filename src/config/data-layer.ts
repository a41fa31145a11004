import { resolve } from 'node:path';
import { durationMilliseconds } from '../scheduling/duration.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import {
  coreMetricsExtractor,
  coreMetricsExtractorParameters,
  type EngineConfig,
} from './plugins/core-metrics-extractor.js';
import { fileDiscovery, fileDiscoveryParameters } from './plugins/file-discovery.js';
import { metricsDataSource, metricsDataSourceParameters } from './plugins/metrics-data-source.js';
import type { EndpointPickerConfig } from './schema.js';

/** Where the endpoints come from. `path` is absolute. */
export interface DiscoverySettings {
  readonly type: 'file-discovery';
  readonly path: string;
  readonly watch: boolean;
}

/** How the metrics of endpoints are fetched; nothing is fetched unless `enabled`. */
export interface MetricsSourceSettings {
  readonly enabled: boolean;
  readonly scheme: 'http' | 'https';
  readonly path: string;
  /** Undefined = the endpoint's own port. */
  readonly port: number | undefined;
  readonly insecureSkipVerify: boolean;
  readonly caCertPath: string | undefined;
  readonly clientCertPath: string | undefined;
  readonly clientKeyPath: string | undefined;
  /** Undefined = `--refresh-metrics-interval`. */
  readonly intervalMs: number | undefined;
}

/** How a metrics page is read. */
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
  const sources = resolveSources(config, plugins);
  refuseUnavailable(config, document);
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
  };
}

function resolveSources(config: EndpointPickerConfig, plugins: PluginSet): readonly DataSource[] {
  const listed = (config.dataLayer?.sources ?? []).map((entry, index): DataSource => {
    const path: Path = ['dataLayer', 'sources', index];
    return {
      source: plugins.resolve(entry.pluginRef, ['data-source'], [...path, 'pluginRef']),
      extractors: entry.extractors.map(({ pluginRef }, position) =>
        plugins.resolve(pluginRef, ['extractor'], [...path, 'extractors', position, 'pluginRef']),
      ),
    };
  });
  const hasMetrics = listed.some(({ source }) => source.definition === metricsDataSource);
  if (hasMetrics || config.dataLayer?.injectDefaults === false) return listed;
  plugins.ensure(metricsDataSource.type);
  plugins.ensure(coreMetricsExtractor.type);
  const path = ['dataLayer', 'sources'];
  const source = plugins.resolve(metricsDataSource.type, ['data-source'], path);
  const extractor = plugins.resolve(coreMetricsExtractor.type, ['extractor'], path);
  return [...listed, { source, extractors: [extractor] }];
}

/** Fields that name plugins of kinds of which there are none. */
function refuseUnavailable(config: EndpointPickerConfig, document: ConfigurationDocument): void {
  const { peerDiscovery, crossReplicaSyncerPluginRef } = config.dataLayer ?? {};
  if (peerDiscovery !== undefined) {
    const text = `plugin "${peerDiscovery.pluginRef}" cannot be used: there are no peer discovery plugins; remove the field`;
    throw document.error(['dataLayer', 'peerDiscovery', 'pluginRef'], text);
  }
  if (crossReplicaSyncerPluginRef) {
    const text = `plugin "${crossReplicaSyncerPluginRef}" cannot be used: there are no replica syncers; remove the field`;
    throw document.error(['dataLayer', 'crossReplicaSyncerPluginRef'], text);
  }
}

function resolveDiscovery(config: EndpointPickerConfig, plugins: PluginSet): DiscoverySettings | undefined {
  const reference = config.dataLayer?.discovery;
  if (reference === undefined) return undefined;
  const path = ['dataLayer', 'discovery', 'pluginRef'];
  const { definition, parameters } = plugins.resolve(reference.pluginRef, ['discovery'], path);
  if (definition !== fileDiscovery) return undefined;
  const given = fileDiscoveryParameters.parse(parameters);
  return { type: 'file-discovery', path: resolve(given.path), watch: given.watchFile };
}

function metricsSourceSettings(source: LoadedPlugin | undefined, enabled: boolean): MetricsSourceSettings {
  const given = metricsDataSourceParameters.parse(source?.parameters ?? {});
  return {
    enabled,
    scheme: given.scheme,
    path: given.path,
    port: given.port,
    insecureSkipVerify: given.insecureSkipVerify,
    caCertPath: given.caCertPath,
    clientCertPath: given.clientCertPath,
    clientKeyPath: given.clientKeyPath,
    intervalMs: given.interval === undefined ? undefined : durationMilliseconds(given.interval),
  };
}

function extractorSettings(extractor: LoadedPlugin | undefined): ExtractorSettings {
  const given = coreMetricsExtractorParameters.parse(extractor?.parameters ?? {});
  const { defaultEngine, engineConfigs } = given;
  return { engineLabelKeys: [given.engineLabelKey, OLDER_ENGINE_LABEL], defaultEngine, engineConfigs };
}
