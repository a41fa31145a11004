/** Servers that speak llm-d-router's prediction protocol, and how they are asked. */
export interface PredictionServers {
  /** Addresses; empty = the built-in model predicts, and only samples are sent. */
  readonly prediction: readonly string[];
  readonly training: string | undefined;
  /** Rows of one caller's call at most; a larger pool is asked in several. */
  readonly rowsMax: number;
  /** Rows from which on a call does not wait for others to join it; 0 = no bound. */
  readonly coalescedRowsMax: number;
  /** Milliseconds that a call waits for others to join it. */
  readonly coalesceMs: number;
  /** Calls under way at once. */
  readonly dispatchesMax: number;
  /** Milliseconds after which a call is given up. */
  readonly timeoutMs: number;
  /** Samples of one flush at most, and milliseconds between two. */
  readonly samplesMax: number;
  readonly flushMs: number;
}

/** Settings of latency prediction. */
export interface PredictionSettings {
  /** Whether it predicts, or only learns. */
  readonly predicts: boolean;
  /** Whether answers are streamed: single tokens have a time. */
  readonly streaming: boolean;
  /** Factor of the wanted time per output token. */
  readonly bufferFactor: number;
  /** Label whose value `prefill` marks endpoints without output; empty = none. */
  readonly roleLabel: string;
  /** Undefined = the built-in model predicts, and no samples are sent. */
  readonly servers: PredictionServers | undefined;
  /** Milliseconds that a request waits for prediction servers. */
  readonly waitMs: number;
  /** Whether the model predicts where the servers give no prediction. */
  readonly modelWhenServersFail: boolean;
  /** Priors of the model. */
  readonly prior: { readonly prefillTokensPerSecond: number; readonly tpotMs: number };
}
