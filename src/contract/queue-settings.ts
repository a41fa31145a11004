/**
 * Policy by which the flows of a band share it. Plain data: a configured fairness policy with all defaults filled in.
 */
export type FairnessSettings =
  /** The best request by the ordering policy, regardless of its flow. */
  | { readonly kind: 'global-strict' }
  /** Flows in turn, one request each. */
  | { readonly kind: 'round-robin' }
  /**
   * Least attained service, weighed against the wait of a flow's first request (llm-d-router's program-aware-fairness).
   */
  | {
      readonly kind: 'program-aware';
      readonly serviceWeight: number;
      readonly headWaitWeight: number;
      readonly halfLifeMs: number;
    }
  /** The flow with most turns, weighed against the wait of its first request (llm-d-router's `turn-priority`). */
  | {
      readonly kind: 'turn-priority';
      /** Turns that one second of the wait counts for. */
      readonly timeWeight: number;
      /** Idle time in milliseconds after which a flow's next request counts as a first turn; Infinity = never. */
      readonly inactivityMs: number;
      /** Idle time in milliseconds after which a flow's turns are forgotten; Infinity = never. */
      readonly forgetMs: number;
    }
  /** Start-time fair queueing by uncached prompt tokens and output tokens. */
  | { readonly kind: 'start-time'; readonly weights: FlowWeights }
  /** Deficit round robin by the same tokens. */
  | { readonly kind: 'deficit-round-robin'; readonly weights: FlowWeights; readonly quantumTokens: number };

/** Shares of flows by fairness id, all above 0; other flows have weight 1. */
export type FlowWeights = Readonly<Record<string, number>>;

/** Order of the requests within a flow. */
export type OrderingSettings =
  /** In the order of arrival. */
  | { readonly kind: 'arrival' }
  /** Earliest deadline: the request's own, and arrival + time to live. */
  | { readonly kind: 'deadline' }
  /** Earliest end of the time-to-first-token objective; requests without one come last. */
  | { readonly kind: 'first-token-objective' }
  /**
   * Weighted shortest processing time: a request sorts as if it had arrived `msPerToken` later for each uncached token
   * of its prompt, at most `ageBoundMs`.
   */
  | { readonly kind: 'shortest-first'; readonly msPerToken: number; readonly ageBoundMs: number };

/** Bounds on the waiting requests. Infinity = no bound. */
export interface QueueLimits {
  readonly requests: number;
  /** Bytes of request bodies. */
  readonly bytes: number;
  /** Uncached tokens of prompts and tokens of expected outputs. */
  readonly tokens: number;
  /**
   * Bounds a band without a bound on tokens by its rate: the tokens ahead of a request must not exceed what the band
   * drains within the time to live at the best rate of the last minutes. Without effect while the pool is empty, the
   * rate is unknown or the time to live is endless.
   */
  readonly tokensByRate?: boolean;
}

/** Settings of one kind of band. */
export interface BandSettings {
  readonly limits: QueueLimits;
  /**
   * Longest wait in milliseconds while the pool has endpoints; Infinity = no end, absent = that of the queues.
   */
  readonly ttlMs?: number | undefined;
  readonly fairness: FairnessSettings;
  readonly ordering: OrderingSettings;
}

/** Saturation up to which each band is dispatched. */
export type UsageLimitSettings =
  | { readonly kind: 'static'; readonly threshold: number }
  | {
      readonly kind: 'holdback';
      readonly domain: 'rank' | 'value';
      readonly minCeiling: number;
      readonly maxCeiling: number;
    }
  | { readonly kind: 'soft-reflective' };

/** Bound on a tenant's tokens per second, with `burstTokens` at once. */
export interface TokenBucketSettings {
  /** `*` = every tenant without a bucket of its own settings, each with a separate bucket. */
  readonly fairnessId: string;
  readonly tokensPerSecond: number;
  readonly burstTokens: number;
}

/** How engines are asked to keep the blocks of sessions for longer than those of other requests. */
export interface RetentionHint {
  readonly engine: 'sglang' | 'dynamo';
  readonly priority: number;
}

/** Settings of the sessions: chains of prompts each of which begins with the one before. */
export interface SessionSettings {
  /** off = not counted; shadow = counted, and decisions do not ask it; on = turns without room are held. */
  readonly mode: 'off' | 'shadow' | 'on';
  /** Share of an endpoint's cache below which a prompt is no session's turn. */
  readonly smallPrompt: number;
  /** Share of a cache that a turn may exceed once it was held for long. */
  readonly stretch: number;
  /** Milliseconds after which a held turn goes on without room; Infinity = never. */
  readonly maxWaitMs: number;
  /** Milliseconds for which an idle session keeps its place; absent = while the odds of its return are worth it. */
  readonly idleLeaseMs?: number | undefined;
  /** Tokens that a cache holds while its endpoint does not tell; absent = it has room for every turn. */
  readonly capacityTokens?: number | undefined;
  /** Share of a cache that sessions may fill; absent = all of it. */
  readonly usableCache?: number | undefined;
  /** Milliseconds after which a session without a place is forgotten; absent = when its entry is needed. */
  readonly forgetAfterMs?: number | undefined;
  /** Absent = engines are not asked. */
  readonly retention?: RetentionHint | undefined;
  /** Attribute of a request that names its session; undefined = its prompt tells. */
  readonly attribute?: string | undefined;
}

/** Configured settings of the queues. */
export interface FlowControlSettings {
  /** Bounds on all bands together. */
  readonly limits: QueueLimits;
  /** Longest wait in milliseconds while the pool has endpoints; Infinity = no end. */
  readonly ttlMs: number;
  /** Longest wait in milliseconds while the pool has no endpoints; Infinity = no end. */
  readonly noEndpointTtlMs: number;
  /** Expected wait in milliseconds above which a new request is refused; Infinity = never. */
  readonly maxExpectedWaitMs: number;
  /** Bands with settings of their own. Priorities differ. */
  readonly bands: readonly (BandSettings & { readonly priority: number })[];
  /** Settings of bands made at run time; undefined = those of the next lower configured band. */
  readonly template: BandSettings | undefined;
  /** The same for priorities below 0. */
  readonly negativeTemplate: BandSettings | undefined;
  /** Settings of bands that no other settings describe. */
  readonly fallback: BandSettings;
  readonly usageLimit: UsageLimitSettings;
  readonly tenantLimits: readonly TokenBucketSettings[];
  /** Pickers that serve the pool, this one included; each fills its share of every endpoint. */
  readonly replicas: number;
  /** Whether a running request of a lower band may be evicted for a waiting one of a higher band. */
  readonly enableEviction: boolean;
  readonly sessions: SessionSettings;
}
