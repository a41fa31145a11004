import type { FrameSink } from './frame-reader.js';
import { writePing, writeSettingsAck, writeWindowUpdate } from './frames.js';
import { HeaderBlocks, type HeadSink } from './header-blocks.js';
import {
  ANSWERED_FRAMES,
  CONNECTION_WINDOW_BYTES,
  EMPTY_FRAMES,
  type Rate,
  RESETS,
  STREAM_WINDOW_BYTES,
} from './limits.js';
import type { OutBuffer } from './out-buffer.js';
import {
  ConnectionError,
  ErrorCode,
  FLAG_ACK,
  FLAG_END_STREAM,
  FRAME_BYTES_LIMIT,
  FRAME_BYTES_MAX,
  FrameType,
  Setting,
  WINDOW_BYTES_DEFAULT,
  WINDOW_BYTES_MAX,
} from './protocol.js';
import type { RequestHead } from './request-head.js';
import type { ServerStream } from './server-stream.js';

const SETTING_BYTES = 6;

/**
 * Reads the payload of a SETTINGS frame (section 6.5).
 * @returns the initial window that the last of its settings names; undefined when none does. The rest concerns what
 * this side never does: it pushes nothing, adds nothing to the client's header table, and sends frames and lists of the
 * least size.
 * @throws ConnectionError when a value is out of its range
 */
function initialWindowOf(bytes: Buffer, from: number, to: number): number | undefined {
  if ((to - from) % SETTING_BYTES !== 0) throw new ConnectionError(ErrorCode.frameSize, 'SETTINGS of a wrong size');
  let window: number | undefined;
  for (let at = from; at < to; at += SETTING_BYTES) {
    const value = bytes.readUInt32BE(at + 2);
    switch (bytes.readUInt16BE(at)) {
      case Setting.enablePush:
        if (value > 1) throw new ConnectionError(ErrorCode.protocol, 'ENABLE_PUSH is neither 0 nor 1');
        break;
      case Setting.initialWindowSize:
        if (value > WINDOW_BYTES_MAX)
          throw new ConnectionError(ErrorCode.flowControl, 'an initial window out of range');
        window = value;
        break;
      case Setting.maxFrameSize:
        if (value < FRAME_BYTES_MAX || value > FRAME_BYTES_LIMIT) {
          throw new ConnectionError(ErrorCode.protocol, 'a frame size out of range');
        }
    }
  }
  return window;
}

/** Counts events against a rate. */
class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #at: number;

  /** @param now milliseconds of a monotonic clock */
  constructor(rate: Rate, now: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#at = now;
  }

  /** Counts one event at `now`. @returns false when it is one too many */
  take(now: number): boolean {
    if (this.#tokens < 1) {
      const { burst, perSecond } = this.#rate;
      this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) / 1_000) * perSecond);
      this.#at = now;
    }
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

/** The connection, as the frames of its client see it. */
export interface ClientFramesOwner {
  readonly out: OutBuffer;
  /** Time at which the bytes came that are being read. */
  readonly heardAt: number;
  /** An open stream. */
  stream(id: number): ServerStream | undefined;
  streams(): Iterable<ServerStream>;
  /** Called with a new stream, well formed. */
  open(id: number, head: RequestHead, endStream: boolean, window: number): void;
  /** Called with data of a stream that was turned away. */
  begun(): void;
  /** Counts a reset before an answer for the client's address. @returns false when it is one too many */
  takeReset(): boolean;
  /** Called when the client resets a stream of which no message has come. */
  abandoned(): void;
  /** Resets a stream, whether it is open or not. */
  resetStream(id: number, code: ErrorCode): void;
  /** Called when the client has reset an open stream. */
  gone(stream: ServerStream): void;
  /** Called when data of the stream has been read. */
  credit(stream: ServerStream): void;
  /** Called when the client acts by the settings that it was sent. */
  acknowledged(): void;
  /** Adds `bytes` to what the client takes over all streams. @returns false when that is more than a window holds */
  widen(bytes: number): boolean;
}

/** The latest streams whose end is remembered, to name the error of a frame that comes behind it. */
const ENDED_REMEMBERED = 64;

