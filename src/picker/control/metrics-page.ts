import { ConnectionRefusals, METRICS_REFUSALS } from '../../ingress/connection-refusals.js';
import { Handshakes } from '../../ingress/transports/handshakes.js';
import { noSuchPool, poolsRoute, REQUESTS_PATH, requestRoute } from '../../operations/debug-pages.js';
import { type MetricsText, mergedPages } from '../../operations/telemetry/merged-pages.js';
import {
  type MetricsServer,
  REFUSED_PAGES,
  type RefusedPage,
  type Route,
  startMetricsServer,
} from '../../operations/telemetry/metrics-server.js';
import type { VouchedNames } from '../../operations/telemetry/shown-names.js';
import { PacedReport } from '../../runtime/paced-report.js';
import type { Part } from '../part.js';
import type { PickerOptions } from '../picker-options.js';
import type { PoolPages } from './pool-pages.js';

export interface MetricsPageOptions {
  readonly options: PickerOptions;
  /** Pages of the process's own pool. */
  readonly own: PoolPages;
  /** Pages of the other pools by their names; undefined = the process serves its own pool only. */
  readonly further: (() => ReadonlyMap<string, PoolPages>) | undefined;
  /** Reason why the file of the other pools is not in effect; undefined = it is. */
  readonly poolsProblem: () => string | undefined;
}

/** The metrics port: `/metrics` of all pools, and the debug pages of each. Starts after the parts that it shows. */
export class MetricsPage implements Part {
  readonly #options: MetricsPageOptions;
  #server: MetricsServer | undefined;

  constructor(options: MetricsPageOptions) {
    this.#options = options;
  }

  /** The port; 0 before the start. */
  get port(): number {
    return this.#server?.port ?? 0;
  }

  /** Replaces the vouched names, which are label values as they are. */
  vouch(names: VouchedNames): void {
    this.#options.own.vouch(names);
  }

  async start(): Promise<void> {
    const { options, own, further } = this.#options;
    const { listen, metricsAccess, kubernetes, log } = options;
    const { addresses, metricsPort, metricsTls } = listen;
    await own.start();
    const lines = log.child({ part: 'metrics' });
    const refusals = new ConnectionRefusals(METRICS_REFUSALS, (text, details) => lines.warn(details, text));
    const refusedPages = new PacedReport<RefusedPage>((details, count) =>
      lines.warn({ ...details, count }, REFUSED_PAGES),
    );
    this.#server = await startMetricsServer({
      host: addresses.metrics,
      port: metricsPort,
      exposition: further === undefined ? () => own.exposition() : () => allPools(own, further()),
      tls: metricsTls,
      boundHandshakes: (server, connectionsMax) => new Handshakes(server, { connectionsMax, refusals }),
      hosts: listen.metricsHosts,
      routes: this.#routes(),
      actions: this.#actions(),
      mayRead: metricsAccess ?? kubernetes?.mayRead,
      report: (problem) => lines.error(problem),
      refused: (details) => refusedPages.note(details),
    });
  }

  async stop(): Promise<void> {
    this.#options.own.stop();
    await this.#server?.close();
  }

  #pools(): ReadonlyMap<string, PoolPages> {
    const { own, further } = this.#options;
    return new Map([...(this.#hasOwn ? [[own.summary.name, own] as const] : []), ...(further?.() ?? [])]);
  }

  /** Answers from the pages of the pool that a request names (`?pool=`), else of the first pool. */
  #ofPool(routeOf: (pages: PoolPages) => Route | undefined): Route {
    const { own } = this.#options;
    return (request, response) => {
      const all = this.#pools();
      const name = new URL(request.url ?? '/', 'http://localhost').searchParams.get('pool');
      const pages = name === null ? (all.values().next().value ?? own) : all.get(name);
      const route = pages && routeOf(pages);
      if (route !== undefined) return route(request, response);
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(pages === undefined ? `${noSuchPool(name ?? '', [...all.keys()])}\n` : 'not found\n');
    };
  }

  #actions(): ReadonlyMap<string, Route> {
    const paths = [...this.#options.own.actions.keys()];
    return new Map(paths.map((path) => [path, this.#ofPool(({ actions }) => actions.get(path))]));
  }

  /** The debug pages of every pool. */
  #routes(): ReadonlyMap<string, Route> {
    const { own, further, poolsProblem } = this.#options;
    const paths = [...own.routes.keys()];
    if (further === undefined)
      return new Map(paths.map((path) => [path, this.#ofPool(({ routes }) => routes.get(path))]));
    const pools = () => this.#pools();
    const anyStory = requestRoute({
      tell(id, pool) {
        for (const [name, pages] of pools()) {
          const story = pool === undefined || pool === name ? pages.story(id) : undefined;
          if (story !== undefined) return story;
        }
        return undefined;
      },
    });
    const all = [...new Set([...paths, '/debug/flow-control'])];
    return new Map<string, Route>([
      ...all.map((path) => [path, this.#ofPool(({ routes }) => routes.get(path))] as const),
      [REQUESTS_PATH, anyStory],
      ['/debug/pools', poolsRoute(() => [...pools().values()].map(({ summary }) => summary), poolsProblem)],
    ]);
  }

  get #hasOwn(): boolean {
    return this.#options.options.hasOwnPool;
  }
}

/** The metrics of all pools as one page. */
async function allPools(own: PoolPages, further: ReadonlyMap<string, PoolPages>): Promise<MetricsText> {
  const page = await own.exposition();
  const pages = await Promise.all([...further].map(async ([name, pool]) => [name, await pool.exposition()] as const));
  return { pieces: () => mergedPages(page, new Map(pages)) };
}
