import type { OutBuffer } from './out-buffer.js';
import { type ErrorCode, FLAG_ACK, FLAG_END_HEADERS, FLAG_END_STREAM, FRAME_BYTES_MAX, FrameType } from './protocol.js';

/** Longest text of a GOAWAY. */
const DEBUG_BYTES_MAX = 256;

export function writeSettings(out: OutBuffer, settings: readonly (readonly [id: number, value: number])[]): void {
  let at = out.frame(settings.length * 6, FrameType.settings, 0, 0);
  for (const [id, value] of settings) {
    out.bytes.writeUInt16BE(id, at);
    out.bytes.writeUInt32BE(value, at + 2);
    at += 6;
  }
}

export function writeSettingsAck(out: OutBuffer): void {
  out.frame(0, FrameType.settings, FLAG_ACK, 0);
}

/** @param data eight bytes from `from` */
export function writePing(out: OutBuffer, ack: boolean, data: Buffer, from: number): void {
  const at = out.frame(8, FrameType.ping, ack ? FLAG_ACK : 0, 0);
  data.copy(out.bytes, at, from, from + 8);
}

export function writeWindowUpdate(out: OutBuffer, stream: number, bytes: number): void {
  const at = out.frame(4, FrameType.windowUpdate, 0, stream);
  out.bytes.writeUInt32BE(bytes, at);
}

export function writeReset(out: OutBuffer, stream: number, code: ErrorCode): void {
  const at = out.frame(4, FrameType.rstStream, 0, stream);
  out.bytes.writeUInt32BE(code, at);
}

export function writeGoaway(out: OutBuffer, lastStream: number, code: ErrorCode, why: string): void {
  const text = Buffer.from(why, 'utf8').subarray(0, DEBUG_BYTES_MAX);
  const at = out.frame(8 + text.length, FrameType.goaway, 0, 0);
  out.bytes.writeUInt32BE(lastStream, at);
  out.bytes.writeUInt32BE(code, at + 4);
  text.copy(out.bytes, at + 8);
}

/** Writes a header block of at most one frame. */
export function writeHeaders(out: OutBuffer, stream: number, block: Buffer, endStream: boolean): void {
  if (block.length > FRAME_BYTES_MAX) throw new RangeError('a reply header block of more than one frame');
  const flags = FLAG_END_HEADERS | (endStream ? FLAG_END_STREAM : 0);
  const at = out.frame(block.length, FrameType.headers, flags, stream);
  block.copy(out.bytes, at);
}
