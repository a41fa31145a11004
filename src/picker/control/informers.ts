import type { AttributeSourceSettings, PageSettings } from '../../config/attribute-sources.js';
import type { Endpoint, SlotUpdate } from '../../contract/endpoint.js';
import type { ServedModel } from '../../contract/endpoint-facts.js';
import { type EndpointSignals, EndpointTable } from '../../core/endpoint-table.js';
import { ExpositionScanner } from '../../core/exposition-scanner.js';
import type { CoreInstance } from '../../core/memory.js';
import { SampleReader } from '../../core/sample-reader.js';
import { EngineTable } from '../../pool/engines/engine-table.js';
import { AttributeReader } from '../../pool/sources/attribute-reader.js';
import type { MetricsInformerOptions, PageLocation, SignalSink } from '../../pool/sources/informer-options.js';
import { MetricsInformer } from '../../pool/sources/metrics-informer.js';
import { ModelsReader } from '../../pool/sources/models-reader.js';
import { PageReader } from '../../pool/sources/page-reader.js';
import { PollPace } from '../../pool/sources/poll-pace.js';
import type { PolledSlot, PollUse, SourceFreshness, SourceTypes } from '../../pool/sources/source-state.js';
import { PEM_BYTES_MAX, readPlainText } from '../../runtime/plain-file.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import { readProblem } from '../../runtime/read-problem.js';
import type { PickerOptions } from '../picker-options.js';
import { AnsweredRequests } from './answered-requests.js';

/** Bound on a page of a model server, another picker or an exporter. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Bound on a list of models. */
const MODELS_BYTES_MAX = 1024 * 1024;
/** Interval between two reads of the lists of models, which change rarely and cost a JSON parse. */
const MODELS_INTERVAL_MS = 1_000;

/** Labels of multicluster-file-discovery (`metricsAddress`, `metricsPort`) and of nodes (`nodeAddress`). */
const METRICS_ADDRESS_LABEL = 'metricsAddress';
const METRICS_PORT_LABEL = 'metricsPort';
const NODE_ADDRESS_LABEL = 'nodeAddress';

/** Destinations of the fetched values: the main signals of endpoints, and attributes by the number of their column. */
export interface InformerSinks extends SignalSink {
  /** @returns false when the values could not be written now */
  attributes(slot: number, generation: number, values: ReadonlyMap<number, number | undefined>): boolean;
  /** Takes a LoRA adapter that an endpoint's metrics page or list of models shows. */
  showAdapter(name: string): void;
  /** An endpoint has told its models; undefined = its list is gone. */
  listed(id: string, models: readonly ServedModel[] | undefined): void;
}

/** Failed polls of a source, and pages that came and could not be read. */
export interface SourceErrors {
  readonly types: SourceTypes;
  readonly polls: number;
  readonly extractions: number;
}

/** A source that is polled. */
export interface PolledSource {
  readonly types: SourceTypes;
  readonly informer: MetricsInformer;
}

/** All periodic fetches from the endpoints of a picker. */
export class Informers {
  readonly #sources: readonly PolledSource[];
  readonly #models: ModelsReader | undefined;
  /** Slots by endpoint id. */
  readonly #slots = new Map<string, number>();

  constructor(sources: readonly PolledSource[], models: ModelsReader | undefined) {
    this.#sources = sources;
    this.#models = models;
  }

