import type { Endpoint } from '../contract/endpoint.js';

/**
 * Predicted times of endpoints, by position in `slots`, in milliseconds; both NaN = no prediction for that endpoint.
 */
export interface EndpointPredictions {
  readonly slots: readonly number[];
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
}

/** State of one endpoint for one request, before the decision. */
export interface EndpointOutlook {
  readonly slot: number;
  readonly endpoint: Endpoint;
  /** Scraped value; undefined = unknown. */
  readonly waiting: number | undefined;
  readonly kvUsage: number | undefined;
  /** Requests in flight of this picker, and their uncached prompt tokens without a first output. */
  readonly inflight: number;
  readonly prefillTokens: number;
  /** Share of the prompt, in blocks, that the endpoint holds by the prefix index. */
  readonly held: number;
}

/** Input of the prediction servers for a request. */
export interface RequestOutlook {
  readonly promptTokens: number;
  readonly endpoints: readonly EndpointOutlook[];
}

/** Prediction for the endpoint of a placed request, and the request's objectives, in milliseconds. */
export interface LatencyPrediction {
  /** Undefined = no prediction. */
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
  /** 0 = no objective. */
  readonly wantedTtftMs: number;
  readonly wantedTpotMs: number;
}
