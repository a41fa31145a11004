import type { HeldMemory, ProcessHandler, ProcessStream } from '../../transport.js';
import type { ConnectionBudget } from './connection-budget.js';
import { writeHeaders } from './frames.js';
import { PAUSE_BYTES, RESUME_BYTES, SHORT_REPLIES_BYTES } from './limits.js';
import { type MessageMemory, MessageReader, type MessageSink, PREFIX_BYTES, writePrefix } from './message-reader.js';
import type { OutBuffer } from './out-buffer.js';
import { ErrorCode, FLAG_END_STREAM, FRAME_BYTES_MAX, FrameType, WINDOW_BYTES_MAX } from './protocol.js';
import type { ReceivingStream } from './receive-windows.js';
import {
  errorTrailers,
  GrpcStatus,
  HEADERS_AND_TRAILERS_OK,
  type PlainAnswer,
  RESPONSE_HEADERS,
  TRAILERS_OK,
} from './reply-headers.js';
import { ReplyQueue } from './reply-queue.js';

/** A method of a gRPC service. */
export interface Method {
  /** Makes the handler of a stream. */
  open(stream: ProcessStream): ProcessHandler;
  /**
   * Whether handlers are made with their first call, so that an early reset makes none. Absent = with the stream's
   * headers.
   */
  readonly opensLate?: boolean;
  /** As `StreamEntry.turnAway`. */
  turnAway?(arrivedAt: number, crowded: boolean, passes: boolean): Uint8Array | undefined;
  /** Called when a stream has come. */
  came?(): void;
  /** As `StreamEntry.abandoned`. */
  abandoned?(arrivedAt: number): void;
  /** Called when a stream has ended and its handler knows. */
  closed?(): void;
}

/** Services of a connection for its streams. */
export interface StreamOwner {
  readonly out: OutBuffer;
  /** As `ProcessStream.goesFirst`, for a stream whose first message comes now. */
  readonly goesFirst: boolean;
  /** Earliest time at which the bytes under way can have arrived. */
  readonly arrivedAt: number;
  readonly budget: ConnectionBudget;
  /** For messages that are not whole. */
  readonly unfinished: MessageMemory;
  readonly messageBytesMax: number;
  readonly replyBytesMax: number;
  /** Bytes that the connection's window lets through now; 0 while the socket has too much to send. */
  readonly sendRoom: number;
  /** Called at the first message of a stream whose handler is made late. */
  begun(): void;
  /** Bytes have been written under the connection's window. */
  sent(bytes: number): void;
  /** Called when the stream has replies that its own window lets through: `pump` it when the connection has room. */
  waits(stream: ServerStream): void;
  /** Counts streams whose replies wait for a window of their own. */
  shut(change: number): void;
  /** Called when the last frame of the stream has been written. */
  finished(stream: ServerStream): void;
  /** Resets the stream: its waiting bytes are dropped. */
  cut(stream: ServerStream, code: ErrorCode): void;
  /** Called when the stream is read again: the client may send more. */
  credit(stream: ServerStream): void;
  /** Called after a write: the connection flushes in this turn. */
  touch(): void;
}

/** End of a stream: its trailers, after everything before them. */
type Ending = { readonly code: number; readonly message: string };

const OK: Ending = { code: GrpcStatus.ok, message: '' };
const NO_PARTS: readonly Uint8Array[] = [];

/** One gRPC stream of a connection: messages in, replies out under both windows, one status at the end. */
export class ServerStream implements ProcessStream, MessageSink, ReceivingStream {
  readonly id: number;
  readonly arrivedAt: number;
  readonly #owner: StreamOwner;
  readonly #reader: MessageReader;
  /** Waiting replies; undefined = no reply has had to wait. */
  #queue: ReplyQueue | undefined;
  #plain: PlainAnswer | undefined;
  #method: Method | undefined;
  #handler: ProcessHandler | undefined;
  /** Bytes that the client still takes of this stream; below 0 after it has narrowed its windows. */
  #window: number;
  #headersSent = false;
  #ending: Ending | undefined;
  /** Whether the handler itself has ended the stream. */
  #endedByHandler = false;
  #trailersSent = false;
  #remoteEnded = false;
  #halfClosedTold = false;
  #closed = false;
  #paused = false;
  /** Whether replies wait for the stream's own window. */
  #isShut = false;
  /** Bytes of replies that count against the budget. */
  #owed = 0;
  /** Data that came while the stream was not read. */
  #unread: Buffer[] | undefined;
  #unreadBytes = 0;
  /** Received bytes for which the client has no new room. */
  uncredited = 0;
  /** Bytes of data so far, and as many as the request announced. */
  received = 0;
  announced: number | undefined;
  /** Time at which anything last came, by the connection's clock. */
  heardAt = 0;
  deadline: NodeJS.Timeout | undefined;