  changeEndpoints(update: SlotUpdate): void {
    for (const { slot, endpoint } of update.set) this.#slots.set(endpoint.id, slot);
    for (const { slot, endpoint } of update.removed) {
      // The endpoint may have another slot by now.
      if (this.#slots.get(endpoint.id) !== slot) continue;
      this.#slots.delete(endpoint.id);
      this.#models?.forget(endpoint.id);
    }
    for (const { informer } of this.#sources) informer.changeEndpoints(update);
  }

  stop(): void {
    for (const { informer } of this.#sources) informer.stop();
  }

  /** Fetches that failed since the start. */
  get failures(): number {
    return this.#sources.reduce((sum, { informer }) => sum + faultsOf(informer), 0);
  }

  /** Errors since the start by source. A page without the wanted metrics is an extraction that failed. */
  get errors(): readonly SourceErrors[] {
    return this.#sources.map(({ types, informer }) => {
      const { faults, pagesWithoutSignals } = informer.counts;
      return { types, polls: faultsOf(informer) - faults.scan, extractions: faults.scan + pagesWithoutSignals };
    });
  }

  /** Age of what each source knows. */
  get freshness(): readonly { readonly source: string; readonly freshness: SourceFreshness }[] {
    return this.#sources.map(({ types, informer }) => ({ source: types.source, freshness: informer.freshness }));
  }

  /** What the polls of the metrics pages take; undefined = metrics are not fetched. */
  get use(): PollUse | undefined {
    return this.#sources.find(({ types }) => types === CORE_METRICS)?.informer.use;
  }

  /** Polls of a slot's metrics page; undefined = metrics are not fetched. */
  polled(slot: number): PolledSlot | undefined {
    return this.#sources.find(({ types }) => types === CORE_METRICS)?.informer.polled(slot);
  }

  /** Models by endpoint id; undefined when the lists of models are not fetched. */
  get models(): ReadonlyMap<string, readonly ServedModel[]> | undefined {
    return this.#models?.models;
  }
}

function faultsOf({ counts }: MetricsInformer): number {
  return Object.values(counts.faults).reduce((sum, count) => sum + count, 0);
}

/**
 * Informers of the configuration: metrics of the model servers (none with `dataLayer.injectDefaults: false`), further
 * attributes that filters or scorers read, and lists of models.
 */
export function createInformers(options: PickerOptions, core: CoreInstance, sinks: InformerSinks): Informers {
  const { configuration } = options;
  const scanner = new ExpositionScanner(core);
  const models =
    configuration.modelsSource === undefined ? undefined : new ModelsReader(sinks.showAdapter, sinks.listed);
  const sources: readonly PolledSource[] = [
    ...(configuration.metricsSource.enabled
      ? [{ types: CORE_METRICS, informer: metricsInformer(options, core, scanner, sinks) }]
      : []),
    ...configuration.attributeSources.flatMap((source) => attributeInformer(options, source, scanner, sinks)),
    ...(models === undefined
      ? []
      : [{ types: MODELS, informer: modelsInformer(options, configuration.modelsSource!, models) }]),
  ];
  return new Informers(sources, models);
}

const CORE_METRICS: SourceTypes = { source: 'metrics-data-source', extractors: ['core-metrics-extractor'] };
const MODELS: SourceTypes = { source: 'models-data-source', extractors: ['models-data-extractor'] };

function metricsInformer(
  options: PickerOptions,
  core: CoreInstance,
  scanner: ExpositionScanner,
  sinks: InformerSinks,
): MetricsInformer {
  const answered = new AnsweredRequests(new SampleReader(core), poolClockMs);
  const table = new EndpointTable(core);
  const { metricsSource, extractor, attributeSources, scheduling } = options.configuration;
  const elsewhere = new Set(attributeSources.flatMap(({ metrics }) => metrics.map(({ attribute }) => attribute)));
  const engines = new EngineTable({
    engineConfigs: extractor.engineConfigs,
    attributes: scheduling.attributes.map((attribute) => (elsewhere.has(attribute) ? null : attribute)),
    engineLabelKey: extractor.engineLabelKeys[0],
    defaultEngine: extractor.defaultEngine,
    loadedAdapters: scheduling.readsLoadedAdapters,
  });
  const common = informerOptions(options, 'metrics-data-source', metricsSource);
  // An interval that is written down holds.
  const share = metricsSource.intervalMs === undefined ? options.decide.scrapeCpuShare : undefined;
  return new MetricsInformer({
    ...common,
    reader: new PageReader(scanner, engines, PAGE_BYTES_MAX, options.log, sinks.showAdapter),
    sink: sinks,
    answered: (slot, generation) => answered.of(slot, generation),
    pace: new PollPace(common.intervalMs, share),
    hasTraffic: (slot) => table.inflight(slot) > 0,
    pageBytesMax: PAGE_BYTES_MAX,
  });
}

/** The informer of one source; empty when no filter or scorer reads its attributes. */
function attributeInformer(
  options: PickerOptions,
  { name, types, page, atNode, metrics }: AttributeSourceSettings,
  scanner: ExpositionScanner,
  sinks: InformerSinks,
): readonly PolledSource[] {
  const { attributes } = options.configuration.scheduling;
  const read = metrics.filter(({ attribute }) => attributes.includes(attribute));
  if (read.length === 0) return [];
  const columns = read.map(({ attribute }) => attributes.indexOf(attribute));
  const write = (slot: number, generation: number, values: EndpointSignals['attributes']) =>
    sinks.attributes(slot, generation, new Map(columns.map((column, i) => [column, values?.[i] ?? undefined])));
  const informer = new MetricsInformer({
    ...informerOptions(options, name, page, atNode),
    reader: new AttributeReader(name, scanner, read, PAGE_BYTES_MAX),
    sink: {
      publish: (slot, generation, signals) => write(slot, generation, signals.attributes),
      stale: (slot, generation) => write(slot, generation, []),
    },
    pageBytesMax: PAGE_BYTES_MAX,
  });
  return [{ types, informer }];
}

function modelsInformer(options: PickerOptions, page: PageSettings, reader: ModelsReader): MetricsInformer {
  const intervalMs = page.intervalMs ?? MODELS_INTERVAL_MS;
  return new MetricsInformer({
    ...informerOptions(options, 'models-data-source', page),
    reader,
    // The models of an endpoint stay valid until the next list, or until the endpoint leaves.
    sink: { publish: () => true, stale: () => true },
    pageBytesMax: MODELS_BYTES_MAX,
    intervalMs,
    stalenessMs: Math.max(options.decide.stalenessMs, 3 * intervalMs),
  });
}

type CommonOptions = Omit<MetricsInformerOptions, 'reader' | 'sink'> & { readonly intervalMs: number };

function informerOptions(options: PickerOptions, name: string, page: PageSettings, atNode = false): CommonOptions {
  const { configuration, log, decide } = options;
  const { refreshMetricsMs, stalenessMs } = decide;
  const clusters = configuration.discovery?.type === 'multicluster-file-discovery';
  return {
    log,
    intervalMs: page.intervalMs ?? refreshMetricsMs,
    stalenessMs: Math.max(stalenessMs, 3 * (page.intervalMs ?? 0)),
    scheme: page.scheme,
    path: page.path,
    locate: (endpoint) => locate(endpoint, { port: page.port, atNode, clusters }),
    tls: {
      insecureSkipVerify: page.insecureSkipVerify,
      ca: pem(name, 'caCertPath', page.caCertPath),
      cert: pem(name, 'clientCertPath', page.clientCertPath),
      key: pem(name, 'clientKeyPath', page.clientKeyPath),
    },
    now: poolClockMs,
  };
}

interface Whereabouts {
  /** Port in place of the endpoint's own. */
  readonly port: number | undefined;
  /** Whether the page is on the endpoint's node. */
  readonly atNode: boolean;
  /** Whether the endpoints are clusters, whose labels may name the metrics address. */
  readonly clusters: boolean;
}

/** Address of an endpoint's page. A label that is no port counts as absent. */
export function locate({ address, hostName, port, labels }: Endpoint, where: Whereabouts): PageLocation {
  const node = where.atNode ? labels[NODE_ADDRESS_LABEL] : undefined;
  const metricsAddress = where.clusters ? labels[METRICS_ADDRESS_LABEL] : undefined;
  const metricsPort = where.clusters ? Number(labels[METRICS_PORT_LABEL]) : Number.NaN;
  const elsewhere = node || metricsAddress || undefined;
  const isPort = Number.isInteger(metricsPort) && metricsPort >= 1 && metricsPort <= 65_535;
  return {
    host: elsewhere ?? address,
    port: where.port ?? (isPort ? metricsPort : port),
    ...(elsewhere === undefined && hostName !== undefined ? { serverName: hostName } : {}),
  };
}

function pem(source: string, parameter: string, path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined;
  try {
    return readPlainText(path, PEM_BYTES_MAX);
  } catch (error) {
    throw new Error(`${source}: ${parameter}: ${path} ${readProblem(error)}`);
  }
}
