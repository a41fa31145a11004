/**
 * Reason why tokens of a prompt were computed again that a cache held, or was thought to hold.
 * by-load: another endpoint held more and scored less · by-filter: a filter or the proxy's hint took it out · by-overload: it
 * had no room · endpoint-away: it was draining or ejected · evicted: the picked endpoint was thought to hold them, and its
 * engine told less · never-stored: no endpoint was thought to hold them
 */
export type CacheLossCause = 'by-load' | 'by-filter' | 'by-overload' | 'endpoint-away' | 'evicted' | 'never-stored';

export interface CacheLoss {
  readonly cause: CacheLossCause;
  /** Prompt tokens that this cause concerns. */
  readonly tokens: number;
}

/** Cached tokens of a prompt: at the pick, at the endpoint that held most, and as the engine told. */
export interface CachedTokens {
  readonly promptTokens: number;
  readonly blockTokens: number;
  readonly held: number;
  /** Tokens at the endpoint that held most, and the cause for which it was not picked. */
  readonly best: number;
  readonly bestCause: CacheLossCause;
  /** Undefined = the engine did not tell. */
  readonly told: number | undefined;
}

/**
 * The cause of the loss that could have been avoided and concerns most tokens, else `never-stored`. Engines count whole blocks
 * and special tokens of their own, so less than a block is no loss.
 * @returns undefined for a prompt that was cached whole
 */
export function cacheLossOf(cached: CachedTokens): CacheLoss | undefined {
  const { promptTokens, blockTokens, held, best, told = held } = cached;
  const evicted = held - told >= blockTokens ? held - told : 0;
  const elsewhere = best - held;
  if (evicted > 0 && evicted >= elsewhere) return { cause: 'evicted', tokens: evicted };
  if (elsewhere > 0) return { cause: cached.bestCause, tokens: elsewhere };
  const unseen = promptTokens - Math.max(held, best);
  return unseen >= blockTokens ? { cause: 'never-stored', tokens: unseen } : undefined;
}
