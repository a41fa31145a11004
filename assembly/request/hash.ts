// The 64-bit hash of blocks, names and roots.
//
// Owns: nothing of its own; works on hash streams that lie in scan states (this thread's part of REGION_SCANS) and
// writes chains into this thread's HASHES area. No lock: all of it belongs to one thread.
//
// A content hash is the lanes of XXH64 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md) over 32-byte stripes, the last
// one padded with zeros, then a merge of the four lanes that costs ten multiplications where XXH64's costs fourteen;
// the length goes into the merge, so padding differs from content. Every lane is multiplied by an odd constant before
// it meets another, so that differences of few bits in two lanes cannot cancel. The lanes start from the pool's
// HASH_SEED: collisions cannot be constructed without it.
//
// Content hashes do not depend on each other (blocks hash in parallel in the processor); a chain links them with one
// multiplication per block. A chain hash stands for everything from the root to the end of its block.
import { CHAIN_BLOCKS, HASH_SEED, HASHES, INPUT } from '../memory';
import { HashStream } from './scan-state';

const PRIME_1: u64 = 0x9e3779b185ebca87;
const PRIME_2: u64 = 0xc2b2ae3d27d4eb4f;
const PRIME_3: u64 = 0x165667b19e3779f9;
const PRIME_4: u64 = 0x85ebca77c2b2ae63;
const PRIME_5: u64 = 0x27d4eb2f165667c5;

export const HASH_STRIPE: u32 = 32;

/** 32 bytes of content: a word for each lane. */
@unmanaged
class Stripe {
  /** Word of the first lane · host · none, in the caller's own input. */
  a: u64;
  /** Word of the second lane · host · none, in the caller's own input. */
  b: u64;
  /** Word of the third lane · host · none, in the caller's own input. */
  c: u64;
  /** Word of the fourth lane · host · none, in the caller's own input. */
  d: u64;
}

function round(lane: u64, word: u64): u64 {
  return rotl<u64>(lane + word * PRIME_2, 31) * PRIME_1;
}

function merge(a: u64, b: u64, c: u64, d: u64, length: u32): u64 {
  const left = rotl<u64>(a * PRIME_2, 31) ^ (b * PRIME_3);
  const right = rotl<u64>(c * PRIME_2, 31) ^ (d * PRIME_3);
  let hash = (left * PRIME_1) ^ rotl<u64>(right * PRIME_4, 27) ^ (<u64>length * PRIME_5);
  hash = (hash ^ (hash >>> 33)) * PRIME_2;
  hash = (hash ^ (hash >>> 29)) * PRIME_3;
  return hash ^ (hash >>> 32);
}

/** The 8 bytes at `from`, zeros beyond `left` bytes; reads nothing beyond them. */
function partialWord(from: usize, left: i32): u64 {
  if (left >= 8) return load<u64>(from);
  let word: u64 = 0;
  for (let i = left - 1; i >= 0; i--) word = (word << 8) | <u64>load<u8>(from + i);
  return word;
}

/** Content hash of `length` bytes at `from`. */
export function hashBytes(from: usize, length: u32): u64 {
  let a = HASH_SEED + PRIME_1 + PRIME_2;
  let b = HASH_SEED + PRIME_2;
  let c = HASH_SEED;
  let d = HASH_SEED - PRIME_1;
  let left = length;
  while (left >= HASH_STRIPE) {
    const stripe = changetype<Stripe>(from);
    a = round(a, stripe.a);
    b = round(b, stripe.b);
    c = round(c, stripe.c);
    d = round(d, stripe.d);
    from += HASH_STRIPE;
    left -= HASH_STRIPE;
  }
  if (left > 0) {
    a = round(a, partialWord(from, <i32>left));
    b = round(b, partialWord(from + 8, <i32>left - 8));
    c = round(c, partialWord(from + 16, <i32>left - 16));
    d = round(d, partialWord(from + 24, <i32>left - 24));
  }
  return merge(a, b, c, d, length);
}

/** Content hash of `length` bytes at `from`, written as a u64 to `to` (8-byte words cross to the host by memory). */
export function hashBytesTo(from: usize, length: u32, to: usize): void {
  store<u64>(to, hashBytes(from, length));
}

/** Next link of a chain, from the link before it and the content hash of the block. */
export function hashLink(before: u64, content: u64): u64 {
  const link = (rotl<u64>(before, 29) + content) * PRIME_3;
  return link ^ (link >>> 32);
}

/** Begins a hash stream. */
export function streamReset(stream: HashStream): void {
  stream.a = HASH_SEED + PRIME_1 + PRIME_2;
  stream.b = HASH_SEED + PRIME_2;
  stream.c = HASH_SEED;
  stream.d = HASH_SEED - PRIME_1;
  stream.fill = 0;
  stream.length = 0;
}

/** Bytes absorbed since the reset. */
export function streamLength(stream: HashStream): u32 {
  return stream.length;
}

/** Absorbs `length` bytes at `from`; in how many pieces a content comes makes no difference. */
export function streamAbsorb(stream: HashStream, from: usize, length: u32): void {
  stream.length = streamLength(stream) + length;
  const fill = stream.fill;
  if (fill > 0) {
    const room = HASH_STRIPE - fill;
    const taken = length < room ? length : room;
    memory.copy(stream.stripe + fill, from, taken);
    from += taken;
    length -= taken;
    if (taken < room) {
      stream.fill = fill + taken;
      return;
    }
    streamStripes(stream, stream.stripe, 1);
  }
  const stripes = length / HASH_STRIPE;
  streamStripes(stream, from, stripes);
  const rest = length % HASH_STRIPE;
  if (rest > 0) memory.copy(stream.stripe, from + <usize>(stripes * HASH_STRIPE), rest);
  stream.fill = rest;
}

function streamStripes(stream: HashStream, from: usize, stripes: u32): void {
  let a = stream.a;
  let b = stream.b;
  let c = stream.c;
  let d = stream.d;
  for (let i: u32 = 0; i < stripes; i++) {
    const stripe = changetype<Stripe>(from);
    a = round(a, stripe.a);
    b = round(b, stripe.b);
    c = round(c, stripe.c);
    d = round(d, stripe.d);
    from += HASH_STRIPE;
  }
  stream.a = a;
  stream.b = b;
  stream.c = c;
  stream.d = d;
}

/** Content hash of what the stream has absorbed; the stream may go on afterwards. */
export function streamHash(stream: HashStream): u64 {
  let a = stream.a;
  let b = stream.b;
  let c = stream.c;
  let d = stream.d;
  const fill = <i32>stream.fill;
  if (fill > 0) {
    const from = stream.stripe;
    a = round(a, partialWord(from, fill));
    b = round(b, partialWord(from + 8, fill - 8));
    c = round(c, partialWord(from + 16, fill - 16));
    d = round(d, partialWord(from + 24, fill - 24));
  }
  return merge(a, b, c, d, streamLength(stream));
}

/**
 * Chain hashes of `length` bytes in INPUT under the root of an empty name, written to HASHES: whole blocks first, then
 * the tail when there is one. At most CHAIN_BLOCKS blocks, and no tail beyond them.
 * @returns hashes written.
 */
export function hashBlocks(length: u32, blockBytes: u32): u32 {
  let link = hashBytes(INPUT, 0);
  let from = INPUT;
  let count: u32 = 0;
  while (length > 0 && count < CHAIN_BLOCKS) {
    const size = length < blockBytes ? length : blockBytes;
    link = hashLink(link, hashBytes(from, size));
    store<u64>(HASHES + ((<usize>count) << 3), link);
    from += size;
    length -= size;
    count++;
  }
  return count;
}