/**
 * Bound on the streams reset by this side that are remembered, because frames of them may still arrive. A power of two.
 */
const RESET_REMEMBERED = 8_192;

/** Obeys the frames of one client in order, and checks that each is allowed (RFC 9113, sections 5 and 6). */
export class ClientFrames implements FrameSink, HeadSink {
  readonly #owner: ClientFramesOwner;
  readonly #blocks = new HeaderBlocks(this);
  readonly #answered: TokenBucket;
  readonly #empty: TokenBucket;
  readonly #resets: TokenBucket;
  readonly #ended = new Int32Array(ENDED_REMEMBERED);
  #endedCount = 0;
  readonly #resetHere = new ResetStreams();
  #settled = false;
  /** Highest stream that the client has opened. */
  #last = 0;
  /** Send window of new streams, from the client's settings. */
  #initialWindow = WINDOW_BYTES_DEFAULT;
  /** Received bytes for which the client has no new room. */
  #uncredited = 0;
  /** The DATA frame that is being read. */
  #stream: ServerStream | undefined;
  #endStream = false;

  constructor(owner: ClientFramesOwner, now: number) {
    this.#owner = owner;
    this.#answered = new TokenBucket(ANSWERED_FRAMES, now);
    this.#empty = new TokenBucket(EMPTY_FRAMES, now);
    this.#resets = new TokenBucket(RESETS, now);
  }

  /** Highest stream that the client has opened. */
  get last(): number {
    return this.#last;
  }

  /** Takes the end of a stream. */
  ended(id: number): void {
    this.#ended[this.#endedCount++ % ENDED_REMEMBERED] = id;
  }

  /** Takes a reset of a stream by this side; frames of the client may still arrive. */
  wasResetHere(id: number): void {
    this.#resetHere.add(id, false);
  }

  /** As `wasResetHere`, for a stream that was turned away at its header block. */
  wasTurnedAway(id: number): void {
    this.#resetHere.add(id, true);
  }

  // DATA.

