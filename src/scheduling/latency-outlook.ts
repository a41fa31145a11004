import type { Endpoint } from '../pool/endpoint.js';

/** Predicted times of endpoints, by position in `slots`, in milliseconds; both NaN = nothing is known of that one. */
export interface EndpointPredictions {
  readonly slots: readonly number[];
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
}

/** What is known about one endpoint for one request, before the decision. */
export interface EndpointOutlook {
  readonly slot: number;
  readonly endpoint: Endpoint;
  /** As scraped; undefined when unknown. */
  readonly waiting: number | undefined;
  readonly kvUsage: number | undefined;
  /** Requests, and uncached prompt tokens without a first output, in flight from here. */
  readonly inflight: number;
  readonly prefillTokens: number;
  /** Share of the prompt, in blocks, that it is thought to hold. */
  readonly held: number;
}

/** What prediction servers are told about a request. */
export interface RequestOutlook {
  readonly promptTokens: number;
  readonly endpoints: readonly EndpointOutlook[];
}

/** What was predicted for the endpoint that a request was placed on, and what the request wants, in milliseconds. */
export interface LatencyPrediction {
  /** Undefined = nothing was predicted. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** 0 = the request does not say. */
  readonly wantedTtftMs: number;
  readonly wantedTpotMs: number;
}
