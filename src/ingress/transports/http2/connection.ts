import { bufferSize } from '../../../request/kept-buffers.js';
import { type ConnectionShare, unshared } from '../../client-shares.js';
import type { ByteBudget } from '../../transport.js';
import { CallRoutes } from './call-routes.js';
import { ClientFrames, type ClientFramesOwner } from './client-frames.js';
import { ConnectionBudget, UnfinishedMessages } from './connection-budget.js';
import { FixedAnswer } from './fixed-answer.js';
import { FrameReader } from './frame-reader.js';
import { writeGoaway, writeHeaders, writePing, writeReset, writeSettings, writeWindowUpdate } from './frames.js';
import {
  CONNECTION_WINDOW_BYTES,
  HASTY_MAX,
  HASTY_MIN,
  HEADER_LIST_BYTES_MAX,
  KEEPALIVE_MS,
  KEEPALIVE_TIMEOUT_MS,
  PREFACE_MS_MAX,
  SHUT_STREAMS_MAX,
  STREAM_WINDOW_BYTES,
  UNFINISHED_BYTES_MAX,
  UNSENT_BYTES_MAX,
  UNSENT_CONTROL_BYTES_MAX,
} from './limits.js';
import { OutBuffer, type Wire } from './out-buffer.js';
import {
  ConnectionError,
  ErrorCode,
  Setting,
  STREAM_ID_MAX,
  WINDOW_BYTES_DEFAULT,
  WINDOW_BYTES_MAX,
} from './protocol.js';
import { ReceiveWindows } from './receive-windows.js';
import { errorTrailers, GrpcStatus, type PlainAnswer } from './reply-headers.js';
import type { RequestHead } from './request-head.js';
import { type Method, ServerStream, type StreamOwner } from './server-stream.js';

/** Data of the PING that asks whether the client is still there; every frame counts as an answer. */
const KEEPALIVE_DATA = Buffer.alloc(8);
const OVERLOADED = errorTrailers(GrpcStatus.unavailable, 'picker overloaded', true);
/** Longest time of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export interface ConnectionOptions {
  /** By path. */
  readonly methods: ReadonlyMap<string, Method>;
  /** For the bytes of messages that are not complete. */
  readonly budget: ByteBudget;
  /** Bound on the bytes that one connection holds. */
  readonly heldBytesMax: number;
  readonly messageBytesMax: number;
  readonly replyBytesMax: number;
  /** Open streams of one connection. */
  readonly streamsMax: number;
  /** Silence of a stream after which its handler is told, in milliseconds. */
  readonly stallMs: number;
  /** As `StreamEntry.behind`. */
  readonly behind?: (() => void) | undefined;
  /** Milliseconds of a monotonic clock, that of the streams' services: read at the beginning of each turn. */
  readonly now: () => number;
}

/** The socket under a connection. */
export interface ConnectionWire extends Wire {
  /**
   * Sends all written bytes, then closes.
   * @param linger reads what still comes for a while and throws it away: a client whose bytes meet a closed socket
   *   gets a reset, which drops what the client has not read yet
   */
  end(linger: boolean): void;
}

/** Step of closing the connection from this side. */
type Closing =
  | 'open'
  /** The client was told that the end is near; streams are still taken. */
  | 'announced'
  /** Streams that are open are finished, new ones refused. */
  | 'draining'
  | 'closed';

/** HTTP/2 of one connection, the server's side, for gRPC: bytes in, streams with their handlers, bytes out. */
export class Http2Connection implements ClientFramesOwner, StreamOwner {
  readonly out: OutBuffer;
  readonly budget: ConnectionBudget;
  readonly unfinished: UnfinishedMessages;
  readonly messageBytesMax: number;
  readonly replyBytesMax: number;
  readonly #options: ConnectionOptions;
  readonly #wire: ConnectionWire;
  readonly #client: ClientFrames;
  readonly #reader: FrameReader;
  readonly #windows: ReceiveWindows;
  readonly #streams = new Map<number, ServerStream>();
  readonly #routes: CallRoutes;
  /** Answer to the stream that was turned away last. */
  #fixed: FixedAnswer | undefined;
  /** Streams with replies within their own window, in the order of service. */
  readonly #waiting = new Set<ServerStream>();
  /** Ended streams whose handlers are told at the end of the turn. */
  #leaving: ServerStream[] = [];
  #closing: Closing = 'open';
  /** Bytes that the client takes, over all streams. */
  #window = WINDOW_BYTES_DEFAULT;
  readonly openedAt: number;
  heardAt: number;
  /** Streams that the client has opened so far, and those of them whose age was judged. */
  opened = 0;
  judged = 0;
  /** Streams whose replies wait for a window of their own. */
  #shut = 0;
  /** Streams that were reset before their first message, less those that got to it. */
  #hasty = 0;
  /** Part of the connection in what its shard has. */
  readonly share: ConnectionShare;
  arrivedAt: number;
  #now: number;
  #askedAt: number | undefined;
  #inTurn = false;
  #late = false;

