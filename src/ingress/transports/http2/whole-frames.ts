// Bytes of whole frames of stream 0, for what is made once and numbered later.
import { PREFIX_BYTES, writePrefix } from './message-reader.js';
import { FRAME_HEADER_BYTES } from './protocol.js';

/** Where the stream number lies in a frame header. */
export const STREAM_AT = 5;

export function frame(type: number, flags: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

/** A gRPC message behind its prefix. */
export function prefixed(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(PREFIX_BYTES + message.length);
  writePrefix(bytes, 0, message.length);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
