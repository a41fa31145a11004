/** One endpoint in the decisions of a window. */
export interface EndpointLoad {
  readonly endpoint: string;
  readonly decided: number;
  readonly failed: number;
  /** Median of the time to the first token, or of whole answers where few were streamed; null = too few ended. */
  readonly medianMs: number | null;
  /** Whether the median is one of whole answers. */
  readonly isWhole: boolean;
}

/** The plugin or the rule that sent most of the traffic of a window to one endpoint. */
export interface Leaning {
  readonly kind: 'scorer' | 'filter';
  /** Configured name of the plugin, or reason of the removals. */
  readonly name: string;
  /** Median of the prompt tokens that the endpoint held, and of all prompt tokens. */
  readonly matchedTokens: number;
  readonly promptTokens: number;
}

/** Where the requests of the last minute went. */
export interface RecentTraffic {
  readonly windowSeconds: number;
  readonly decided: number;
  /** Refused requests by their bound, or by status. */
  readonly refused: Readonly<Record<string, number>>;
  /** Endpoints of the pool, most decisions first. */
  readonly endpoints: readonly EndpointLoad[];
  /** Why the first endpoint was picked; null = no decision that tells has kept its columns. */
  readonly leaning: Leaning | null;
  /** Decisions for the first endpoint that have kept their columns and were looked at. */
  readonly explained: number;
}
