import { PREFIX_BYTES, writePrefix } from './message-reader.js';
import type { OutBuffer } from './out-buffer.js';
import { ErrorCode, FLAG_END_HEADERS, FLAG_END_STREAM, FRAME_HEADER_BYTES, FrameType } from './protocol.js';
import { RESPONSE_HEADERS, TRAILERS_OK } from './reply-headers.js';

const RESET_BYTES = FRAME_HEADER_BYTES + 4;
/** Where the stream number lies in a frame header. */
const STREAM_AT = 5;

function frame(type: number, flags: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

function prefixed(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(PREFIX_BYTES + message.length);
  writePrefix(bytes, 0, message.length);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

/**
 * Whole answer to a stream that gets one message: four frames that differ from stream to stream in its number alone.
 */
export class FixedAnswer {
  readonly message: Uint8Array;
  /** Bytes that count against the client's windows. */
  readonly dataBytes: number;
  readonly #frames: Buffer;
  readonly #streams: readonly number[];

  /** @param message of one DATA frame */
  constructor(message: Uint8Array) {
    this.message = message;
    this.dataBytes = PREFIX_BYTES + message.length;
    const code = Buffer.alloc(4);
    code.writeUInt32BE(ErrorCode.noError);
    const frames = [
      frame(FrameType.headers, FLAG_END_HEADERS, RESPONSE_HEADERS),
      frame(FrameType.data, 0, prefixed(message)),
      frame(FrameType.headers, FLAG_END_HEADERS | FLAG_END_STREAM, TRAILERS_OK),
      frame(FrameType.rstStream, 0, code),
    ];
    this.#frames = Buffer.concat(frames);
    this.#streams = frames.map((_, i) => STREAM_AT + Buffer.concat(frames.slice(0, i)).length);
  }

  /** @param resets whether the client has not ended the stream, and is told that it need not go on */
  write(out: OutBuffer, stream: number, resets: boolean): void {
    const length = this.#frames.length - (resets ? 0 : RESET_BYTES);
    const start = out.reserve(length);
    const { bytes } = out;
    this.#frames.copy(bytes, start, 0, length);
    for (let i = resets ? 3 : 2; i >= 0; i--) {
      const at = start + this.#streams[i]!;
      bytes[at] = stream >>> 24;
      bytes[at + 1] = stream >>> 16;
      bytes[at + 2] = stream >>> 8;
      bytes[at + 3] = stream;
    }
  }
}
