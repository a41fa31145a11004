/** How the flows of a band share it. Plain data: a configured fairness policy with every default filled in. */
export type FairnessSettings =
  /** The best request by the ordering policy, whichever flow it is in. */
  | { readonly kind: 'global-strict' }
  /** Flows in turn, one request each. */
  | { readonly kind: 'round-robin' }
  /** Least attained service, weighed against the wait of a flow's first request (llm-d-router's program-aware-fairness). */
  | {
      readonly kind: 'program-aware';
      readonly serviceWeight: number;
      readonly headWaitWeight: number;
      readonly halfLifeMs: number;
    }
  /** Start-time fair queueing by tokens: prompt that is not cached, and output. */
  | { readonly kind: 'start-time'; readonly weights: FlowWeights }
  /** Deficit round robin by the same tokens. */
  | { readonly kind: 'deficit-round-robin'; readonly weights: FlowWeights; readonly quantumTokens: number };

/** Shares of flows by fairness id; flows that are not named have weight 1. All above 0. */
export type FlowWeights = Readonly<Record<string, number>>;

/** Which request of a flow goes first. */
export type OrderingSettings =
  /** In the order of arrival. */
  | { readonly kind: 'arrival' }
  /** Earliest deadline: the request's own, and arrival + time to live. */
  | { readonly kind: 'deadline' }
  /** Earliest end of the request's time-to-first-token objective; requests without one last. */
  | { readonly kind: 'first-token-objective' }
  /**
   * Weighted shortest processing time: a request waits behind shorter ones as if it had come later, `msPerToken` for each
   * token of its prompt that is not cached, never more than `ageBoundMs`.
   */
  | { readonly kind: 'shortest-first'; readonly msPerToken: number; readonly ageBoundMs: number };

/** What may wait at once. Infinity = no bound. */
export interface QueueLimits {
  readonly requests: number;
  /** Bytes of request bodies. */
  readonly bytes: number;
  /** Tokens of prompts that are not cached, and of expected outputs. */
  readonly tokens: number;
  /**
   * Of a band without a bound on tokens: no more may be ahead of a request than its band drains within the time to live at the
   * best rate of the last minutes. Unbounded while the pool is empty, the rate unknown or the time to live endless.
   */
  readonly tokensByRate?: boolean;
}

/** What bands of one kind are like. */
export interface BandSettings {
  readonly limits: QueueLimits;
  readonly fairness: FairnessSettings;
  readonly ordering: OrderingSettings;
}

/** How full the pool may get for each band. */
export type UsageLimitSettings =
  | { readonly kind: 'static'; readonly threshold: number }
  | {
      readonly kind: 'holdback';
      readonly domain: 'rank' | 'value';
      readonly minCeiling: number;
      readonly maxCeiling: number;
    }
  | { readonly kind: 'soft-reflective' };

/** A tenant may use so many tokens a second, and `burstTokens` at once. */
export interface TokenBucketSettings {
  /** `*` = every tenant that is not named, each with a bucket of its own. */
  readonly fairnessId: string;
  readonly tokensPerSecond: number;
  readonly burstTokens: number;
}

/** Everything that the queues are told by the configuration. */
export interface FlowControlSettings {
  /** Of all bands together. */
  readonly limits: QueueLimits;
  /** Longest wait in milliseconds while the pool has endpoints; Infinity = no end. */
  readonly ttlMs: number;
  /** Longest wait in milliseconds while it has none; Infinity = no end. */
  readonly noEndpointTtlMs: number;
  /** A request whose expected wait is longer is refused when it comes, in milliseconds; Infinity = never. */
  readonly maxExpectedWaitMs: number;
  /** Bands with settings of their own. Priorities differ. */
  readonly bands: readonly (BandSettings & { readonly priority: number })[];
  /** Bands that come into being at run time; undefined = like the configured band next below. */
  readonly template: BandSettings | undefined;
  /** The same below priority 0. */
  readonly negativeTemplate: BandSettings | undefined;
  /** Bands that nothing else describes. */
  readonly fallback: BandSettings;
  readonly usageLimit: UsageLimitSettings;
  readonly tenantLimits: readonly TokenBucketSettings[];
  /** Pickers that serve the pool side by side, this one included; each fills its share of every endpoint. */
  readonly replicas: number;
  /** A waiting request of a higher band may end a running one of a lower. */
  readonly enableEviction: boolean;
}
