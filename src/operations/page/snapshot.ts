/** Quantiles of a time in milliseconds; null = nothing was measured. */
export interface Times {
  readonly p50: number | null;
  readonly p95: number | null;
}

/**
 * never reached: its metrics page was never read, so its load is unknown. dead: it takes no connections. silent: its
 * requests in flight get no byte. frozen page: its metrics page stands still although requests end there.
 */
export type EndpointState =
  | 'live'
  | 'never reached'
  | 'frozen page'
  | 'draining'
  | 'ejected'
  | 'probed'
  | 'dead'
  | 'silent';

/** One endpoint. Signals are null while they are unknown. */
export interface EndpointShown {
  readonly id: string;
  readonly state: EndpointState;
  readonly inflight: number;
  readonly tokens: number;
  readonly waiting: number | null;
  readonly running: number | null;
  readonly kvUsage: number | null;
  /** Milliseconds since the last scrape. */
  readonly ageMs: number | null;
  /** Share of the decisions of the window. */
  readonly share: number;
  /** Cached part of the prompts of the window, in tokens. */
  readonly hitRate: number | null;
  readonly ttftMs: number | null;
  /** What its engine tells beside its signals; null = nothing. */
  readonly engine: EngineShown | null;
  /** Filters that hold it back; null = none does. */
  readonly heldBack: HeldBackShown | null;
}

/** Endpoint that overload-filter vetoes, or whose cache warm-up-filter takes for cold. */
export interface HeldBackShown {
  /** Null = it is not vetoed. */
  readonly veto: { readonly seconds: number; readonly limit: 'waiting' | 'kv-cache'; readonly at: number } | null;
  /** Null = it is warm. */
  readonly warming: { readonly seconds: number; readonly share: number } | null;
}

/** Figures of an engine. */
export interface EngineShown {
  /** Waiting requests that room alone does not help; null = the engine does not tell. */
  readonly deferred: number | null;
  /** Requests per second that a limit of its queue refused over the last seconds; they count as waiting. */
  readonly refusedPerSecond: number;
  /** Share of the tokens asked of an external cache that it had; null = none was asked for. */
  readonly externalHitRate: number | null;
  /** Share of each tier in the prompt tokens that came from a cache; empty = none came, or the engine does not tell. */
  readonly cachedBySource: Readonly<Record<string, number>>;
}

/** Traffic of one priority in the window. */
export interface PriorityShown {
  readonly priority: number;
  /** Names of objectives with this priority. */
  readonly objectives: readonly string[];
  readonly decided: number;
  readonly refused: number;
  readonly ttft: Times;
  readonly tpot: Times;
}

/** One point of the charts. */
export interface Point {
  /** Seconds since 1970. */
  readonly time: number;
  readonly perSecond: number;
  readonly ttft: Times;
  /** As the engines told, or as the picker expected where no engine of the window told. */
  readonly hitRate: number | null;
}

/** Means over the requests that were decided in the 10 seconds from a time on. */
export interface PredictedPoint {
  /** Seconds since 1970. */
  readonly time: number;
  /** As predicted before they were learned from. */
  readonly predictedMs: number;
  readonly observedMs: number;
}

export interface CacheShown {
  readonly promptTokens: number;
  /** As the picker thought at the decision. */
  readonly matchedTokens: number;
  /** As reported by engines; null = no engine reports it. */
  readonly hitRate: number | null;
  /** Tokens computed anew, by cause. */
  readonly lost: Readonly<Record<string, number>>;
}

export interface BandShown {
  readonly priority: number;
  /** Names of objectives with this priority. */
  readonly objectives: readonly string[];
  readonly waiting: number;
  readonly running: number;
  readonly used: number;
  readonly flows: readonly {
    readonly flow: string;
    readonly waiting: number;
    readonly running: number;
    readonly headAgeMs: number | null;
  }[];
}

/** Tokens of sessions on an endpoint. */
export interface EndpointSessionsShown {
  readonly id: string;
  /** Tokens of its cache; null = unknown. */
  readonly capacity: number | null;
  /** Protected ones, and what lies between them in the engine's order of eviction. */
  readonly usedTokens: number;
  readonly protectedTokens: number;
}