  constructor(id: number, owner: StreamOwner, window: number) {
    this.id = id;
    this.arrivedAt = owner.arrivedAt;
    this.#owner = owner;
    this.#window = window;
    this.#reader = new MessageReader(this, owner.unfinished, owner.messageBytesMax);
  }

  /** Answers a request that is no gRPC call, once it is complete. */
  refuse(answer: PlainAnswer): void {
    this.#plain = answer;
  }

  /** Gives the stream to its method. */
  attach(method: Method): void {
    this.#method = method;
    method.came?.();
    if (method.opensLate !== true) this.#handler = method.open(this);
  }

  // Frames of the client.

  get remoteEnded(): boolean {
    return this.#remoteEnded;
  }

  /** Whether a reply has left, or is on its way. */
  get answered(): boolean {
    return this.#headersSent || this.#ending !== undefined;
  }

  /** Whether the stream has a handler: what came of it counts as a request. */
  get begun(): boolean {
    return this.#handler !== undefined;
  }

  /** As `ReceivingStream.missing`. */
  get missing(): number {
    return this.#ending === undefined ? this.#reader.missing : 0;
  }

  /** Takes a part of the stream's data. */
  data(bytes: Buffer, from: number, to: number) {
    if (this.#ending !== undefined || this.#plain !== undefined) return;
    const at = this.#paused ? from : this.#reader.push(bytes, from, to);
    if (this.#reader.fault !== undefined) return this.#refuse();
    if (at === to || this.#ending !== undefined) return;
    if (!this.#owner.budget.take(to - at)) return this.#refuse();
    this.#unread ??= [];
    this.#unread.push(Buffer.from(bytes.subarray(at, to)));
    this.#unreadBytes += to - at;
  }

  /** Takes the client's half-close. */
  remoteEnd(): void {
    this.#remoteEnded = true;
    if (this.#plain !== undefined) this.#answerPlainly(this.#plain);
    else if (this.#unreadBytes === 0) this.#tellHalfClosed();
  }

  message(bytes: Buffer, from: number, to: number): boolean {
    this.#opened.message(bytes, from, to);
    return !this.#paused && this.#ending === undefined;
  }

  /** Takes a stall: nothing has come for a while. */
  stalled(): void {
    if (this.#ending !== undefined) return;
    if (this.#plain !== undefined) this.#answerPlainly(this.#plain);
    else this.#opened.stalled();
  }

  /**
   * Takes a change of the window that the client gives, up or, by its settings, down. @returns false when it overflows
   */
  widen(bytes: number): boolean {
    this.#window += bytes;
    if (this.#window > WINDOW_BYTES_MAX) return false;
    if (bytes > 0) this.#wait();
    this.#tellShut();
    return true;
  }

  /** Whether the handler takes no more, so that the client's window is not opened again. */
  get paused(): boolean {
    return this.#paused;
  }

  // Output of the handler.

  get pendingBytes(): number {
    return this.#queuedBytes;
  }

  get goesFirst(): boolean {
    return this.#owner.goesFirst;
  }

  get room(): number {
    return Math.max(0, this.#room) + this.#owner.budget.room;
  }

  send(reply: Uint8Array) {
    const length = reply.length;
    const size = PREFIX_BYTES + length;
    if (!this.#begin(length)) return;
    if (!this.#fits(size)) return this.#enqueue(length, reply, NO_PARTS, undefined);
    const at = this.#dataFrame(size);
    const { bytes } = this.#owner.out;
    writePrefix(bytes, at, length);
    bytes.set(reply, at + PREFIX_BYTES);
  }

  sendParts(head: Uint8Array, parts: readonly Uint8Array[], memory?: HeldMemory) {
    let length = head.length;
    for (const part of parts) length += part.length;
    const size = PREFIX_BYTES + length;
    if (!this.#begin(length)) return;
    if (!this.#fits(size)) return this.#enqueue(length, head, parts, memory);
    let at = this.#dataFrame(size);
    const { bytes } = this.#owner.out;
    writePrefix(bytes, at, length);
    at += PREFIX_BYTES;
    bytes.set(head, at);
    at += head.length;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
  }

  end(): void {
    this.#endWith(OK, true);
  }

  fail(code: number, message: string): void {
    this.#endWith({ code, message }, true);
  }

  /** As `fail`, by the transport: the handler is told that the stream was cut off. */
  abort(code: number, message: string): void {
    this.#endWith({ code, message }, false);
  }

  /** Sends what the windows let through, at most one frame. @returns whether there is more that could go */
  pump(): boolean {
    const queue = this.#queue;
    if (queue !== undefined && queue.bytes > 0 && this.#room > 0) {
      this.#sendQueued(queue);
      if (this.#paused && queue.bytes <= RESUME_BYTES) this.#resume();
    }
    this.#tellShut();
    if (this.#queuedBytes > 0) return this.#window > 0;
    this.#finish();
    return false;
  }

  // The end.

  /** Takes a reset by either side: nothing more leaves. */
  drop(): void {
    this.#ending ??= OK;
    this.#trailersSent = true;
    this.#tellShut();
  }

  /** Ends the stream: the handler is told, once. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ending ??= OK;
    clearTimeout(this.deadline);
    this.#dropUnread();
    this.#reader.close();
    this.#queue?.clear();
    this.#tellShut();
    this.#owe();
    if (this.#handler === undefined) this.#method?.abandoned?.(this.arrivedAt);
    else this.#handler.closed(!this.#endedByHandler);
    this.#handler = undefined;
    this.#method?.closed?.();
  }

  /** Whether both sides have ended. */
  get over(): boolean {
    return this.#trailersSent;
  }

  /** Handler of the stream, made at its first use. */
  get #opened(): ProcessHandler {
    if (this.#handler === undefined) {
      this.#owner.begun();
      this.#handler = this.#method!.open(this);
    }
    return this.#handler;
  }

  get #queuedBytes(): number {
    return this.#queue?.bytes ?? 0;
  }

  get #room(): number {
    return Math.min(this.#window, this.#owner.sendRoom);
  }

  #answerPlainly({ head, text }: PlainAnswer): void {
    this.#owner.touch();
    writeHeaders(this.#owner.out, this.id, head, false);
    this.#headersSent = true;
    this.#ending = OK;
    const queue = this.#waitingReplies();
    queue.add(text, undefined);
    this.#sendQueue(queue);
    this.#finish();
  }

  /** Sends the response headers before the first message. @returns false when the stream takes no more messages */
  #begin(length: number): boolean {
    if (this.#ending !== undefined) return false;
    if (length > this.#owner.replyBytesMax) {
      this.abort(GrpcStatus.resourceExhausted, `a reply of ${length} bytes is longer than the bound`);
      return false;
    }
    this.#owner.touch();
    if (!this.#headersSent) writeHeaders(this.#owner.out, this.id, RESPONSE_HEADERS, false);
    this.#headersSent = true;
    return true;
  }

  /** Whether a message of this size can leave now, in one frame. */
  #fits(size: number): boolean {
    return this.#queuedBytes === 0 && size <= FRAME_BYTES_MAX && size <= this.#room;
  }

  #dataFrame(length: number): number {
    this.#window -= length;
    this.#owner.sent(length);
    return this.#owner.out.frame(length, FrameType.data, 0, this.id);
  }

  #enqueue(length: number, head: Uint8Array, parts: readonly Uint8Array[], memory: HeldMemory | undefined) {
    const prefix = Buffer.allocUnsafe(PREFIX_BYTES);
    writePrefix(prefix, 0, length);
    const queue = this.#waitingReplies();
    queue.add(prefix, undefined);
    queue.add(head, undefined);
    for (const part of parts) queue.add(part, memory);
    this.#sendQueue(queue);
  }

  #waitingReplies(): ReplyQueue {
    this.#queue ??= new ReplyQueue();
    return this.#queue;
  }

  /** Sends what the windows let through; the rest waits for them. */
  #sendQueue(queue: ReplyQueue) {
    while (queue.bytes > 0 && this.#room > 0) this.#sendQueued(queue);
    if (queue.bytes === 0) return;
    queue.keep();
    if (!this.#owe()) return this.#owner.cut(this, ErrorCode.enhanceYourCalm);
    this.#wait();
    this.#tellShut();
    if (queue.bytes > PAUSE_BYTES) this.#paused = true;
  }

  /** Counts waiting replies until they are sent. @returns false when there is no room for them */
  #owe(): boolean {
    const { budget } = this.#owner;
    const bytes = this.#queuedBytes;
    const change = bytes - this.#owed;
    if (change < 0) budget.give(-change);
    else if (bytes <= SHORT_REPLIES_BYTES) budget.force(change);
    else if (!budget.take(change)) return false;
    this.#owed += change;
    return true;
  }

  /** Sends one frame of the waiting replies. */
  #sendQueued(queue: ReplyQueue): void {
    const size = Math.min(queue.bytes, FRAME_BYTES_MAX, this.#room);
    // The frame first: it may begin another chunk.
    const at = this.#dataFrame(size);
    queue.read(size, this.#owner.out.bytes, at);
    if (this.#owed > 0) this.#owe();
  }

  #wait(): void {
    if (this.#queuedBytes > 0 && this.#window > 0) this.#owner.waits(this);
  }

  #tellShut(): void {
    const isShut = !this.#trailersSent && this.#queuedBytes > 0 && this.#window <= 0;
    if (isShut === this.#isShut) return;
    this.#isShut = isShut;
    this.#owner.shut(isShut ? 1 : -1);
  }

  #endWith(ending: Ending, byHandler: boolean): void {
    if (this.#ending !== undefined) return;
    this.#ending = ending;
    this.#endedByHandler = byHandler;
    this.#dropUnread();
    this.#owner.touch();
    this.#finish();
  }

  #finish() {
    if (this.#ending === undefined || this.#trailersSent || this.#queuedBytes > 0) return;
    this.#trailersSent = true;
    if (this.#plain !== undefined && this.#handler === undefined) {
      this.#owner.out.frame(0, FrameType.data, FLAG_END_STREAM, this.id);
      return this.#owner.finished(this);
    }
    const { code, message } = this.#ending;
    writeHeaders(this.#owner.out, this.id, trailers(code, message, !this.#headersSent), true);
    this.#owner.finished(this);
  }

  #resume(): void {
    this.#paused = false;
    const unread = this.#unread ?? [];
    const bytes = this.#unreadBytes;
    this.#unread = undefined;
    this.#unreadBytes = 0;
    this.#owner.budget.give(bytes);
    for (const part of unread) this.data(part, 0, part.length);
    if (this.#unreadBytes > 0) return;
    if (this.#remoteEnded) this.#tellHalfClosed();
    else this.#owner.credit(this);
  }

  #tellHalfClosed() {
    if (this.#halfClosedTold || this.#ending !== undefined) return;
    this.#halfClosedTold = true;
    if (!this.#reader.complete) return this.abort(GrpcStatus.internal, 'the stream ended inside a message');
    this.#opened.halfClosed();
  }

  /** Refuses the next message, which cannot be held. */
  #refuse(): void {
    const { fault, length } = this.#reader;
    if (fault === 'compressed') this.abort(GrpcStatus.unimplemented, 'compressed messages are not taken');
    else if (fault === 'too large') {
      const bytesMax = this.#owner.messageBytesMax;
      this.abort(GrpcStatus.resourceExhausted, `a message of ${length} bytes is longer than the bound of ${bytesMax}`);
    } else this.#opened.overflowed();
    if (this.#ending === undefined) this.abort(GrpcStatus.resourceExhausted, 'too many bytes are held');
  }

  #dropUnread(): void {
    this.#owner.budget.give(this.#unreadBytes);
    this.#unread = undefined;
    this.#unreadBytes = 0;
  }
}

function trailers(code: number, message: string, first: boolean): Buffer {
  if (code !== GrpcStatus.ok) return errorTrailers(code, message, first);
  return first ? HEADERS_AND_TRAILERS_OK : TRAILERS_OK;
}
