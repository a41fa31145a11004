// Random numbers of this thread.
//
// Owns: REQUEST_RANDOM in the thread's own REQUEST area, seeded by the host. Only its thread reads and writes it,
// without a lock.
import { request } from './request-area';

/** Next 64 random bits of this thread (xoroshiro128+, Blackman and Vigna 2018). */
export function random(): u64 {
  const state = request();
  const a = state.randomLow;
  let b = state.randomHigh;
  const result = a + b;
  b ^= a;
  state.randomLow = rotl<u64>(a, 24) ^ b ^ (b << 16);
  state.randomHigh = rotl<u64>(b, 37);
  return result;
}

/** Uniform in [0, 1), 24 bits. */
export function randomFloat(): f32 {
  return <f32>(random() >> 40) * <f32>(1.0 / 16777216.0);
}

/** Uniform in 0 .. bound - 1. */
export function randomBelow(bound: u32): u32 {
  return <u32>(((random() >> 32) * <u64>bound) >> 32);
}
