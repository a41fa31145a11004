// One connection of a proxy that opens ext_proc streams as fast as it is told to. Frames are written from a template,
// so that the generator costs a small part of what the picker costs.
import { connect, type Socket } from 'node:net';
import { END_STREAM, frame, PREFACE, settings, windowUpdate } from '../../test/ingress/http2/frames.ts';
import { chatTemplates, type ExchangeTemplates, renew, type Template } from './templates.ts';

const RECEIVE_WINDOW_BYTES = 2 ** 30;
/** Template frames of one write to the socket. */
const CHUNK_BYTES = 262_144;
/** Streams under way whose start is remembered, each in the place of its number. A power of two. */
const STREAMS_MAX = 524_288;
/** In the place of a start: no stream, and one that was answered and is not counted any more. */
const NONE = Number.NaN;
const OVER = Number.NEGATIVE_INFINITY;
/**
 * First field of a `ProcessingResponse`: the reply to request headers, its dynamic metadata, and an immediate response.
 */
const HEADERS_REPLY_TAG = 0x0a;
/** llm-d-router writes the metadata of a placed request before the reply. */
const METADATA_TAG = 0x42;
const IMMEDIATE_TAG = 0x3a;
export type Answer = 'placed' | 'refused' | 'failed';

export interface ProxyOwner {
  /** Milliseconds of a monotonic clock, above 0. */
  now(): number;
  /** The first reply of a stream, or its end without one. @param age milliseconds since the request was to be sent */
  answered(age: number, answer: Answer, connection: ProxyConnection): void;
  /** A stream whose request was placed has ended. */
  ended(age: number, ok: boolean, connection: ProxyConnection): void;
}

/** Answers that come token by token. */
export interface TokenPace {
  readonly tokens: number;
  /** Between two tokens of one answer. */
  readonly tokenMs: number;
}

/** An answer that is still coming. */
interface Streamed {
  readonly stream: number;
  left: number;
}

const CHAT = chatTemplates();
const AT_ONCE: TokenPace = { tokens: 0, tokenMs: 1 };

export class ProxyConnection {
  readonly #socket: Socket;
  readonly #owner: ProxyOwner;
  readonly #free: Buffer[] = [];
  readonly #templates: ExchangeTemplates;
  readonly #chunkBytes: number;
  /** Answers under way by the millisecond in which their next token is due, modulo the time between two tokens. */
  readonly #streamed: Streamed[][];
  readonly #tokens: number;
  #ticks = 0;
  #chunk: Buffer;
  #at = 0;
  #rest: Buffer = Buffer.alloc(0);
  #nextStream = 1;
  /** Bytes that the picker takes. */
  #window = 65_535;
  #received = 0;
  /** When the request of a stream was to be sent; streams that are placed are negative. */
  readonly #due = new Float64Array(STREAMS_MAX).fill(NONE);
  #open = 0;
  /** Requests that wait for the picker's window. */
  readonly #blocked: number[] = [];
  #blockedHead = 0;
  closed = false;

  /** @param pace of answers whose templates have tokens */
  constructor(port: number, owner: ProxyOwner, templates = CHAT, { tokens, tokenMs }: TokenPace = AT_ONCE) {
    this.#owner = owner;
    this.#templates = templates;
    this.#chunkBytes = Math.max(CHUNK_BYTES, templates.firstRequest.bytes.length);
    this.#chunk = Buffer.allocUnsafeSlow(this.#chunkBytes);
    this.#tokens = tokens;
    this.#streamed = Array.from({ length: tokenMs }, () => []);
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.write(
      Buffer.concat([PREFACE, settings({ 4: RECEIVE_WINDOW_BYTES / 4 }), windowUpdate(0, RECEIVE_WINDOW_BYTES)]),
    );
    this.#socket.on('data', (bytes: Buffer) => this.#read(bytes));
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#close());
  }

  get open(): number {
    return this.#open + this.#blocked.length - this.#blockedHead;
  }

  /** Begins an exchange. @param dueAt when it was to begin */
  begin(dueAt: number): void {
    this.#blocked.push(dueAt);
    this.#sendBlocked();
  }

