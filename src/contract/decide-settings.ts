/** Names that clients may ask for. */
export interface ModelAccess {
  /** Whether a model has to be named by an objective, a rewrite rule or an InferenceModel (`--require-model-match`). */
  readonly matchRequired: boolean;
  /** Whether the header `x-llm-d-model-name-rewrite` of a client chooses the model (`--model-rewrite-header`). */
  readonly clientsRewrite: boolean;
}

/** How requests of a pool are decided, beside its configuration. */
export interface DecideSettings {
  /** Whether the proxy is told the scores of all candidates (`--emit-endpoint-scores`). */
  readonly emitScores: boolean;
  /** Whether the proxy's subset hint is ignored (`--disable-endpoint-subset-filter`). */
  readonly ignoreSubset: boolean;
  /** Whether a request may choose its profile with a header (`--allow-profile-header`). */
  readonly allowProfileHeader: boolean;
  /** Models that clients may ask for. */
  readonly models: ModelAccess;
  /** Requests from one decision of the candidate configuration to the next; 0 = there is no candidate. */
  readonly shadowEvery: number;
  /** Whether endpoints that fail leave the picks for a while. */
  readonly ejection: boolean;
  /** Milliseconds between two scrapes of an endpoint, at least. */
  readonly refreshMetricsMs: number;
  /** Share of one core that scrapes may take before they come more rarely; undefined = the interval holds for all. */
  readonly scrapeCpuShare: number | undefined;
  /** Age in milliseconds from which on signals count as unknown. */
  readonly stalenessMs: number;
  /** Same seed, same input, one shard: same decisions. */
  readonly seed: bigint;
}
