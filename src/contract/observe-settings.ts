export interface LogOptions {
  /** `--v`: 2 is the default detail, 3 more, 4 debugging, 5 everything. */
  readonly verbosity: number;
  /** `--zap-log-level`: debug, info, error, panic, or a number as for `--v`. Takes precedence over `verbosity`. */
  readonly zapLogLevel?: string | undefined;
  /** `--zap-encoder`. */
  readonly zapEncoder?: 'json' | 'console' | undefined;
}

/** Sampling of requests. */
export interface SamplerSettings {
  /** Whether the sampled flag of the client's trace decides, where it has one. */
  readonly parentBased: boolean;
  /** Share of the other requests, from 0 to 1. */
  readonly ratio: number;
  /** Whether `traceparent` is read and written (OTEL_PROPAGATORS). */
  readonly propagates: boolean;
}

/** What is told about a pool, and to whom. */
export interface ObserveSettings {
  /** Name of the pool in its metrics, pages and files. */
  readonly poolName: string;
  readonly log: LogOptions;
  /** Whether the metrics port serves the page. */
  readonly ui: boolean;
  /** Whether every gRPC stream is counted (`--enable-grpc-stream-metrics`). */
  readonly streamMetrics: boolean;
  /** Bound on the fairness ids that metrics show; undefined = that of all names of clients, 0 = no id is shown. */
  readonly fairnessIds: number | undefined;
  /** One decision in so many keeps all columns; 0 = only refused and marked ones. */
  readonly columnsEvery: number;
  /** Whether requests with `x-pointsman-explain: 1` keep all columns of their decisions. */
  readonly allowExplain: boolean;
  /** Whether streams are asked for their usage, which is taken out of answers whose clients did not ask. */
  readonly asksUsage: boolean;
  /** Lower-case name of the header of answers that names the endpoint which served; undefined = none. */
  readonly servedByHeader: string | undefined;
  /** Sampling of traces; undefined = no request is traced. */
  readonly sampler: SamplerSettings | undefined;
  /** Files with the usage of each tenant, and the days that they are kept; undefined = none. */
  readonly usage: { readonly folder: string; readonly days: number } | undefined;
}