  flush(): void {
    if (this.#at === 0) return;
    const chunk = this.#chunk;
    this.#socket.write(chunk.subarray(0, this.#at), () => this.#free.push(chunk));
    this.#chunk = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#chunkBytes);
    this.#at = 0;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Sends the tokens of one millisecond. */
  tick(): void {
    const { token, end } = this.#templates;
    const due = this.#streamed[this.#ticks++ % this.#streamed.length]!;
    for (let i = due.length - 1; i >= 0; i--) {
      const answer = due[i]!;
      this.#write(answer.left > 0 ? token! : end!, answer.stream);
      if (answer.left-- > 0) continue;
      due[i] = due.at(-1)!;
      due.pop();
    }
    this.flush();
  }

  #sendBlocked(): void {
    while (this.#blockedHead < this.#blocked.length && !this.closed) {
      const next = this.#nextStream === 1 ? this.#templates.firstRequest : this.#templates.request;
      if (next.dataBytes > this.#window) return;
      this.#due[place(this.#nextStream)] = this.#blocked[this.#blockedHead++]!;
      this.#open++;
      this.#write(next, this.#nextStream);
      this.#nextStream += 2;
    }
    if (this.#blockedHead < 4_096) return;
    this.#blocked.splice(0, this.#blockedHead);
    this.#blockedHead = 0;
  }

  #write(template: Template, stream: number): void {
    const { bytes, dataBytes } = template;
    if (this.#at + bytes.length > this.#chunkBytes) this.flush();
    renew(template, stream);
    this.#chunk.set(bytes, this.#at);
    this.#at += bytes.length;
    this.#window -= dataBytes;
  }

  #answer(stream: number): void {
    this.#write(this.#templates.answer, stream);
    if (this.#templates.token === undefined) return;
    // The millisecond that has just been sent comes again when a token's time has passed.
    const due = (this.#ticks + this.#streamed.length - 1) % this.#streamed.length;
    this.#streamed[due]!.push({ stream, left: this.#tokens });
  }

  #read(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const now = this.#owner.now();
    let at = 0;
    while (at + 9 <= all.length) {
      const end = at + 9 + ((all[at]! << 16) | (all[at + 1]! << 8) | all[at + 2]!);
      if (end > all.length) break;
      this.#frame(all, at, end, now);
      at = end;
    }
    this.#rest = all.subarray(at);
    this.#received += bytes.length;
    if (this.#received > RECEIVE_WINDOW_BYTES / 2) {
      this.#socket.write(windowUpdate(0, this.#received));
      this.#received = 0;
    }
    this.#sendBlocked();
    this.flush();
  }

  #frame(bytes: Buffer, at: number, end: number, now: number) {
    const stream = bytes.readUInt32BE(at + 5);
    const flags = bytes[at + 4]!;
    switch (bytes[at + 3]) {
      case 0:
        if (end - at > 14) this.#data(stream, bytes[at + 14]!, now);
        return;
      case 1:
        if ((flags & END_STREAM) !== 0) this.#end(stream, true, now);
        return;
      case 3:
        return this.#end(stream, bytes.readUInt32BE(at + 9) === 0, now);
      case 4:
        if ((flags & 1) === 0) this.#socket.write(frame('SETTINGS', 1, 0));
        return;
      case 6:
        if ((flags & 1) === 0) this.#socket.write(frame('PING', 1, 0, bytes.subarray(at + 9, end)));
        return;
      case 8:
        if (stream === 0) this.#window += bytes.readUInt32BE(at + 9);
    }
  }

  #data(stream: number, tag: number, now: number): void {
    const dueAt = this.#due[place(stream)]!;
    // A stream without a request, or one that has had its first reply.
    if (!(dueAt >= 0)) return;
    const isPlaced = tag === HEADERS_REPLY_TAG || tag === METADATA_TAG;
    if (isPlaced) {
      this.#owner.answered(now - dueAt, 'placed', this);
      this.#answer(stream);
    } else this.#owner.answered(now - dueAt, tag === IMMEDIATE_TAG ? 'refused' : 'failed', this);
    this.#due[place(stream)] = isPlaced ? -dueAt : OVER;
  }

  #end(stream: number, ok: boolean, now: number): void {
    const dueAt = this.#due[place(stream)]!;
    if (Number.isNaN(dueAt)) return;
    this.#due[place(stream)] = NONE;
    this.#open--;
    if (dueAt >= 0) this.#owner.answered(now - dueAt, 'failed', this);
    else if (dueAt !== OVER) this.#owner.ended(now + dueAt, ok, this);
  }

  #close(): void {
    this.closed = true;
    const now = this.#owner.now();
    for (let stream = Math.max(1, this.#nextStream - 2 * STREAMS_MAX); stream < this.#nextStream; stream += 2) {
      this.#end(stream, false, now);
    }
    for (const dueAt of this.#blocked.splice(this.#blockedHead)) this.#owner.answered(now - dueAt, 'failed', this);
  }
}

/** Streams of a client have odd numbers. */
function place(stream: number): number {
  return (stream >>> 1) & (STREAMS_MAX - 1);
}