/** A turn that waits for room of its session. */
export interface HeldTurnShown {
  readonly promptTokens: number;
  readonly waitedMs: number;
  readonly needTokens: number;
  /** Most tokens that sessions leave of any cache; null = no cache is known. */
  readonly bestRoomTokens: number | null;
  /** Whether it goes on from an earlier turn. */
  readonly known: boolean;
  readonly priority: number;
}

/** Sessions of agents. */
export interface SessionsShown {
  /** What waits, and what holding has saved. */
  readonly text: string;
  readonly endpoints: readonly EndpointSessionsShown[];
  /** Those that have waited longest. */
  readonly held: readonly HeldTurnShown[];
}

export interface DecisionShown {
  readonly id: string;
  readonly requestId: string | null;
  /** Seconds since 1970. */
  readonly time: number;
  readonly endpoint: string | null;
  readonly status: string;
  readonly end: string | null;
  readonly httpStatus: number;
  readonly promptTokens: number;
  readonly matchedTokens: number;
  readonly ttftMs: number | null;
  readonly waitedMs: number;
  readonly columns: boolean;
}

/** Decisions of the candidate configuration beside those of the running one. */
export interface ComparisonShown {
  readonly decisions: number;
  /** Share of the decisions in which the candidate picked another endpoint, or none. */
  readonly different: number;
  /** Decisions for which the candidate had no endpoint. */
  readonly unplaced: number;
  /** Mean predicted cost of the picks where both had one, in targets of the request; null = there was none. */
  readonly runningCost: number | null;
  readonly candidateCost: number | null;
}

/** The candidate configuration, which decides in shadow. */
export interface CandidateShown {
  readonly file: string;
  /** Requests from one of its decisions to the next. */
  readonly every: number;
  /** Seconds since this version of it began to decide. */
  readonly seconds: number;
  /** Reason why it no longer decides; null = it decides. */
  readonly stopped: string | null;
  /** Null = no decision so far. */
  readonly all: ComparisonShown | null;
  /** Most decisions first. */
  readonly objectives: readonly (ComparisonShown & { readonly objective: string })[];
}

/** Everything that the page shows at one moment. */
export interface Snapshot {
  /** Seconds since 1970. */
  readonly time: number;
  readonly pool: string;
  /** Names of all pools of the process; null = there is one only. */
  readonly pools: readonly string[] | null;
  readonly version: string;
  /** Reasons why the picker is not ready; empty = ready. */
  readonly unready: readonly string[];
  /** Seconds over which traffic and cache are counted. */
  readonly windowSeconds: number;
  readonly inflight: number;
  readonly endpoints: readonly EndpointShown[];
  readonly priorities: readonly PriorityShown[];
  readonly cache: CacheShown;
  /** Null = flow control is off. */
  readonly queues: {
    readonly waiting: number;
    readonly why: string | null;
    readonly bands: readonly BandShown[];
  } | null;
  /** Null = they are not counted. */
  readonly sessions: SessionsShown | null;
  readonly adaptation: {
    readonly mode: string;
    readonly arm: string;
    readonly inWords: readonly string[];
    /** Decisions in which each term of the cost made a difference; null = not sampled yet. */
    readonly shares: Readonly<Record<string, number>> | null;
    /** Share of the decisions of the window by who made them; null = adaptation is off, or there were none. */
    readonly deciders: { readonly configured: number; readonly learned: number } | null;
    /** Times to first token of streamed answers in the last minutes, oldest first. */
    readonly times: readonly PredictedPoint[];
  };
  /** Null = no candidate configuration runs. */
  readonly candidate: CandidateShown | null;
  readonly decisions: readonly DecisionShown[];
  readonly parts: readonly { readonly name: string; readonly ok: boolean; readonly text: string }[];
  /** Points since the last snapshot; in the first one all points. */
  readonly points: readonly Point[];
}

/** The configuration as the page shows it. */
export interface ConfigurationShown {
  readonly effective: string;
  readonly warnings: readonly string[];
}
