import type { Endpoint } from '../../contract/endpoint.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { AdapterMemory, Engine, ScannedPage, WantedMetric } from '../engines/engine.js';
import type { EngineTable } from '../engines/engine-table.js';
import type { InformerLog, SignalReader } from './signal-reader.js';

/** The scanner of the exposition format, one scan at a time per thread. */
export interface PageScanner {
  /** Prepares a query; the answer is its number. */
  compile(wanted: readonly WantedMetric[]): number;
  begin(query: number, pageBytes: number): void;
  feed(chunk: Uint8Array): void;
  end(): ScannedPage;
}

/** Reader of one endpoint's pages. */
export interface PageReading {
  readonly engine: Engine;
  readonly query: number;
  readonly adapters: AdapterMemory;
}

/** Bound on the engine names that are complained about, once each. */
const UNKNOWN_ENGINES_MAX = 100;

/** Turns a metrics page into signals, as the endpoint's engine writes it. */
export class PageReader implements SignalReader<PageReading> {
  readonly #scanner: PageScanner;
  readonly #engines: EngineTable;
  readonly #pageBytesMax: number;
  readonly #log: InformerLog;
  readonly #showAdapter: (name: string) => void;
  readonly #queries = new Map<Engine, number>();
  readonly #unknownEngines = new Set<string>();

  /**
   * Compiles every engine's query; throws what the scanner throws when they are too many or too large.
   * @param showAdapter called with every name that a page shows as a LoRA adapter, again when the page shows others
   */
  constructor(
    scanner: PageScanner,
    engines: EngineTable,
    pageBytesMax: number,
    log: InformerLog,
    showAdapter: (name: string) => void,
  ) {
    this.#scanner = scanner;
    this.#engines = engines;
    this.#pageBytesMax = pageBytesMax;
    this.#log = log;
    this.#showAdapter = showAdapter;
    for (const engine of engines.all()) this.#queries.set(engine, scanner.compile(engine.wanted));
  }

  /** Chooses the engine by the endpoint's labels. */
  prepare(endpoint: Endpoint): PageReading {
    const { engine, known, asked } = this.#engines.choose(endpoint.labels);
    if (!known) this.#tellUnknown(endpoint, asked, engine);
    return {
      engine,
      query: this.#queries.get(engine)!,
      adapters: { labels: undefined, adapters: undefined, shown: '' },
    };
  }

  /** Signals of a complete page; `empty` = it holds none of the engine's metrics. Throws what the scanner throws. */
  read(reading: PageReading, page: Uint8Array): { readonly signals: EndpointSignals; readonly empty: boolean } {
    this.#scanner.begin(reading.query, this.#pageBytesMax);
    this.#scanner.feed(page);
    const scanned = this.#scanner.end();
    for (const name of reading.engine.newlyShown(scanned, reading.adapters)) this.#showAdapter(name);
    return { signals: reading.engine.read(scanned, reading.adapters), empty: reading.engine.isForeign(scanned) };
  }

  nothingFound({ engine }: PageReading): string {
    return (
      `the metrics page holds none of the metrics of engine ${engine.name}: its signals stay unknown; ` +
      'label the endpoint with its engine or add it to engineConfigs'
    );
  }

  #tellUnknown(endpoint: Endpoint, asked: string, engine: Engine): void {
    if (this.#unknownEngines.size >= UNKNOWN_ENGINES_MAX || this.#unknownEngines.has(asked)) return;
    this.#unknownEngines.add(asked);
    const names = this.#engines.names().join(', ');
    this.#log.warn(
      { endpoint: endpoint.id, engine: asked },
      `engine "${asked}" is unknown, ${engine.name} is assumed: label the endpoint with one of ${names}, or add it ` +
        'to engineConfigs',
    );
  }
}
