// Causes of lost cache: why the endpoint that held a block last lost it, and what stood in front of a prompt when it
// was sent last.
//
// Owns: the losses and beginnings parts of REGION_PREFIX, direct-mapped tables of one u64 word an entry. Index lock
// held for every write; read without a lock, a word at a time. A later entry takes the place of an earlier one: a cause
// that is forgotten costs the name of a loss and nothing else, so a repair leaves both tables alone.
//   losses       by chain hash: its upper 60 bits, then LOSS_*. Of a run of blocks that leaves an endpoint the first
//                one is noted: what a later prompt misses begins there.
//   beginnings   by content hash of the prompt's first whole block: its upper 24 bits, 20 bits of the root, 20 bits of
//                what stands between the root and that block.
import { promptBeginning } from '../request-area';
import { BEGINNING_MASK, BEGINNINGS, LOSS_MASK, LOSSES } from './layout';

/** Causes; 0 = none is known. */
export const LOSS_NONE: u32 = 0;
export const LOSS_CAPACITY: u32 = 1; // over the capacity of the endpoint, as the index counts it
export const LOSS_INDEX_FULL: u32 = 2; // the index had no room for it
export const LOSS_TOLD: u32 = 3; // the engine reported its removal
export const LOSS_RESTARTED: u32 = 4; // the engine restarted
export const LOSS_CLEARED: u32 = 5; // the engine cleared its cache
export const LOSS_EVENTS: u32 = 6; // reports of the engine were lost
export const LOSS_GONE: u32 = 7; // the endpoint left the pool
export const LOSS_ROOT: u32 = 8; // sent before for another model, adapter or cache salt
export const LOSS_FRONT: u32 = 9; // sent before behind other tools, another system prompt or another template
export const LOSS_UNCONFIRMED: u32 = 10; // counted as held because it was sent, and the engine did not report it

/** Whether a cause is that the room in a cache went to other blocks. */
export function isEviction(cause: u32): bool {
  return cause == LOSS_CAPACITY || cause == LOSS_TOLD;
}

const CAUSE_BITS: u64 = 4;
const CAUSE_MASK: u64 = 15;

const PART_BITS: u64 = 20;
const PART_MASK: u64 = 0xfffff;
const ROOT_MASK: u64 = PART_MASK << PART_BITS;
const CONTENT_MASK: u64 = ~(((<u64>1) << (2 * PART_BITS)) - 1);

function lossAt(hash: u64): usize {
  return LOSSES + ((<usize>(hash >>> CAUSE_BITS) & LOSS_MASK) << 3);
}

/** Notes why a block, and what is held behind it, leaves an endpoint. Index lock held. */
export function noteLoss(hash: u64, cause: u32): void {
  atomic.store<u64>(lossAt(hash), (hash & ~CAUSE_MASK) | <u64>cause);
}

/** Cause noted for a block that no endpoint holds. */
export function lossOf(hash: u64): u32 {
  const word = atomic.load<u64>(lossAt(hash));
  return (word ^ hash) >>> CAUSE_BITS == 0 ? <u32>(word & CAUSE_MASK) : LOSS_NONE;
}

function beginningAt(content: u64): usize {
  return BEGINNINGS + ((<usize>content & BEGINNING_MASK) << 3);
}

/** Entry of the prompt under way. */
function beginningWord(content: u64): u64 {
  const beginning = promptBeginning();
  return (content & CONTENT_MASK) | ((beginning.root & PART_MASK) << PART_BITS) | (beginning.front & PART_MASK);
}

/** Notes what stands in front of the prompt under way, which has a whole block. Index lock held. */
export function noteBeginning(): void {
  const content = promptBeginning().content;
  if (content == 0) return;
  const at = beginningAt(content);
  const word = beginningWord(content);
  if (load<u64>(at) != word) atomic.store<u64>(at, word);
}

/** LOSS_ROOT or LOSS_FRONT when the beginning of the prompt under way was sent before with something else in front. */
export function beginningLoss(): u32 {
  const content = promptBeginning().content;
  if (content == 0) return LOSS_NONE;
  const before = atomic.load<u64>(beginningAt(content));
  const different = before ^ beginningWord(content);
  if (before == 0 || (different & CONTENT_MASK) != 0) return LOSS_NONE;
  if ((different & ROOT_MASK) != 0) return LOSS_ROOT;
  return different != 0 ? LOSS_FRONT : LOSS_NONE;
}
