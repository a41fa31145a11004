// The 64-bit hash of blocks, names and roots.
//
// Owns: nothing of its own; works on hash streams that lie in scan states (this thread's part of REGION_SCANS) and
// writes chains into this thread's HASHES area. No lock: all of it belongs to one thread.
//
// A content hash sums, over stripes of 32 bytes, products of two words of 32 bits, each of them first mixed with a key
// of its own, as NH does (UMAC, RFC 4418 §5.2), and adds the bytes themselves to the other lanes, as XXH3 does
// (github.com/Cyan4973/ xxHash, doc/xxhash_spec.md), so that a word whose partner is 0 counts as well. Keys change from
// stripe to stripe by odd steps, so that stripes cannot change places. The last stripe is padded with zeros; the length
// goes into the merge of the four lanes, so padding differs from content. A stripe takes two multiplications of the
// vector unit where XXH64 takes eight of 64 bits. Keys and lanes follow from the pool's HASH_SEED: collisions cannot be
// constructed without it.
//
// Content hashes do not depend on each other (blocks hash in parallel in the processor); a chain links them with one
// multiplication per block. A chain hash stands for everything from the root to the end of its block.
import { ASSERTIONS } from '../assertions';
import { CHAIN_BLOCKS, HASH_SEED, HASHES, INPUT } from '../memory';
import { fitsChain, fitsInput, isMapped } from '../preconditions';
import { HashStream } from './scan-state';

const PRIME_1: u64 = 0x9e3779b185ebca87;
const PRIME_2: u64 = 0xc2b2ae3d27d4eb4f;
const PRIME_3: u64 = 0x165667b19e3779f9;
const PRIME_4: u64 = 0x85ebca77c2b2ae63;
const PRIME_5: u64 = 0x27d4eb2f165667c5;

export const HASH_STRIPE: u32 = 32;

/** Keys of the first stripe, and their steps from stripe to stripe. */
let firstKeys: v128 = i64x2.splat(0);
let secondKeys: v128 = i64x2.splat(0);
let firstStep: v128 = i64x2.splat(0);
let secondStep: v128 = i64x2.splat(0);
/** Sums before the first stripe. */
let firstSums: v128 = i64x2.splat(0);
let secondSums: v128 = i64x2.splat(0);

function pair(low: u64, high: u64): v128 {
  return i64x2.replace_lane(i64x2.splat(low), 1, high);
}

/** Word `number` of the keys: SplitMix64 (Steele, Lea and Flood 2014) from the seed. */
function keyWord(number: u64): u64 {
  let word = HASH_SEED + number * PRIME_1;
  word = (word ^ (word >>> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >>> 27)) * 0x94d049bb133111eb;
  return word ^ (word >>> 31);
}

/** Takes the keys from the pool's seed. */
export function hashBind(): void {
  firstKeys = pair(keyWord(1), keyWord(2));
  secondKeys = pair(keyWord(3), keyWord(4));
  firstSums = pair(keyWord(5), keyWord(6));
  secondSums = pair(keyWord(7), keyWord(8));
  firstStep = pair(PRIME_1, PRIME_2);
  secondStep = pair(PRIME_3, PRIME_4);
}

/**
 * Addend of a stripe to the first sums: its second half `b`, and products of both halves under their keys, `x` and `y`.
 */
function firstTerm(b: v128, x: v128, y: v128): v128 {
  return i64x2.add(b, i64x2.extmul_low_i32x4_u(x, y));
}

/** Addend of a stripe to the second sums: its first half `a` and the other products. */
function secondTerm(a: v128, x: v128, y: v128): v128 {
  return i64x2.add(a, i64x2.extmul_high_i32x4_u(x, y));
}

