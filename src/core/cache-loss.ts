import { CORE } from './core-names.js';

/** Reasons for which another endpoint held more of a prompt than the pick, or the pick less than expected. */
type AvoidableLoss = 'by-load' | 'by-filter' | 'by-overload' | 'endpoint-away' | 'evicted';

/** Reasons for which an idle session has lost its place in a cache. */
export type SessionLoss = 'session-lapsed' | 'session-lost';

/** Reasons for which no endpoint held more of a prompt, although it, or its beginning, was sent before. */
export type FormerLoss =
  | 'evicted-predicted'
  | 'evicted-told'
  | 'unconfirmed'
  | 'index-full'
  | 'engine-restarted'
  | 'cache-cleared'
  | 'events-lost'
  | 'endpoint-gone'
  | 'adapter-changed'
  | 'template-changed';

/**
 * Reason why tokens of a prompt were computed again that a cache held, or was thought to hold. by-load: another
 * endpoint held more and scored less · by-filter: a filter or the proxy's hint took it out · by-overload: it had no
 * room · endpoint-away: it was draining, ejected or silent · evicted: the picked endpoint was thought to hold them, and
 * its engine told less · evicted-predicted: over the capacity of the endpoint, as the index counts it · evicted-told:
 * the engine reported it · unconfirmed: they counted as held because they had been sent there, and the engine did not
 * report them in time · index-full: the index forgot them for want of room · engine-restarted: its process
 * ended, or a new process or container took its place · cache-cleared: by the engine · events-lost: reports of the
 * engine were lost, so its blocks counted as
 * gone · endpoint-gone: the endpoint that held them left the pool · adapter-changed: the same text was sent before for
 * another model, adapter or cache salt · template-changed: behind other tools, another system prompt or another
 * template · session-lapsed: they were a session's whose place was given to another turn · session-lost: the same, and
 * the engine forgot them for want of room · never-stored: none of these
 */
export type CacheLossCause = AvoidableLoss | FormerLoss | SessionLoss | 'never-stored';

/** Causes by their number in a record. */
const FORMER_LOSSES: Readonly<Record<number, FormerLoss>> = {
  [CORE.LOSS_CAPACITY]: 'evicted-predicted',
  [CORE.LOSS_INDEX_FULL]: 'index-full',
  [CORE.LOSS_TOLD]: 'evicted-told',
  [CORE.LOSS_UNCONFIRMED]: 'unconfirmed',
  [CORE.LOSS_RESTARTED]: 'engine-restarted',
  [CORE.LOSS_CLEARED]: 'cache-cleared',
  [CORE.LOSS_EVENTS]: 'events-lost',
  [CORE.LOSS_GONE]: 'endpoint-gone',
  [CORE.LOSS_ROOT]: 'adapter-changed',
  [CORE.LOSS_FRONT]: 'template-changed',
};

/** Number of a cause that is told to the index. */
export const TOLD_LOSSES = {
  'engine-restarted': CORE.LOSS_RESTARTED,
  'cache-cleared': CORE.LOSS_CLEARED,
  'events-lost': CORE.LOSS_EVENTS,
  'endpoint-gone': CORE.LOSS_GONE,
  unconfirmed: CORE.LOSS_UNCONFIRMED,
} as const satisfies Partial<Record<FormerLoss, number>>;

export type ToldLoss = keyof typeof TOLD_LOSSES;

/** Number of a cause for which single blocks leave an endpoint that stays. */
export const BLOCK_LOSSES = {
  'evicted-told': CORE.LOSS_TOLD,
  unconfirmed: CORE.LOSS_UNCONFIRMED,
} as const satisfies Partial<Record<FormerLoss, number>>;

export type BlockLoss = keyof typeof BLOCK_LOSSES;

/** Cause by its LOSS_* number; undefined = none is known. */
export function formerLossOf(number: number): FormerLoss | undefined {
  return FORMER_LOSSES[number];
}

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
  /** Former loss of the first block that no endpoint held; undefined = unknown. */
  readonly former: FormerLoss | undefined;
  /** Undefined = the engine did not tell. */
  readonly told: number | undefined;
  /** Reason why the session of the prompt had lost its place; undefined = it had not, or the prompt has none. */
  readonly session?: SessionLoss | undefined;
}

/** Causes that say that an engine has evicted tokens, and not why. */
const EVICTIONS: ReadonlySet<CacheLossCause> = new Set(['evicted', 'evicted-predicted', 'evicted-told']);

/**
 * The avoidable loss of most tokens, else the cause for which no endpoint held them. Engines count whole blocks and
 * special tokens of their own, so less than a block is no loss. What a session has lost is evicted for that reason.
 * @returns undefined for a prompt that was cached whole
 */
export function cacheLossOf(cached: CachedTokens): CacheLoss | undefined {
  const loss = plainLossOf(cached);
  if (loss === undefined || cached.session === undefined || !EVICTIONS.has(loss.cause)) return loss;
  return { ...loss, cause: cached.session };
}

function plainLossOf(cached: CachedTokens): CacheLoss | undefined {
  const { promptTokens, blockTokens, held, best, former, told = held } = cached;
  const evicted = held - told >= blockTokens ? held - told : 0;
  const elsewhere = best - held;
  if (evicted > 0 && evicted >= elsewhere) return { cause: 'evicted', tokens: evicted };
  if (elsewhere > 0) return { cause: cached.bestCause, tokens: elsewhere };
  // An engine can hold more than is known of it, as after the start of the picker.
  const unseen = promptTokens - Math.max(held, told);
  return unseen >= blockTokens ? { cause: former ?? 'never-stored', tokens: unseen } : undefined;
}
