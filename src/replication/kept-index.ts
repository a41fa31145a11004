import { crc32 } from 'node:zlib';
import { z } from 'zod';
import type { ExportedSegment } from '../core/index-export.js';
import { decodeSegments, encodeSegments } from './segment-records.js';

/** Version of the format; raised when older files would be misread, or their block hashes name other blocks. */
const VERSION = 2;
const MAGIC = 'PTSMIDX\n';
/** Magic, length of the head, checksum of everything behind the checksum. */
const PREAMBLE_BYTES = 16;

/** Settings on which the hashes of a kept index depend. */
export interface IndexTerms {
  readonly blockTokens: number;
  /** Seed of the block hashes, as hexadecimal digits. */
  readonly seed: string;
}

/** A prefix index as kept in a file. */
export interface KeptIndex extends IndexTerms {
  readonly savedAtMs: number;
  /** Keys of the endpoints (endpointKey); the slots in `segments` are positions in this list. */
  readonly endpoints: readonly bigint[];
  readonly segments: readonly ExportedSegment[];
}

const head = z.strictObject({
  version: z.literal(VERSION),
  savedAtMs: z.number(),
  blockTokens: z.int(),
  seed: z.string(),
  endpoints: z.array(z.string().regex(/^\d+$/)),
});

export function encodeKeptIndex({ segments, endpoints, ...rest }: KeptIndex): Uint8Array {
  const text = JSON.stringify({ version: VERSION, ...rest, endpoints: endpoints.map(String) });
  const first = Buffer.from(text);
  const records = encodeSegments(segments);
  const bytes = Buffer.alloc(PREAMBLE_BYTES + first.length + records.length);
  bytes.write(MAGIC, 'latin1');
  bytes.writeUInt32LE(first.length, 8);
  first.copy(bytes, PREAMBLE_BYTES);
  bytes.set(records, PREAMBLE_BYTES + first.length);
  bytes.writeUInt32LE(crc32(bytes.subarray(PREAMBLE_BYTES)), 12);
  return bytes;
}

/**
 * Reads a file.
 * @throws with a short reason when it is damaged, has another version, or does not fit these terms
 */
export function decodeKeptIndex(file: Uint8Array, terms: IndexTerms): KeptIndex {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.length < PREAMBLE_BYTES || bytes.toString('latin1', 0, 8) !== MAGIC) throw new Error('it is no kept index');
  const content = bytes.subarray(PREAMBLE_BYTES);
  if (crc32(content) !== bytes.readUInt32LE(12)) throw new Error('its checksum is wrong');
  const length = bytes.readUInt32LE(8);
  const json: unknown = JSON.parse(content.toString('utf8', 0, length));
  const version = (json as { version?: unknown } | null)?.version;
  if (version !== VERSION) throw new Error(`it has version ${String(version)}, and ${VERSION} is expected`);
  const { endpoints, ...kept } = head.parse(json);
  if (kept.blockTokens !== terms.blockTokens) {
    throw new Error(`its blocks have ${kept.blockTokens} tokens, and the configuration says ${terms.blockTokens}`);
  }
  if (kept.seed !== terms.seed) throw new Error('its blocks were hashed with another seed');
  return { ...kept, endpoints: endpoints.map(BigInt), segments: decodeSegments(content.subarray(length)) };
}
