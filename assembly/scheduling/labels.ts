// Labels of the endpoints as numbers: a pair of columns for each label that a profile reads.
//
// Owns: REGION_LABELS, LABEL_COLUMNS pairs of columns of SLOTS 32-bit cells, written by the control thread before the
// endpoint becomes live; and the hash that compares label values with header values. A pair holds the halves of a hash
// (0 = the label is absent), or the ends of a range as f32 (RANGE_ABSENT, RANGE_BAD in the first one when there is
// none).
import { ASSERTIONS } from '../assertions';
import { LABEL_COLUMNS, LABELS, REQUEST, SLOTS } from '../memory';
import { isMapped } from '../preconditions';
import { KEYS_MAX, REQUEST_KEYS } from '../request-area';

export const RANGE_ABSENT: f32 = -1;
export const RANGE_BAD: f32 = -2;

/** First column of a pair; the second one follows after SLOTS cells. */
export function labelAddress(column: u32): usize {
  if (ASSERTIONS) assert(column < LABEL_COLUMNS, 'the column is one of the labels');
  return LABELS + <usize>(min(column, LABEL_COLUMNS - 1) * SLOTS * 8);
}

/** Hash of a header's value, 0 = the request does not have it. */
export function requestKey(key: u32): u64 {
  return key < KEYS_MAX ? load<u64>(REQUEST + REQUEST_KEYS + ((<usize>key) << 3)) : 0;
}

/**
 * Writes the hash of a text to `to`, never 0, as a u64: FNV-1a (Fowler, Noll, Vo) with the finaliser of MurmurHash3
 * (Appleby). Unlike the hashes of blocks it has no seed: all replicas must send a key to the same endpoint.
 */
export function hashKeyTo(from: usize, length: u32, to: usize): void {
  if (ASSERTIONS) assert(isMapped(from, length), 'the bytes are in the memory');
  if (ASSERTIONS) assert(isMapped(to, 8), 'the place of the hash is in the memory');
  let hash: u64 = 0xcbf29ce484222325;
  for (let i: u32 = 0; i < length; i++) hash = (hash ^ load<u8>(from + <usize>i)) * 0x100000001b3;
  hash = (hash ^ (hash >>> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >>> 33)) * 0xc4ceb9fe1a85ec53;
  hash ^= hash >>> 33;
  store<u64>(to, hash == 0 ? 1 : hash);
}

/** Finaliser of MurmurHash3 for 32 bits, four at a time: every bit of the input moves half of the output. */
export function mixLanes(h: v128, first: v128, second: v128): v128 {
  let x = i32x4.mul(v128.xor(h, i32x4.shr_u(h, 16)), first);
  x = i32x4.mul(v128.xor(x, i32x4.shr_u(x, 13)), second);
  return v128.xor(x, i32x4.shr_u(x, 16));
}

export const MIX_FIRST: i32 = <i32>0x85ebca6b;
export const MIX_SECOND: i32 = <i32>0xc2b2ae35;
