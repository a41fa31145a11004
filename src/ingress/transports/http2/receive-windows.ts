import { writeSettings, writeWindowUpdate } from './frames.js';
import { CROWDED_BYTES, LEADING_BYTES_MAX, NARROW_WINDOW_BYTES, RELAXED_BYTES, STREAM_WINDOW_BYTES } from './limits.js';
import type { OutBuffer } from './out-buffer.js';
import { Setting } from './protocol.js';

/** Stream whose client may send as many bytes as this side allows. */
export interface ReceivingStream {
  readonly id: number;
  /** Whether the handler takes no more at present. */
  readonly paused: boolean;
  readonly remoteEnded: boolean;
  /** Whether this side has ended the stream. */
  readonly over: boolean;
  /** Bytes that are missing of the message under way; 0 = none is, or its length is not known yet. */
  readonly missing: number;
  /** Bytes that came without new room for the client so far; below 0 = it was given more room. */
  uncredited: number;
}

/**
 * Receive windows of the streams of one connection. As a rule each is wide. While unfinished messages take
 * CROWDED_BYTES, new windows are narrow (SETTINGS_INITIAL_WINDOW_SIZE, which changes those of open streams as well, RFC
 * 9113 section 6.9.2), and messages that need more get it one after another: what a client sends at a time is finished
 * first, so that a client that keeps to its windows is never refused for its unfinished messages, however many streams
 * it sends at once.
 */
export class ReceiveWindows {
  readonly #out: OutBuffer;
  readonly #unfinished: { readonly bytes: number };
  #narrow = false;
  /** Whether the client has not acknowledged the latest settings. The first ones are the connection's own. */
  #isAsked = true;
  /** Streams inside a message that exceeds their windows, in the order of service. */
  readonly #waiting = new Set<ReceivingStream>();
  /** Streams that were given room for the rest of their message, with its bytes. */
  readonly #leading = new Map<ReceivingStream, number>();
  #leadingBytes = 0;

  /** @param unfinished what unfinished messages take */
  constructor(out: OutBuffer, unfinished: { readonly bytes: number }) {
    this.#out = out;
    this.#unfinished = unfinished;
  }

  /** Opens the window of a stream that was read. @returns whether a frame was written */
  credit(stream: ReceivingStream): boolean {
    if (stream.paused || stream.remoteEnded || stream.over) {
      this.leave(stream);
      return false;
    }
    if (this.#narrow && stream.missing > 0) return this.#wait(stream);
    if (this.#narrow) this.leave(stream);
    const window = this.#narrow ? NARROW_WINDOW_BYTES : STREAM_WINDOW_BYTES;
    if (stream.uncredited < window / 4) return false;
    return this.#give(stream, stream.uncredited);
  }

  /** Forgets a stream that needs no room any more. */
  leave(stream: ReceivingStream): void {
    this.#waiting.delete(stream);
    const bytes = this.#leading.get(stream);
    if (bytes === undefined) return;
    this.#leading.delete(stream);
    this.#leadingBytes -= bytes;
  }

  /** Takes the client's acknowledgement of settings. */
  acknowledged(): void {
    this.#isAsked = false;
  }

  /** Ends a turn. */
  settle(streams: Iterable<ReceivingStream>): void {
    const { bytes } = this.#unfinished;
    if (!this.#narrow && bytes <= CROWDED_BYTES) return;
    if (!this.#isAsked && !this.#narrow) this.#change(true, streams);
    else if (!this.#isAsked && bytes < RELAXED_BYTES && this.#waiting.size === 0) this.#change(false, streams);
    this.#lead();
  }

  /** Takes back unused room of streams. Called once in a while. */
  sweep(): void {
    this.#leading.clear();
    this.#leadingBytes = 0;
    this.#lead();
  }

  #change(narrow: boolean, streams: Iterable<ReceivingStream>): void {
    this.#narrow = narrow;
    this.#isAsked = true;
    this.#leading.clear();
    this.#leadingBytes = 0;
    const window = narrow ? NARROW_WINDOW_BYTES : STREAM_WINDOW_BYTES;
    writeSettings(this.#out, [[Setting.initialWindowSize, window]]);
    for (const stream of streams) this.credit(stream);
  }

  #wait(stream: ReceivingStream): false {
    if (stream.missing <= NARROW_WINDOW_BYTES - stream.uncredited) return false;
    this.leave(stream);
    this.#waiting.add(stream);
    return false;
  }

  /** Gives streams the rest of their messages, in order, up to a bound at a time. */
  #lead(): void {
    for (const stream of this.#waiting) {
      const { missing } = stream;
      if (this.#leading.size > 0 && this.#leadingBytes + missing > LEADING_BYTES_MAX) return;
      this.#waiting.delete(stream);
      this.#leading.set(stream, missing);
      this.#leadingBytes += missing;
      this.#give(stream, missing - NARROW_WINDOW_BYTES + stream.uncredited);
    }
  }

  #give(stream: ReceivingStream, bytes: number): true {
    writeWindowUpdate(this.#out, stream.id, bytes);
    stream.uncredited -= bytes;
    return true;
  }
}
