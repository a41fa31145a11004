import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import type { ExportedSegment } from '../core/index-export.js';
import { once } from '../runtime/once.js';
import { encodeSegments, type SegmentBounds, segmentsOf } from './segment-records.js';

/**
 * Version of the format; raised when older files would be misread, or their block hashes name other blocks. A file of
 * the earlier version is one of an index whose blocks all lie on the GPU.
 */
const VERSION = 3;
const EARLIER_VERSION = 2;
const MAGIC = 'PTSMIDX\n';
/** Magic, length of the head, checksum of everything behind the checksum. */
const PREAMBLE_BYTES = 16;

/** Settings on which the hashes of a kept index depend. */
export interface IndexTerms {
  readonly blockTokens: number;
  /** Seed of the block hashes, as hexadecimal digits. */
  readonly seed: string;
}

/** Bytes of a segment's head and hashes, as the file has them. */
const SEGMENT_BYTES = 24 + 64 * 8;
const RUN_HEAD_BYTES = 4;
/** Bytes of the list of endpoints, as decimal numbers. */
const HEAD_BYTES_MAX = 1024 * 1024;
/** Runs of a segment with different holders: nearly all have fewer, some one for each block. */
const RUNS = 10;
/** Endpoints that hold a segment, on average over all: each one's cache holds a part of the index. */
const HOLDERS = 512;
/** Segments that are read in one turn of the event loop: about a millisecond. */
const SEGMENTS_PER_TURN = 1_024;

/** Bounds of a file. */
export interface KeptIndexBounds extends SegmentBounds {
  readonly bytes: number;
}

/** Bounds of a plausible file of an index with so many blocks (assembly/prefix/layout.ts). */
export function keptIndexBounds(indexBlocks: number): KeptIndexBounds {
  const segments = Math.ceil(indexBlocks / 48) + 128;
  const runs = RUNS * segments;
  const holders = HOLDERS * segments;
  const bytes = HEAD_BYTES_MAX + SEGMENT_BYTES * segments + RUN_HEAD_BYTES * runs + 2 * holders;
  return { bytes, segments, runs, holders };
}

/** A prefix index as kept in a file. */
export interface KeptIndex extends IndexTerms {
  readonly savedAtMs: number;
  /** Keys of the endpoints (endpointKey); the slots in `segments` are positions in this list. */
  readonly endpoints: readonly bigint[];
  readonly segments: readonly ExportedSegment[];
}

const head = once(() =>
  z.strictObject({
    version: z.literal([EARLIER_VERSION, VERSION]),
    savedAtMs: z.number(),
    blockTokens: z.int(),
    seed: z.string(),
    endpoints: z.array(z.string().regex(/^\d+$/)),
  }),
);

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
 * Reads a file, a part in each turn of the event loop. Work and memory are bounded, whatever the file holds.
 * @throws with a short reason when it is damaged, has another version, or does not fit these terms and bounds
 */
export async function decodeKeptIndex(file: Uint8Array, terms: IndexTerms, bounds: SegmentBounds): Promise<KeptIndex> {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.length < PREAMBLE_BYTES || bytes.toString('latin1', 0, 8) !== MAGIC) throw new Error('it is no kept index');
  const content = bytes.subarray(PREAMBLE_BYTES);
  if (crc32(content) !== bytes.readUInt32LE(12)) throw new Error('its checksum is wrong');
  const length = bytes.readUInt32LE(8);
  if (length > HEAD_BYTES_MAX) throw new Error(`its head has ${length} bytes, and at most ${HEAD_BYTES_MAX} are read`);
  const json: unknown = JSON.parse(content.toString('utf8', 0, length));
  const version = (json as { version?: unknown } | null)?.version;
  if (version !== VERSION && version !== EARLIER_VERSION)
    throw new Error(`it has version ${String(version)}, and ${VERSION} is expected`);
  const { endpoints, ...kept } = head().parse(json);
  if (kept.blockTokens !== terms.blockTokens) {
    throw new Error(`its blocks have ${kept.blockTokens} tokens, and the configuration says ${terms.blockTokens}`);
  }
  if (kept.seed !== terms.seed) throw new Error('its blocks were hashed with another seed');
  return { ...kept, endpoints: endpoints.map(BigInt), segments: await decoded(content.subarray(length), bounds) };
}

async function decoded(records: Uint8Array, bounds: SegmentBounds): Promise<ExportedSegment[]> {
  const segments: ExportedSegment[] = [];
  for (const segment of segmentsOf(records, bounds)) {
    if (segments.push(segment) % SEGMENTS_PER_TURN === 0) await nextTurn();
  }
  return segments;
}

/** @throws when `decodeKeptIndex` would refuse it */
export function checkKeptIndex({ segments }: Pick<KeptIndex, 'segments'>, bounds: SegmentBounds): void {
  const runs = segments.flatMap((segment) => segment.runs);
  const holders = runs.reduce((sum, { slots }) => sum + slots.length, 0);
  const isKept = segments.length <= bounds.segments && runs.length <= bounds.runs && holders <= bounds.holders;
  if (isKept) return;
  throw new Error(
    `it has ${segments.length} segments, ${runs.length} runs and ${holders} holders, and at most ` +
      `${bounds.segments}, ${bounds.runs} and ${bounds.holders} are kept`,
  );
}
