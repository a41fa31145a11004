import { crc32 } from 'node:zlib';

/** Kinds of frames in a recording (docs/reference/recording.md). */
export const FRAME = { decision: 1, end: 2, endpoints: 3, trailer: 4 } as const;

/** Bytes of a frame around its payload: u32 length, u8 kind, payload, u32 CRC-32 of kind and payload. */
export const FRAME_HEAD_BYTES = 5;
export const FRAME_TAIL_BYTES = 4;

/** Offsets in the payload of a decision; all numbers are little-endian. */
export const DECISION = {
  timeMs: 0,
  thread: 8,
  number: 12,
  profile: 16,
  flags: 20,
  blocks: 24,
  promptTokens: 28,
  outputTokens: 32,
  priority: 36,
  blockTokens: 40,
  earlier: 44,
  wantedTtftMs: 48,
  wantedTpotMs: 52,
  adapter: 56,
  random: 64,
  score: 80,
  used: 84,
  picks: 88,
  keys: 92,
  hashes: 96,
  changes: 100,
  lists: 104,
} as const;

/** Offsets in the payload of an end. */
export const END = {
  thread: 0,
  number: 4,
  outcome: 8,
  outputTokens: 12,
  promptTokens: 16,
  cachedTokens: 20,
  firstOutputMs: 24,
  perTokenMs: 28,
  durationMs: 32,
  bytes: 36,
} as const;

/** Writes head and tail of a frame whose payload stands at `at` + FRAME_HEAD_BYTES. @returns bytes of the frame */
export function closeFrame(buffer: Buffer, at: number, kind: number, payloadBytes: number): number {
  buffer.writeUInt32LE(payloadBytes, at);
  buffer.writeUInt8(kind, at + 4);
  const end = at + FRAME_HEAD_BYTES + payloadBytes;
  buffer.writeUInt32LE(crc32(buffer.subarray(at + 4, end)), end);
  return FRAME_HEAD_BYTES + payloadBytes + FRAME_TAIL_BYTES;
}

/** A frame of one JSON document. */
export function jsonFrame(kind: number, value: unknown): Buffer {
  const payload = Buffer.from(JSON.stringify(value));
  const frame = Buffer.alloc(FRAME_HEAD_BYTES + payload.length + FRAME_TAIL_BYTES);
  payload.copy(frame, FRAME_HEAD_BYTES);
  closeFrame(frame, 0, kind, payload.length);
  return frame;
}
