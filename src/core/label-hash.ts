import type { CoreInstance } from './memory.js';

/** Length from which a value is compared by its beginning only. */
const KEY_LENGTH_MAX = 1024;
const encoder = new TextEncoder();
const scratch = new Uint8Array(4 * KEY_LENGTH_MAX);

/**
 * Writes the hash of a label or header value to address `to`, 8 bytes; 0 stands for an absent or empty value. Equal
 * texts have equal hashes in every process.
 */
export function hashKey(core: CoreInstance, text: string | undefined, to: number): void {
  if (text === undefined || text === '') {
    core.view.setBigUint64(to, 0n, true);
    return;
  }
  const { written } = encoder.encodeInto(text.slice(0, KEY_LENGTH_MAX), scratch);
  const input = core.call.inputAddress() >>> 0;
  core.bytes.set(scratch.subarray(0, written), input);
  core.call.hashKeyTo(input, written, to);
}

/** SplitMix64 (Steele, Lea, Flood 2014): spreads a small seed over 64 bits. */
export function splitMix(seed: bigint): bigint {
  const mask = 0xffffffffffffffffn;
  let z = (seed + 0x9e3779b97f4a7c15n) & mask;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
  return z ^ (z >> 31n);
}