  constructor(wire: ConnectionWire, options: ConnectionOptions, share = unshared()) {
    this.#wire = wire;
    this.share = share;
    this.#options = options;
    this.out = new OutBuffer(wire);
    this.budget = new ConnectionBudget(options.budget, options.heldBytesMax);
    // Room for the largest message, as its buffer grows.
    const unfinishedMax = Math.max(UNFINISHED_BYTES_MAX, 2 * bufferSize(options.messageBytesMax));
    this.unfinished = new UnfinishedMessages(this.budget, unfinishedMax);
    this.#windows = new ReceiveWindows(this.out, this.unfinished);
    this.messageBytesMax = options.messageBytesMax;
    this.replyBytesMax = options.replyBytesMax;
    this.#now = options.now();
    this.openedAt = this.#now;
    this.heardAt = this.#now;
    this.arrivedAt = this.#now;
    this.#routes = new CallRoutes(options.methods);
    this.#client = new ClientFrames(this, this.#now);
    this.#reader = new FrameReader(this.#client);
    writeSettings(this.out, [
      [Setting.maxConcurrentStreams, options.streamsMax],
      [Setting.initialWindowSize, STREAM_WINDOW_BYTES],
      [Setting.maxHeaderListSize, HEADER_LIST_BYTES_MAX],
    ]);
    writeWindowUpdate(this.out, 0, CONNECTION_WINDOW_BYTES - WINDOW_BYTES_DEFAULT);
    this.touch();
  }

  /** Open streams. */
  get streamCount(): number {
    return this.#streams.size;
  }

  get isClosed(): boolean {
    return this.#closing === 'closed';
  }

  // Bytes and time.