  dataBegin(id: number, length: number, flags: number) {
    this.#check(FrameType.data, id);
    this.#endStream = (flags & FLAG_END_STREAM) !== 0;
    this.#stream = undefined;
    if (id === 0) throw protocolError('DATA without a stream');
    this.#uncredited += length;
    if (this.#uncredited > CONNECTION_WINDOW_BYTES) {
      throw new ConnectionError(ErrorCode.flowControl, 'more data than the window of the connection');
    }
    if (length === 0 && !this.#endStream) this.#spendEmpty();
    const stream = this.#owner.stream(id);
    if (stream === undefined) return this.#dataOfNoStream(id);
    if (stream.remoteEnded) return this.#owner.resetStream(id, ErrorCode.streamClosed);
    stream.uncredited += length;
    if (stream.uncredited > STREAM_WINDOW_BYTES) return this.#owner.resetStream(id, ErrorCode.flowControl);
    stream.heardAt = this.#owner.heardAt;
    this.#stream = stream;
  }

  dataPart(bytes: Buffer, from: number, to: number): void {
    if (this.#stream === undefined) return;
    this.#stream.received += to - from;
    this.#stream.data(bytes, from, to);
  }

  dataEnd(): void {
    if (this.#uncredited >= CONNECTION_WINDOW_BYTES / 4) {
      writeWindowUpdate(this.#owner.out, 0, this.#uncredited);
      this.#uncredited = 0;
    }
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#stream = undefined;
    if (this.#endStream) this.#endRemote(stream);
    else this.#owner.credit(stream);
  }

  /**
   * Credits the bytes that were on their way when this side reset the stream: as many streams as are refused may have
   * some.
   */
  #dataOfNoStream(id: number): void {
    this.#refuseIdle(id, 'DATA');
    if (this.#resetHere.has(id)) {
      if (this.#resetHere.speaks(id)) this.#owner.begun();
      if (this.#endStream) this.#resetHere.delete(id);
      return;
    }
    this.#spendEmpty();
    this.#owner.resetStream(id, ErrorCode.streamClosed);
  }

  /** Takes the client's end of a stream. */
  #endRemote(stream: ServerStream) {
    if (stream.announced !== undefined && stream.announced !== stream.received) {
      return this.#owner.resetStream(stream.id, ErrorCode.protocol);
    }
    stream.remoteEnd();
    this.#owner.credit(stream);
  }

  // Header blocks.

  head(id: number, endStream: boolean, head: RequestHead) {
    if (id <= this.#last) return this.#laterHead(id, endStream, head);
    this.#last = id;
    if (head.problem(false) !== undefined) return this.#owner.resetStream(id, ErrorCode.protocol);
    if (endStream && (head.contentLength ?? 0) > 0) return this.#owner.resetStream(id, ErrorCode.protocol);
    this.#owner.open(id, head, endStream, this.#initialWindow);
  }

  /** Takes a header block of a stream that has been opened. */
  #laterHead(id: number, endStream: boolean, head: RequestHead) {
    const stream = this.#owner.stream(id);
    if (stream !== undefined) return this.#trailers(stream, endStream, head);
    if (this.#resetHere.has(id)) return this.#spendEmpty();
    if (!this.#ended.includes(id)) throw protocolError('a stream behind a later one');
    throw new ConnectionError(ErrorCode.streamClosed, 'HEADERS of a stream that has ended');
  }

  #trailers(stream: ServerStream, endStream: boolean, head: RequestHead) {
    stream.heardAt = this.#owner.heardAt;
    if (stream.remoteEnded) return this.#owner.resetStream(stream.id, ErrorCode.streamClosed);
    if (!endStream || head.problem(true) !== undefined) {
      return this.#owner.resetStream(stream.id, ErrorCode.protocol);
    }
    this.#endRemote(stream);
  }

  // All other frames.

  frame(type: number, flags: number, id: number, bytes: Buffer, from: number, to: number) {
    this.#check(type, id);
    const length = to - from;
    switch (type) {
      case FrameType.headers:
        if (id % 2 === 0) throw protocolError('a stream of a client has an odd number');
        return this.#blocks.headers(flags, id, bytes, from, to);
      case FrameType.continuation:
        return this.#blocks.continuation(flags, id, bytes, from, to);
      case FrameType.windowUpdate:
        return this.#windowUpdate(id, length, length === 4 ? bytes.readUInt32BE(from) & WINDOW_BYTES_MAX : 0);
      case FrameType.rstStream:
        return this.#reset(id, length);
      case FrameType.settings:
        return this.#settings(flags, id, bytes, from, to);
      case FrameType.ping:
        return this.#ping(flags, id, bytes, from, to);
      case FrameType.priority:
        return this.#priority(id, length, length === 5 ? bytes.readUInt32BE(from) & WINDOW_BYTES_MAX : 0);
      case FrameType.goaway:
        // The client opens no more streams; it closes the connection after the last answer.
        if (id !== 0) throw protocolError('GOAWAY on a stream');
        if (length < 8) throw sizeError('GOAWAY');
        return;
      case FrameType.pushPromise:
        throw protocolError('PUSH_PROMISE of a client');
      default:
        this.#spendEmpty();
    }
  }

  #check(type: number, id: number): void {
    if (!this.#settled && type !== FrameType.settings) throw protocolError('the preface has no SETTINGS');
    this.#blocks.check(type, id);
  }

  #windowUpdate(id: number, length: number, increment: number): void {
    if (length !== 4) throw sizeError('WINDOW_UPDATE');
    if (id === 0) {
      if (increment === 0) throw protocolError('WINDOW_UPDATE by nothing');
      if (!this.#owner.widen(increment)) throw new ConnectionError(ErrorCode.flowControl, 'a window out of range');
      return;
    }
    const stream = this.#owner.stream(id);
    if (stream === undefined) {
      this.#refuseIdle(id, 'WINDOW_UPDATE');
      this.#spendEmpty();
    } else if (increment === 0) this.#owner.resetStream(id, ErrorCode.protocol);
    else if (!stream.widen(increment)) this.#owner.resetStream(id, ErrorCode.flowControl);
  }

  #reset(id: number, length: number) {
    if (id === 0) throw protocolError('RST_STREAM without a stream');
    if (length !== 4) throw sizeError('RST_STREAM');
    const stream = this.#owner.stream(id);
    if (stream === undefined) {
      this.#refuseIdle(id, 'RST_STREAM');
      if (!this.#resetHere.has(id)) return this.#spendEmpty();
      if (this.#resetHere.speaks(id)) this.#owner.abandoned();
      this.#resetHere.delete(id);
      return;
    }
    if (!stream.answered && !(this.#owner.takeReset() && this.#resets.take(this.#owner.heardAt))) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many streams are reset before they have an answer');
    }
    if (!stream.begun) this.#owner.abandoned();
    this.#owner.gone(stream);
  }

  #settings(flags: number, id: number, bytes: Buffer, from: number, to: number) {
    if (id !== 0) throw protocolError('SETTINGS on a stream');
    if ((flags & FLAG_ACK) !== 0) {
      if (to > from) throw sizeError('an acknowledgement of SETTINGS');
      if (!this.#settled) throw protocolError('the preface has no SETTINGS');
      this.#owner.acknowledged();
      return this.#spendEmpty();
    }
    const window = initialWindowOf(bytes, from, to);
    this.#spendAnswered();
    this.#settled = true;
    if (window !== undefined) this.#changeWindows(window);
    writeSettingsAck(this.#owner.out);
  }

  /** Applies a change to the open streams, too (section 6.9.2). */
  #changeWindows(window: number): void {
    const change = window - this.#initialWindow;
    this.#initialWindow = window;
    if (change === 0) return;
    for (const stream of this.#owner.streams()) {
      if (!stream.widen(change)) throw new ConnectionError(ErrorCode.flowControl, 'a window out of range');
    }
  }

  #ping(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    if (id !== 0) throw protocolError('PING on a stream');
    if (to - from !== 8) throw sizeError('PING');
    this.#spendAnswered();
    if ((flags & FLAG_ACK) !== 0) return;
    writePing(this.#owner.out, true, bytes, from);
  }

  /** Priorities were given up by RFC 9113; a frame is checked and means nothing. */
  #priority(id: number, length: number, dependency: number): void {
    if (id === 0) throw protocolError('PRIORITY without a stream');
    this.#spendEmpty();
    if (length !== 5) this.#owner.resetStream(id, ErrorCode.frameSize);
    else if (dependency === id) this.#owner.resetStream(id, ErrorCode.protocol);
  }

  /** @throws ConnectionError when the stream has never been opened */
  #refuseIdle(id: number, what: string): void {
    if (id > this.#last || id % 2 === 0) throw protocolError(`${what} of a stream that is not open`);
  }

  #spendEmpty(): void {
    if (this.#empty.take(this.#owner.heardAt)) return;
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many frames that carry nothing');
  }

  #spendAnswered(): void {
    if (this.#answered.take(this.#owner.heardAt)) return;
    throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many SETTINGS and PING');
  }
}

function protocolError(message: string): ConnectionError {
  return new ConnectionError(ErrorCode.protocol, message);
}

function sizeError(what: string): ConnectionError {
  return new ConnectionError(ErrorCode.frameSize, `${what} of a wrong size`);
}

/**
 * The latest streams that this side has reset, each at the place of its number. Frames on them mean nothing until the
 * client ends them, and are no error.
 */
class ResetStreams {
  #streams: Int32Array | undefined;

  /** @param isNew whether nothing but its header block has come */
  add(stream: number, isNew: boolean): void {
    this.#streams ??= new Int32Array(RESET_REMEMBERED);
    // Below 0 = more has come.
    this.#streams[place(stream)] = isNew ? stream : -stream;
  }

  has(stream: number): boolean {
    return Math.abs(this.#streams?.[place(stream)] ?? 0) === stream;
  }

  /** Takes data or the end of a remembered stream. @returns whether only its header block had come */
  speaks(stream: number): boolean {
    const at = place(stream);
    const isFirst = this.#streams![at] === stream;
    this.#streams![at] = -stream;
    return isFirst;
  }

  /** Forgets a remembered stream. */
  delete(stream: number): void {
    this.#streams![place(stream)] = 0;
  }
}

/** Place of a reset stream: streams of a client have odd numbers. */
function place(stream: number): number {
  return (stream >>> 1) & (RESET_REMEMBERED - 1);
}
