/** Kinds of requests whose decisions can be told to keep their columns. */
export const KEPT_BY = ['tenant', 'model', 'session'] as const;

/** Requests whose decisions keep their columns for a while, with any outcome. */
export interface KeptColumns {
  /** Numbers are not used twice. */
  readonly number: number;
  readonly by: (typeof KEPT_BY)[number];
  /** Fairness id, model name as the client writes it, or value of `x-session-id` or `x-session-token`. */
  readonly value: string;
  /** Milliseconds of the pool clock. */
  readonly untilMs: number;
  /** Most decisions of each shard. */
  readonly decisions: number;
}