  /**
   * The next bytes from the socket; valid during the call.
   * @param arrivedAt earliest time at which they can have come
   * @param more there is more to read, or `flush` is called: replies may leave later, in one piece
   */
  receive(bytes: Buffer, from: number, to: number, arrivedAt = this.#options.now(), more = false): void {
    if (this.isClosed) return;
    this.arrivedAt = arrivedAt;
    this.#turn(() => {
      this.heardAt = this.#now;
      this.#reader.push(bytes, from, to);
    }, more);
  }

  /** Sends the deferred bytes. */
  flush(): void {
    if (!this.isClosed && this.out.dirty) this.#turn(() => undefined);
  }

  /** Takes the socket's word that all bytes were sent. */
  drained(): void {
    if (!this.isClosed) this.#turn(() => undefined);
  }

  /** Takes the end of the socket. Idempotent. */
  closed(): void {
    if (this.isClosed) return;
    this.#closing = 'closed';
    this.#reader.stop();
    this.out.close();
    this.#leaving.push(...this.#streams.values());
    this.#streams.clear();
    this.share.leave();
    this.#waiting.clear();
    this.#tellLeaving();
  }

  /** Looks at the clock: silent streams are told of, a silent connection is asked or closed. */
  sweep() {
    if (this.isClosed) return;
    this.#now = this.#options.now();
    if (!this.#reader.begun && this.#now - this.openedAt > PREFACE_MS_MAX) return this.#end();
    if (this.#askedAt !== undefined && this.heardAt > this.#askedAt) this.#askedAt = undefined;
    if (this.#askedAt !== undefined && this.#now - this.#askedAt > KEEPALIVE_TIMEOUT_MS) return this.#end();
    const asks = this.#askedAt === undefined && this.#now - this.heardAt > KEEPALIVE_MS;
    // A thousand idle connections are looked at in one turn of the event loop.
    if (!asks && this.#streams.size === 0) return;
    this.#turn(() => {
      if (asks) this.#ask();
      this.#tellStalled();
      this.#windows.sweep();
    });
  }

  #ask(): void {
    this.#askedAt = this.#now;
    writePing(this.out, false, KEEPALIVE_DATA, 0);
  }

  #tellStalled(): void {
    const { stallMs } = this.#options;
    for (const stream of this.#streams.values()) {
      if (this.#now - stream.heardAt <= stallMs) continue;
      stream.heardAt = this.#now;
      stream.stalled();
    }
  }

  // Closing.

  /** Tells the client that the connection will close; nothing is refused so far. */
  announceEnd(): void {
    if (this.#closing !== 'open') return;
    this.#closing = 'announced';
    this.#turn(() => writeGoaway(this.out, STREAM_ID_MAX, ErrorCode.noError, 'the picker shuts down'));
  }

  /** Takes no more streams; the connection closes when the last one has ended. */
  drain(): void {
    if (this.#closing === 'closed' || this.#closing === 'draining') return;
    this.#closing = 'draining';
    this.#turn(() => writeGoaway(this.out, this.#client.last, ErrorCode.noError, 'the picker shuts down'));
  }

  /** Closes now. */
  destroy(): void {
    if (this.isClosed) return;
    writeGoaway(this.out, this.#client.last, ErrorCode.noError, '');
    this.#end(false);
  }

  #fail(code: ErrorCode, why: string): void {
    if (this.isClosed) return;
    writeGoaway(this.out, this.#client.last, code, why);
    this.#end();
  }

  #end(linger = true): void {
    this.out.flush();
    this.#wire.end(linger);
    this.closed();
  }

  // Turns: replies are written while work is done, and leave in one piece at its end.

  touch(): void {
    if (this.#inTurn || this.#late) return;
    this.#late = true;
    process.nextTick(this.#lateTurn);
  }

  readonly #lateTurn = (): void => {
    this.#late = false;
    if (!this.isClosed) this.#turn(() => undefined);
  };

  #turn(work: () => void, more = false): void {
    this.#inTurn = true;
    // Also for the streams, whose messages get the time of this reading.
    this.#now = this.#options.now();
    try {
      work();
      this.#settle(more);
    } catch (error) {
      if (!(error instanceof ConnectionError)) {
        this.#fail(ErrorCode.internal, 'internal error');
        throw error;
      }
      this.#fail(error.code, error.message);
    } finally {
      this.#inTurn = false;
    }
  }

  /** @param more output is left for a later turn */
  #settle(more: boolean): void {
    do {
      // Before the streams that leave: with its last waiting bytes a stream ends.
      this.#pump();
      for (const stream of this.#leaving) this.#closeRemote(stream);
      this.#windows.settle(this.#streams.values());
      if (!more) this.out.flush();
      this.#tellLeaving();
    } while (!this.isClosed && ((this.out.dirty && !more) || this.#leaving.length > 0 || this.#canPump));
    if (this.out.unsent > UNSENT_CONTROL_BYTES_MAX) this.#fail(ErrorCode.enhanceYourCalm, 'replies are not read');
    else if (this.#closing === 'draining' && this.#streams.size === 0) this.#end();
  }

  #tellLeaving(): void {
    const leaving = this.#leaving;
    if (leaving.length === 0) return;
    this.#leaving = [];
    for (const stream of leaving) {
      this.#waiting.delete(stream);
      stream.close();
    }
  }

  /** Ends a stream that only this side has ended: the client need not go on. */
  #closeRemote(stream: ServerStream): void {
    if (this.#streams.get(stream.id) !== stream) return;
    this.#forget(stream);
    if (stream.remoteEnded) return;
    this.#client.wasResetHere(stream.id);
    writeReset(this.out, stream.id, ErrorCode.noError);
  }

  #forget(stream: ServerStream): void {
    if (this.#streams.delete(stream.id)) this.share.ended();
    this.#windows.leave(stream);
    this.#client.ended(stream.id);
  }

  // Effects of the client's frames.

  stream(id: number): ServerStream | undefined {
    return this.#streams.get(id);
  }

  streams(): Iterable<ServerStream> {
    return this.#streams.values();
  }

  widen(bytes: number): boolean {
    this.#window += bytes;
    return this.#window <= WINDOW_BYTES_MAX;
  }

  gone(stream: ServerStream): void {
    stream.drop();
    this.#forget(stream);
    this.#waiting.delete(stream);
    this.#leaving.push(stream);
  }

  resetStream(id: number, code: ErrorCode): void {
    this.#client.wasResetHere(id);
    writeReset(this.out, id, code);
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.gone(stream);
  }

  open(id: number, head: RequestHead, endStream: boolean, window: number) {
    this.opened++;
    if (this.#streams.size >= this.#options.streamsMax || this.#closing === 'draining') {
      return this.resetStream(id, ErrorCode.refusedStream);
    }
    if (this.#shut >= SHUT_STREAMS_MAX) {
      this.share.noteShut();
      return this.resetStream(id, ErrorCode.refusedStream);
    }
    const found = this.#routes.find(head);
    if (found instanceof Uint8Array) return this.#refuse(id, found, endStream);
    if ('open' in found) {
      const passes = this.#hasty >= HASTY_MIN || this.share.goesFirst;
      if (!passes) this.judged++;
      const answer = found.turnAway?.(this.arrivedAt, this.share.isCrowded, passes);
      if (answer !== undefined) return this.#turnAway(id, answer, endStream, window);
    }
    this.#start(this.#newStream(id, head, window), found, head, endStream);
  }

  begun(): void {
    if (this.#hasty > 0) this.#hasty--;
  }

  abandoned(): void {
    if (this.#hasty < HASTY_MAX) this.#hasty++;
  }

  #newStream(id: number, head: RequestHead, window: number): ServerStream {
    const stream = new ServerStream(id, this, window);
    stream.heardAt = this.heardAt;
    stream.announced = head.contentLength;
    this.#streams.set(id, stream);
    this.share.opened();
    return stream;
  }

  #start(stream: ServerStream, by: Method | PlainAnswer, { timeoutMs }: RequestHead, endStream: boolean): void {
    if ('open' in by) stream.attach(by);
    else stream.refuse(by);
    if (timeoutMs !== undefined) this.#limit(stream, timeoutMs);
    if (endStream) stream.remoteEnd();
  }

  /** Ends a call that has no stream with one header block. */
  #refuse(id: number, block: Buffer, endStream: boolean): void {
    writeHeaders(this.out, id, block, true);
    this.#client.ended(id);
    if (!endStream) this.resetStream(id, ErrorCode.noError);
  }

  /** Answers a call with one message, without a stream; a client that takes no data gets a status. */
  #turnAway(id: number, message: Uint8Array, endStream: boolean, window: number) {
    if (this.#fixed?.message !== message) this.#fixed = new FixedAnswer(message);
    const { dataBytes } = this.#fixed;
    if (dataBytes > Math.min(window, this.sendRoom)) return this.#refuse(id, OVERLOADED, endStream);
    this.#fixed.write(this.out, id, !endStream);
    this.sent(dataBytes);
    this.#client.ended(id);
    if (!endStream) this.#client.wasTurnedAway(id);
  }

  #limit(stream: ServerStream, ms: number): void {
    const late = (): void => stream.abort(GrpcStatus.deadlineExceeded, 'the deadline of the call has passed');
    stream.deadline = setTimeout(late, Math.min(ms, TIMER_MS_MAX));
    stream.deadline.unref();
  }

  // Requests of the streams.

  get goesFirst(): boolean {
    return this.share.goesFirst;
  }

  takeReset(): boolean {
    return this.share.takeReset(this.heardAt);
  }

  get sendRoom(): number {
    return this.out.unsent > UNSENT_BYTES_MAX ? 0 : this.#window;
  }

  sent(bytes: number): void {
    this.#window -= bytes;
  }

  waits(stream: ServerStream): void {
    this.#waiting.add(stream);
    this.touch();
  }

  shut(change: number): void {
    this.#shut += change;
  }

  finished(stream: ServerStream): void {
    this.#leaving.push(stream);
    this.touch();
  }

  credit(stream: ServerStream): void {
    if (this.#windows.credit(stream)) this.touch();
  }

  acknowledged(): void {
    this.#windows.acknowledged();
  }

  cut(stream: ServerStream, code: ErrorCode): void {
    this.resetStream(stream.id, code);
    this.touch();
  }

  get #canPump(): boolean {
    return this.#waiting.size > 0 && this.sendRoom > 0;
  }

  /** Sends one frame of each stream that waits, round by round, while the connection has room. */
  #pump(): void {
    for (const stream of this.#waiting) {
      if (this.sendRoom <= 0) return;
      this.#waiting.delete(stream);
      if (stream.pump()) this.#waiting.add(stream);
    }
  }
}
