import type { DecisionRecord } from '../../core/decision-log.js';

/**
 * Why tokens of a prompt were computed again that a cache held, or was thought to hold.
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

type LoggedMatch = Pick<
  DecisionRecord,
  'status' | 'totalBlocks' | 'matchedBlocks' | 'blockTokens' | 'promptTokens' | 'best' | 'cachedTokens'
>;

/** The cause with the most tokens; undefined for a prompt that was cached whole, or without a prompt. */
export function cacheLossOf(record: LoggedMatch): CacheLoss | undefined {
  if (record.status !== 'decided' || record.totalBlocks === 0) return undefined;
  const tokens = (blocks: number) => Math.min(blocks * record.blockTokens, record.promptTokens);
  const held = tokens(record.matchedBlocks);
  // Engines count whole blocks and their own special tokens: less than a block is no loss.
  const told = record.cachedTokens === undefined ? held : record.cachedTokens;
  const losses: CacheLoss[] = [];
  if (held - told >= record.blockTokens) losses.push({ cause: 'evicted', tokens: held - told });
  const { best } = record;
  if (best !== undefined) losses.push({ cause: causeOf(best.removed), tokens: tokens(best.matchedBlocks) - held });
  const known = Math.max(held, best === undefined ? 0 : tokens(best.matchedBlocks));
  if (record.promptTokens - known >= record.blockTokens) {
    losses.push({ cause: 'never-stored', tokens: record.promptTokens - known });
  }
  return losses.sort((a, b) => rank(a) - rank(b) || b.tokens - a.tokens)[0];
}

/** A loss that could have been avoided is told before what no endpoint ever held. */
function rank({ cause }: CacheLoss): number {
  return cause === 'never-stored' ? 1 : 0;
}

function causeOf(removed: NonNullable<DecisionRecord['best']>['removed']): CacheLossCause {
  if (removed === undefined) return 'by-load';
  if (removed === 'gate') return 'by-overload';
  return removed === 'not-admitted' ? 'endpoint-away' : 'by-filter';
}
