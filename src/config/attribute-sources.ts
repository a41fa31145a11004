import { durationMilliseconds } from '../scheduling/duration.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin } from './plugin-set.js';
import { dcgmDataSource, dcgmDataSourceParameters } from './plugins/dcgm-data-source.js';
import { dcgmExtractor } from './plugins/dcgm-extractor.js';
import {
  multiclusterMetricsDataSource,
  multiclusterMetricsDataSourceParameters,
} from './plugins/multicluster-metrics-data-source.js';
import {
  multiclusterMetricsExtractor,
  multiclusterMetricsExtractorParameters,
} from './plugins/multicluster-metrics-extractor.js';

/** Address of a source's page, and requirements on its server. */
export interface PageSettings {
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

/** One number about an endpoint on a page. */
export interface AttributeMetric {
  /** Name that filters and scorers read it by. */
  readonly attribute: string;
  /** `name` or `name{label=value,…}`; of several series the highest counts. */
  readonly spec: string;
  /** Factor on the value. */
  readonly scale: number;
  /** Whether series with a label `pod` count only when it names the endpoint. */
  readonly perPod: boolean;
}

/** A source of numbers about endpoints, beside the metrics of the model servers. */
export interface AttributeSourceSettings {
  /** Configured name of the source. */
  readonly name: string;
  /** Types of the source and of the extractors that read it. */
  readonly types: { readonly source: string; readonly extractors: readonly string[] };
  readonly page: PageSettings;
  /** Whether the endpoint's node is asked (its label nodeAddress). */
  readonly atNode: boolean;
  readonly metrics: readonly AttributeMetric[];
}

/** A source with its extractors, as the configuration wires them. */
interface WiredSource {
  readonly source: LoadedPlugin;
  readonly extractors: readonly LoadedPlugin[];
}

const SOURCES_PATH: Path = ['dataLayer', 'sources'];

/** The sources that some extractor reads attributes from; one line for each that nothing reads. */
export function resolveAttributeSources(
  sources: readonly WiredSource[],
  document: ConfigurationDocument,
  warnings: string[],
): readonly AttributeSourceSettings[] {
  return sources.flatMap(({ source, extractors }) => {
    const place = placeOf(source);
    if (place === undefined) return [];
    const reading = extractors.filter((extractor) => metricsOf(source, extractor).length > 0);
    const metrics = reading.flatMap((extractor) => metricsOf(source, extractor));
    const types = { source: source.definition.type, extractors: reading.map(({ definition }) => definition.type) };
    if (metrics.length > 0) return [{ name: source.name, types, ...place, metrics }];
    const text = `"${source.name}" has no extractor that reads a ${source.definition.type}: it is not fetched`;
    warnings.push(document.warning(SOURCES_PATH, text));
    return [];
  });
}

function placeOf({
  definition,
  parameters,
}: LoadedPlugin): Pick<AttributeSourceSettings, 'page' | 'atNode'> | undefined {
  if (definition === dcgmDataSource) {
    const { useNodeAddress, ...given } = dcgmDataSourceParameters().parse(parameters);
    return { page: pageSettings(given), atNode: useNodeAddress };
  }
  if (definition !== multiclusterMetricsDataSource) return undefined;
  return { page: pageSettings(multiclusterMetricsDataSourceParameters().parse(parameters)), atNode: false };
}

function metricsOf(source: LoadedPlugin, { definition, parameters }: LoadedPlugin): readonly AttributeMetric[] {
  if (source.definition === dcgmDataSource && definition === dcgmExtractor) {
    // DCGM tells percent.
    return [{ attribute: 'GPUUtilization', spec: 'DCGM_FI_DEV_GPU_UTIL', scale: 0.01, perPod: true }];
  }
  if (source.definition !== multiclusterMetricsDataSource || definition !== multiclusterMetricsExtractor) return [];
  const given = multiclusterMetricsExtractorParameters().parse(parameters);
  const of = (attribute: string, spec: string) => ({ attribute, spec, scale: 1, perPod: false });
  return [
    of('llm-d.ai/multicluster-kv-cache-utilization', given.kvCacheUtilizationMetric),
    of('llm-d.ai/multicluster-queue-size', given.queueSizeMetric),
  ];
}

/** Settings from the parameters of a source that is fetched over HTTP. */
export function pageSettings(given: {
  readonly scheme: 'http' | 'https';
  readonly path: string;
  readonly port?: number | undefined;
  readonly insecureSkipVerify: boolean;
  readonly caCertPath?: string | undefined;
  readonly clientCertPath?: string | undefined;
  readonly clientKeyPath?: string | undefined;
  readonly interval?: string | undefined;
}): PageSettings {
  return {
    scheme: given.scheme,
    path: given.path,
    port: given.port,
    insecureSkipVerify: given.insecureSkipVerify,
    caCertPath: given.caCertPath || undefined,
    clientCertPath: given.clientCertPath || undefined,
    clientKeyPath: given.clientKeyPath || undefined,
    intervalMs: given.interval ? durationMilliseconds(given.interval) || undefined : undefined,
  };
}
