// The pool words: what all threads know about the pool as a whole.
//
// Owns: the words from HEADER_POOL on in the header page. Writer and lock stand beside each word; readers take none.
//
//   +0    u32 × 32  number of the program that each profile runs (atomic, control thread)
//   +128  PoolWords
//   +256  u32 × 32  slot + 1 that each profile's round-robin-picker took last (commit lock)
//   +384  u32 × 32  number of the shadow program of each profile, 0 = none (atomic, control thread)
//   +512  u32 × 32  slot + 1 that the round-robin-picker of each shadow program took last (commit lock)
import { HEADER, HEADER_POOL } from './memory';

export const PROFILES_MAX: u32 = 32;

export const POOL_PROFILES: usize = 0;
export const POOL_WORDS: usize = 128;
const POOL_TURNS: usize = 256;
export const POOL_SHADOWS: usize = 384;
const POOL_SHADOW_TURNS: usize = 512;

/** Words about the pool as a whole. */
@unmanaged
export class PoolWords {
  /** Slots at and above this number are free · control thread · commit lock. */
  slotsUsed: u32;
  /** Live endpoints · control thread · commit lock. */
  live: u32;
  /** Endpoints that are out because they failed · any thread · commit lock. */
  ejected: u32;
  /** 1 = failing endpoints stay in · control thread · none. */
  ejectionOff: u32;
  /** Count of repairs · control thread · none. */
  epoch: u32;
  /** Slot + 1 at the head of the list of cold prompts, 0 = none · any thread · commit lock. */
  coldOldest: u32;
  /** Slot + 1 at its tail, 0 = none · any thread · commit lock. */
  coldNewest: u32;
  /** Slots in it · any thread · commit lock. */
  coldLength: u32;
  /** Requests decided, modulo 2^32 · any thread · commit lock. */
  decisions: u32;
  /** Changes of the column STATE, modulo 2^32 · control thread · commit lock. */
  stateChanges: u32;
  /** Live endpoints that are in doubt or dead · any thread · commit lock. */
  dead: u32;
  /** 1 = the control thread looks after endpoints that are in doubt · control thread · none. */
  watched: u32;
}

export const POOL_WORDS_BYTES: usize = offsetof<PoolWords>();
export const POOL_LIVE: usize = POOL_WORDS + offsetof<PoolWords>('live');
export const POOL_EJECTED: usize = POOL_WORDS + offsetof<PoolWords>('ejected');
export const POOL_DEAD: usize = POOL_WORDS + offsetof<PoolWords>('dead');
export const POOL_WATCHED: usize = POOL_WORDS + offsetof<PoolWords>('watched');
export const POOL_EJECTION_OFF: usize = POOL_WORDS + offsetof<PoolWords>('ejectionOff');

export function poolWords(): PoolWords {
  return changetype<PoolWords>(HEADER + HEADER_POOL + POOL_WORDS);
}

/** Address of the word that names the program of a profile. */
export function profileWord(profile: u32): usize {
  return HEADER + HEADER_POOL + POOL_PROFILES + ((<usize>profile) << 2);
}

/** Address of the word that says whose turn it is in a profile's round-robin-picker. */
export function turnWord(profile: u32): usize {
  return HEADER + HEADER_POOL + POOL_TURNS + ((<usize>profile) << 2);
}

/** Address of the word that names the shadow program of a profile. */
export function shadowWord(profile: u32): usize {
  return HEADER + HEADER_POOL + POOL_SHADOWS + ((<usize>profile) << 2);
}

/** As turnWord, for the profile's shadow program. */
export function shadowTurnWord(profile: u32): usize {
  return HEADER + HEADER_POOL + POOL_SHADOW_TURNS + ((<usize>profile) << 2);
}