function mergeSums(first: v128, second: v128, length: u32): u64 {
  return merge(
    i64x2.extract_lane(first, 0),
    i64x2.extract_lane(first, 1),
    i64x2.extract_lane(second, 0),
    i64x2.extract_lane(second, 1),
    length,
  );
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

/** Sums of the content that is being hashed, for the time of one call. */
let firstSum: v128 = i64x2.splat(0);
let secondSum: v128 = i64x2.splat(0);

/** Adds `stripes` stripes at `from` to the sums, the first of them under these keys. */
function addStripes(from: usize, stripes: u32, firstKey: v128, secondKey: v128): void {
  let first = firstSum;
  let second = secondSum;
  const firstMore = firstStep;
  const secondMore = secondStep;
  for (let i: u32 = 0; i < stripes; i++) {
    const a = v128.load(from);
    const b = v128.load(from, 16);
    const x = v128.xor(a, firstKey);
    const y = v128.xor(b, secondKey);
    first = i64x2.add(first, firstTerm(b, x, y));
    second = i64x2.add(second, secondTerm(a, x, y));
    firstKey = i64x2.add(firstKey, firstMore);
    secondKey = i64x2.add(secondKey, secondMore);
    from += HASH_STRIPE;
  }
  firstSum = first;
  secondSum = second;
}

/** Content hash of `length` bytes at `from`. */
export function hashBytes(from: usize, length: u32): u64 {
  firstSum = firstSums;
  secondSum = secondSums;
  const stripes = length / HASH_STRIPE;
  addStripes(from, stripes, firstKeys, secondKeys);
  const left = <i32>(length % HASH_STRIPE);
  if (left == 0) return mergeSums(firstSum, secondSum, length);
  from += stripes * HASH_STRIPE;
  const a = pair(partialWord(from, left), partialWord(from + 8, left - 8));
  const b = pair(partialWord(from + 16, left - 16), partialWord(from + 24, left - 24));
  return hashWithLast(a, b, stripes, length);
}

/**
 * Content hash of `length` bytes.
 * @param a first half of the last stripe, and `b` its second half
 * @param before stripes in the sums
 */
function hashWithLast(a: v128, b: v128, before: u32, length: u32): u64 {
  const x = v128.xor(a, firstKeyOf(before));
  const y = v128.xor(b, secondKeyOf(before));
  return mergeSums(i64x2.add(firstSum, firstTerm(b, x, y)), i64x2.add(secondSum, secondTerm(a, x, y)), length);
}

/** Writes the content hash of `length` bytes at `from` to `to`, as a u64 (8-byte words cross to the host by memory). */
export function hashBytesTo(from: usize, length: u32, to: usize): void {
  if (ASSERTIONS) assert(isMapped(from, length), 'the bytes are in the memory');
  if (ASSERTIONS) assert(isMapped(to, 8), 'the place of the hash is in the memory');
  store<u64>(to, hashBytes(from, length));
}

/** Next link of a chain, from the link before it and the content hash of the block. */
export function hashLink(before: u64, content: u64): u64 {
  const link = (rotl<u64>(before, 29) + content) * PRIME_3;
  return link ^ (link >>> 32);
}

/** Begins a hash stream. */
export function streamReset(stream: HashStream): void {
  stream.setSums(firstSums, secondSums);
  stream.fill = 0;
  stream.length = 0;
}

/** Bytes absorbed since the reset. */
export function streamLength(stream: HashStream): u32 {
  return stream.length;
}

/** Absorbs `length` bytes at `from`; in how many pieces a content comes makes no difference. */
export function streamAbsorb(stream: HashStream, from: usize, length: u32): void {
  const fill = stream.fill;
  const before = (streamLength(stream) - fill) / HASH_STRIPE;
  stream.length = streamLength(stream) + length;
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
    streamStripes(stream, before, stream.stripe, 1);
  }
  const stripes = length / HASH_STRIPE;
  if (stripes > 0) streamStripes(stream, before + u32(fill > 0), from, stripes);
  const rest = length % HASH_STRIPE;
  if (rest > 0) memory.copy(stream.stripe, from + <usize>(stripes * HASH_STRIPE), rest);
  stream.fill = rest;
}

/** Adds `stripes` stripes at `from`, before which the stream has `before`. */
function streamStripes(stream: HashStream, before: u32, from: usize, stripes: u32): void {
  firstSum = stream.firstSums;
  secondSum = stream.secondSums;
  addStripes(from, stripes, firstKeyOf(before), secondKeyOf(before));
  stream.setSums(firstSum, secondSum);
}

/** Keys of the stripe behind `before` others. */
function firstKeyOf(before: u32): v128 {
  return i64x2.add(firstKeys, i64x2.mul(firstStep, i64x2.splat(before)));
}

function secondKeyOf(before: u32): v128 {
  return i64x2.add(secondKeys, i64x2.mul(secondStep, i64x2.splat(before)));
}

/** Content hash of what the stream has absorbed; the stream may go on afterwards. */
export function streamHash(stream: HashStream): u64 {
  firstSum = stream.firstSums;
  secondSum = stream.secondSums;
  const length = streamLength(stream);
  const fill = stream.fill;
  if (fill == 0) return mergeSums(firstSum, secondSum, length);
  memory.fill(stream.stripe + fill, 0, HASH_STRIPE - fill);
  return hashWithLast(v128.load(stream.stripe), v128.load(stream.stripe, 16), (length - fill) / HASH_STRIPE, length);
}

/**
 * Chain hashes of `length` bytes in INPUT under the root of an empty name, written to HASHES: whole blocks first, then
 * the tail when there is one. At most CHAIN_BLOCKS blocks, and no tail beyond them.
 * @returns hashes written.
 */
export function hashBlocks(length: u32, blockBytes: u32): u32 {
  if (ASSERTIONS) assert(fitsInput(length), 'the bytes fit into the input of the thread');
  if (ASSERTIONS) assert(blockBytes != 0, 'a block has bytes');
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
  if (ASSERTIONS) assert(fitsChain(count), 'the blocks are those of one chain');
  return count;
}
