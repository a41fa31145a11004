// The block hash once more, in BigInt and without a thought of speed: assembly/request/hash.ts must agree with it.

const MASK = (1n << 64n) - 1n;
const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;

const wrap = (value: bigint) => value & MASK;
const rotate = (value: bigint, bits: bigint) => wrap(value << bits) | (value >> (64n - bits));
const round = (lane: bigint, word: bigint) => wrap(rotate(wrap(lane + word * PRIME_2), 31n) * PRIME_1);

/** Content hash of bytes under a pool's seed. */
export function contentHash(seed: bigint, bytes: Uint8Array): bigint {
  const padded = Buffer.alloc(Math.ceil(bytes.length / 32) * 32);
  padded.set(bytes);
  const lanes = [wrap(seed + PRIME_1 + PRIME_2), wrap(seed + PRIME_2), wrap(seed), wrap(seed - PRIME_1)];
  for (let at = 0; at < padded.length; at += 8) {
    const lane = (at / 8) % 4;
    lanes[lane] = round(lanes[lane]!, padded.readBigUInt64LE(at));
  }
  const [a, b, c, d] = lanes as [bigint, bigint, bigint, bigint];
  const left = rotate(wrap(a * PRIME_2), 31n) ^ wrap(b * PRIME_3);
  const right = rotate(wrap(c * PRIME_2), 31n) ^ wrap(d * PRIME_3);
  let hash = wrap(left * PRIME_1) ^ rotate(wrap(right * PRIME_4), 27n) ^ wrap(BigInt(bytes.length) * PRIME_5);
  hash = wrap((hash ^ (hash >> 33n)) * PRIME_2);
  hash = wrap((hash ^ (hash >> 29n)) * PRIME_3);
  return hash ^ (hash >> 32n);
}

/** Next link of a chain. */
export function linkHash(before: bigint, content: bigint): bigint {
  const link = wrap((rotate(before, 29n) + content) * PRIME_3);
  return link ^ (link >> 32n);
}

/** Chain over blocks of content; the last hash may be the tail's. */
export function chainHashes(seed: bigint, root: bigint, content: Uint8Array, blockBytes: number): bigint[] {
  const hashes: bigint[] = [];
  let link = root;
  for (let at = 0; at < content.length; at += blockBytes) {
    link = linkHash(link, contentHash(seed, content.subarray(at, at + blockBytes)));
    hashes.push(link);
  }
  return hashes;
}

/** What a request's chain is made of. Absent parts are undefined or empty. */
export interface ChainParts {
  readonly model: string;
  readonly salt: Uint8Array | undefined;
  readonly tools: Uint8Array | undefined;
  readonly system: Uint8Array | undefined;
  readonly content: Uint8Array;
}

export function rootHash(seed: bigint, parts: Pick<ChainParts, 'model' | 'salt'>): bigint {
  const root = linkHash(seed, contentHash(seed, Buffer.from(parts.model)));
  return linkHash(root, parts.salt === undefined ? 0n : contentHash(seed, parts.salt));
}

/** Chain over tools, system and content, each cut into blocks by itself; unfinished blocks count only in the content. */
export function requestChain(seed: bigint, parts: ChainParts, blockBytes: number): bigint[] {
  const hashes: bigint[] = [];
  let link = rootHash(seed, parts);
  for (const [index, segment] of [parts.tools, parts.system].entries()) {
    if (segment === undefined || segment.length === 0) continue;
    const links = chainHashes(seed, linkHash(link, BigInt(index + 1)), segment, blockBytes);
    link = links.at(-1)!;
    hashes.push(...links.slice(0, Math.floor(segment.length / blockBytes)));
  }
  return [...hashes, ...chainHashes(seed, link, parts.content, blockBytes)];
}
