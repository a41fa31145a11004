/** Tiers of a cache by which vLLM counts the prompt tokens that it did not compute (`source`). */
export const CACHE_SOURCES = ['device', 'host', 'disk', 'p2p'] as const;
export type CacheSource = (typeof CACHE_SOURCES)[number];

/**
 * What an engine tells beside its signals. Undefined = it does not tell. Counts are those since its start, and fall
 * when it starts again.
 */
export interface EngineFigures {
  /** Of the waiting requests, those that room alone does not help: they wait for an adapter or for blocks of others. */
  readonly deferred: number | undefined;
  /** Requests that a limit of its queue refused. */
  readonly refused: number | undefined;
  /** Tokens that a cache outside of the engine was asked for, and those that it had. */
  readonly externalQueries: number | undefined;
  readonly externalHits: number | undefined;
  /** Prompt tokens that came from a cache, by tier, in the order of CACHE_SOURCES. */
  readonly cachedBySource: readonly (number | undefined)[];
}
