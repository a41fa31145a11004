import type { Decision } from '../../src/core/decision-data.js';
import type { PickWork } from '../../src/scheduling/profile-handler.js';

/** Result of one profile for one endpoint. */
export interface ExplainedEndpoint {
  readonly name: string;
  readonly address: string;
  /** Reason of its exclusion: the name of the filter, or `subset`. */
  readonly removedBy: string | undefined;
  /** Score in [0, 1] by name of the scorer, before its weight. */
  readonly scores: Readonly<Record<string, number>>;
  /** Weighted sum of the scores. */
  readonly total: number | undefined;
  readonly cachedTokens: number;
  /** 1 = picked, further numbers = fallbacks in their order. */
  readonly rank: number | undefined;
}

export interface ExplainedProfile {
  readonly name: string;
  /** Role of its pick for the request; undefined = the profile handler does not run it for this request. */
  readonly work: PickWork | undefined;
  readonly status: Decision['status'];
  /** With `filtered`: the filter that left no endpoint, where load has no part in it. */
  readonly leftNoneBy: string | undefined;
  readonly scorers: readonly { readonly name: string; readonly weight: number }[];
  readonly picker: string;
  readonly endpoints: readonly ExplainedEndpoint[];
  /** Candidates that share the highest total; above 1 the picker may choose any of them. */
  readonly best: number;
}

export interface ExplainedRequest {
  readonly path: string;
  readonly parser: string;
  readonly model: string;
  readonly targetModel: string;
  readonly rewriteRule: string | undefined;
  readonly priority: number;
  readonly fairnessId: string;
  readonly promptTokens: number;
  readonly promptBlocks: number;
}

/** Signals of an endpoint as they were given; null = unknown. */
export interface ExplainedSignals {
  readonly name: string;
  readonly waitingRequests: number | null;
  readonly runningRequests: number | null;
  /** Share of the KV cache in use, 0 to 1. */
  readonly kvUsage: number | null;
  /** Values that filters and scorers of the configuration read, by attribute. */
  readonly attributes: Readonly<Record<string, number | null>>;
  readonly inFlightRequests: number;
  readonly inFlightTokens: number;
}

/** Destination of the request and the headers it gets, or the reason for its rejection. */
export type ExplainedOutcome =
  | {
      readonly kind: 'placed';
      readonly profile: string;
      readonly address: string;
      /** Request headers that are set; null = taken out. */
      readonly headers: Readonly<Record<string, string | null>>;
    }
  | { readonly kind: 'rejected'; readonly status: number; readonly message: string };

export type Explanation =
  | { readonly kind: 'rejected'; readonly code: string; readonly status: number; readonly message: string }
  | {
      readonly kind: 'explained';
      readonly request: ExplainedRequest;
      readonly signals: readonly ExplainedSignals[];
      /** Of the endpoints that the request may use; from 1 on requests of negative priority are turned away. */
      readonly saturation: number;
      readonly shed: boolean;
      /** A plugin that decides in place of the profiles, to which it may fall back. */
      readonly scheduler: string | undefined;
      /** Hook plugins of which a call failed, which did not take part. */
      readonly failedPlugins: readonly string[];
      readonly handler: { readonly name: string; readonly type: string };
      /** Result of the profile handler. */
      readonly outcome: ExplainedOutcome;
      /** Profiles that the handler runs, in its order; then the others, as if each were the first. */
      readonly profiles: readonly ExplainedProfile[];
    };
