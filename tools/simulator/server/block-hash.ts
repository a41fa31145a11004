/** Tokens of a block, and the bytes that stand for one token: the simulated tokenizer cuts text every four bytes. */
export const BLOCK_TOKENS = 16;
export const TOKEN_BYTES = 4;
export const BLOCK_BYTES = BLOCK_TOKENS * TOKEN_BYTES;

/** Root of a hash chain; requests with different salts share no block. */
export function chainRoot(salt: string): number {
  const bytes = Buffer.alloc(BLOCK_BYTES);
  let parent = 0;
  const text = Buffer.from(salt);
  for (let at = 0; at < text.length; at += BLOCK_BYTES) {
    bytes.fill(0);
    text.copy(bytes, 0, at, at + BLOCK_BYTES);
    parent = blockHash(parent, bytes, 0);
  }
  return parent;
}

/**
 * Hash of the block at `offset` whose predecessor hashed to `parent`: 53 bits in a number, so that it can be the key
 * of a Map. Two 32-bit lanes of multiply and rotate; by the birthday bound 100,000 blocks collide with p < 1e-6.
 */
export function blockHash(parent: number, bytes: Uint8Array, offset: number): number {
  let low = (parent ^ 0x9e3779b9) | 0;
  let high = (Math.floor(parent / 4294967296) ^ 0x85ebca6b) | 0;
  for (let at = offset; at < offset + BLOCK_BYTES; at += 4) {
    const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    low = Math.imul(low ^ word, 0xcc9e2d51);
    low = (low << 13) | (low >>> 19);
    high = Math.imul(high + word, 0x1b873593) ^ low;
    high = (high << 17) | (high >>> 15);
  }
  low = Math.imul(low ^ (high >>> 15), 0x7feb352d);
  high = Math.imul(high ^ (low >>> 16), 0x846ca68b);
  low ^= high >>> 13;
  return (high >>> 11) * 4294967296 + (low >>> 0);
}

/** Hashes of all whole blocks of `bytes`. */
export function chainHashes(salt: string, bytes: Uint8Array): number[] {
  const hashes: number[] = [];
  let parent = chainRoot(salt);
  for (let offset = 0; offset + BLOCK_BYTES <= bytes.length; offset += BLOCK_BYTES) {
    parent = blockHash(parent, bytes, offset);
    hashes.push(parent);
  }
  return hashes;
}
