// Chains of prompts whose tokens are known: from a tokeniser, or from the events of an engine.
//
// Owns: this thread's HASHES area while a chain is under way; where the chain stands is scratch of the thread. No lock:
// all of it belongs to one thread. What is hashed lies in INPUT.
//
// A token is its id as a little-endian u32, so a chain over ids is the same as that of a body which brings them itself
// (vLLM's and SGLang's generate). A block with more than tokens (images stand as placeholders) mixes the names of those
// parts into the link before it.
import { ASSERTIONS } from '../assertions';
import { CHAIN_BLOCKS, HASH_SEED, HASHES, INPUT } from '../memory';
import { fitsChain, fitsInput } from '../preconditions';
import { promptBeginning } from '../request-area';
import { hashBytes, hashLink } from './hash';

let link: u64 = 0;
let count: u32 = 0;

/**
 * Begins at the root of a model name, which lies in INPUT with a cache salt behind it.
 * @param saltLength bytes of the salt, -1 = none
 */
export function tokenChainBegin(nameLength: u32, saltLength: i32): void {
  if (ASSERTIONS) assert(fitsInput(nameLength), 'the bytes fit into the input of the thread');
  if (ASSERTIONS)
    assert(saltLength < 0 || fitsInput(nameLength + <u32>saltLength), 'name and salt fit into the input of the thread');
  count = 0;
  link = hashLink(HASH_SEED, hashBytes(INPUT, nameLength));
  link = hashLink(link, saltLength < 0 ? 0 : hashBytes(INPUT + nameLength, <u32>saltLength));
  promptBeginning().content = 0;
  promptBeginning().root = link;
}

/** Begins behind the block whose chain hash lies in INPUT. */
export function tokenChainResume(): void {
  count = 0;
  link = load<u64>(INPUT);
}

/** Chain hash that the next block hangs on: of the last block, or the root. */
export function tokenChainEnd(): u64 {
  return link;
}

/** Mixes the `length` bytes in INPUT into the link before the next block. */
export function tokenChainMix(length: u32): void {
  if (ASSERTIONS) assert(fitsInput(length), 'the bytes fit into the input of the thread');
  link = hashLink(link, hashBytes(INPUT, length));
}

/**
 * Appends the whole blocks of `length` bytes in INPUT; at most CHAIN_BLOCKS blocks in all.
 * @returns blocks of the chain so far
 */
export function tokenChainAdd(length: u32, blockBytes: u32): u32 {
  if (ASSERTIONS) assert(fitsInput(length), 'the bytes fit into the input of the thread');
  if (ASSERTIONS) assert(blockBytes != 0, 'a block has bytes');
  let from = INPUT;
  while (length >= blockBytes && count < CHAIN_BLOCKS) {
    link = hashLink(link, hashBytes(from, blockBytes));
    store<u64>(HASHES + ((<usize>count) << 3), link);
    from += blockBytes;
    length -= blockBytes;
    count++;
  }
  if (ASSERTIONS) assert(fitsChain(count), 'the blocks are those of one chain');
  return count;
}

/**
 * Writes the hash of a last block that is not whole, `length` bytes in INPUT, behind the others.
 * @returns 0 when CHAIN_BLOCKS blocks stand there
 */
export function tokenChainTail(length: u32): u32 {
  if (ASSERTIONS) assert(fitsInput(length), 'the bytes fit into the input of the thread');
  if (ASSERTIONS) assert(fitsChain(count), 'the blocks are those of one chain');
  if (count >= CHAIN_BLOCKS) return 0;
  store<u64>(HASHES + ((<usize>count) << 3), hashLink(link, hashBytes(INPUT, length)));
  return 1;
}
