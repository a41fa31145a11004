// Matches rounded down to whole blocks of the engine, where the engine's block size is known.
//
// Owns: the thread's MATCH column while it is cut, written by its own thread. Reads the engines' block sizes, without a
// lock: a size that changes meanwhile costs one decision's accuracy.
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_BLOCK_TOKENS, COLUMN_UNTOLD } from '../endpoints';
import { MATCH } from '../memory';
import { request } from '../request-area';

/** Tokens that an engine with blocks of `engine` tokens keeps of the first `tokens` ones. */
function wholeTokens(tokens: u32, engine: u32): u32 {
  return tokens - (tokens % engine);
}

/**
 * Prompt tokens that the pick does not have to compute, of its `matched` blocks. Only a partial last block can reach
 * beyond what the engine keeps: the others were cut already.
 */
export function cachedTokens(slot: u32, matched: u32, whole: bool): u32 {
  const tokens = matched * request().blockTokens;
  if (tokens <= request().promptTokens) return tokens;
  const engine = whole ? column.u32(COLUMN_BLOCK_TOKENS, slot) : 0;
  return engine == 0 ? request().promptTokens : wholeTokens(request().promptTokens, engine);
}

/**
 * Blocks of the index that whole blocks of the engine fill, of `matched` ones that it holds. A block of the index is
 * held with the engine's block in which it ends, so the last of these is whole where no further one ends in it.
 */
function toldBlocks(matched: u32, block: u32, engine: u32): u32 {
  const before = (<u64>(matched + 1) * block + engine - 1) / engine - 1;
  return <u32>((before * engine) / block);
}

/**
 * Cuts every match to what the engine keeps of it. The partial last block behind the prompt's `blocks` whole ones stays
 * where the engine keeps a part of it.
 * @param told whether engines tell which blocks they hold; of the others the prompts that were sent are known
 */
export function creditWholeBlocks(used: u32, blocks: u32, told: bool): void {
  const block = request().blockTokens;
  if (block == 0) return;
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = MATCH + slotOffset(slot);
    const matched = load<u32>(at);
    const engine = column.u32(COLUMN_BLOCK_TOKENS, slot);
    if (matched == 0 || engine == 0) continue;
    if (told && matched <= blocks && column.u32(COLUMN_UNTOLD, slot) == 0) {
      store<u32>(at, min(matched, toldBlocks(matched, block, engine)));
      continue;
    }
    const kept = wholeTokens(matched > blocks ? request().promptTokens : matched * block, engine);
    store<u32>(at, matched > blocks && kept > blocks * block ? matched : min(matched, kept / block));
  }
}
