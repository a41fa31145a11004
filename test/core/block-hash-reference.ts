// The block hash once more, in BigInt and without a thought of speed: assembly/request/hash.ts must agree with it.

const MASK = (1n << 64n) - 1n;
const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;

const wrap = (value: bigint) => value & MASK;
const rotate = (value: bigint, bits: bigint) => wrap(value << bits) | (value >> (64n - bits));

/** Word `number` of the keys of a seed: SplitMix64. */
function keyWord(seed: bigint, number: number): bigint {
  let word = wrap(seed + BigInt(number) * PRIME_1);
  word = wrap((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n);
  word = wrap((word ^ (word >> 27n)) * 0x94d049bb133111ebn);
  return word ^ (word >> 31n);
}

/** Product of the low words of 32 bits, and of the high ones. */
const lowProduct = (x: bigint, y: bigint) => (x & 0xffffffffn) * (y & 0xffffffffn);
const highProduct = (x: bigint, y: bigint) => (x >> 32n) * (y >> 32n);

/** Content hash of bytes under a pool's seed. */
export function contentHash(seed: bigint, bytes: Uint8Array): bigint {
  const padded = Buffer.alloc(Math.ceil(bytes.length / 32) * 32);
  padded.set(bytes);
  const keys = [1, 2, 3, 4].map((number) => keyWord(seed, number));
  const sums = [5, 6, 7, 8].map((number) => keyWord(seed, number));
  const steps = [PRIME_1, PRIME_2, PRIME_3, PRIME_4];
  for (let at = 0; at < padded.length; at += 32) {
    const words = [0, 8, 16, 24].map((offset) => padded.readBigUInt64LE(at + offset)) as [
      bigint,
      bigint,
      bigint,
      bigint,
    ];
    const [p, q, r, s] = words.map((word, i) => word ^ keys[i]!) as [bigint, bigint, bigint, bigint];
    const terms = [
      words[2] + lowProduct(p, r),
      words[3] + highProduct(p, r),
      words[0] + lowProduct(q, s),
      words[1] + highProduct(q, s),
    ];
    for (const i of terms.keys()) {
      sums[i] = wrap(sums[i]! + terms[i]!);
      keys[i] = wrap(keys[i]! + steps[i]!);
    }
  }
  const [a, b, c, d] = sums as [bigint, bigint, bigint, bigint];
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

/**
 * Chain over tools, system and content, each cut into blocks by itself; unfinished blocks count only in the content.
 */
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
