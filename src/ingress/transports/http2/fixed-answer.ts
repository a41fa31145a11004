import { PREFIX_BYTES } from './message-reader.js';
import type { OutBuffer } from './out-buffer.js';
import { ErrorCode, FLAG_END_HEADERS, FLAG_END_STREAM, FRAME_HEADER_BYTES, FrameType } from './protocol.js';
import { RESPONSE_HEADERS, TRAILERS_OK } from './reply-headers.js';
import { frame, prefixed, STREAM_AT, uint32 } from './whole-frames.js';

const RESET_BYTES = FRAME_HEADER_BYTES + 4;
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
    const frames = [
      frame(FrameType.headers, FLAG_END_HEADERS, RESPONSE_HEADERS),
      frame(FrameType.data, 0, prefixed(message)),
      frame(FrameType.headers, FLAG_END_HEADERS | FLAG_END_STREAM, TRAILERS_OK),
      frame(FrameType.rstStream, 0, uint32(ErrorCode.noError)),
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
