// One connection of a proxy that opens ext_proc streams as fast as it is told to. Frames are written from a template, so
// that the generator costs a small part of what the picker costs.
import { connect, type Socket } from 'node:net';
import {
  data,
  END_HEADERS,
  END_STREAM,
  frame,
  message,
  PREFACE,
  settings,
  windowUpdate,
} from '../../test/ingress/http2/frames.ts';
import { exchange } from '../stream.ts';

const RECEIVE_WINDOW_BYTES = 2 ** 30;
/** Template frames of one write to the socket. */
const CHUNK_BYTES = 262_144;
/** Streams under way whose start is remembered, each in the place of its number. A power of two. */
const STREAMS_MAX = 524_288;
/** In the place of a start: no stream, and one that was answered and is not counted any more. */
const NONE = Number.NaN;
const OVER = Number.NEGATIVE_INFINITY;
/** First field of a `ProcessingResponse`: the reply to request headers, its dynamic metadata, and an immediate response. */
const HEADERS_REPLY_TAG = 0x0a;
/** llm-d-router writes the metadata of a placed request before the reply. */
const METADATA_TAG = 0x42;
const IMMEDIATE_TAG = 0x3a;
/** Bytes of the prompt that differ from request to request. */
const SERIAL_DIGITS = 12;
/** The last bytes of a body are the request's own; others share what is before them. */
const OWN_BYTES = 2_048;
const SERIAL_PLACE = 'x'.repeat(SERIAL_DIGITS);

export type Answer = 'placed' | 'refused' | 'failed';

export interface ProxyOwner {
  /** Milliseconds of a monotonic clock, above 0. */
  now(): number;
  /** The first reply of a stream, or its end without one. @param age milliseconds since the request was to be sent */
  answered(age: number, answer: Answer): void;
  /** A stream whose request was placed has ended. */
  ended(age: number, ok: boolean): void;
}

function literal(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}

/** Header blocks as a proxy writes them: literals once, entries of the dynamic table from then on. */
export function headerBlocks(): { readonly first: Buffer; readonly later: Buffer } {
  const fields = [
    [':path', '/envoy.service.ext_proc.v3.ExternalProcessor/Process'],
    [':authority', 'picker'],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
  ];
  const literals = fields.map(([name, value]) => Buffer.concat([Buffer.from([0x40]), literal(name!), literal(value!)]));
  const head = Buffer.from([0x83, 0x86]);
  return {
    first: Buffer.concat([head, ...literals]),
    later: Buffer.concat([head, Buffer.from([65, 64, 63, 62].map((i) => 0x80 | i))]),
  };
}

/** Frames of one exchange. The stream numbers and the serial number are written into it, then it is copied as it is. */
interface Template {
  readonly bytes: Buffer;
  /** Where stream numbers lie. */
  readonly streams: readonly number[];
  /** Where the serial number of the prompt lies; -1 = nowhere. */
  readonly serial: number;
  readonly dataBytes: number;
}

/** Adds 1 to the decimal number of so many digits. */
function countUp(bytes: Buffer, at: number, digits: number): void {
  for (let i = at + digits - 1; i >= at; i--) {
    if (bytes[i]! < 0x39) {
      bytes[i]!++;
      return;
    }
    bytes[i] = 0x30;
  }
}

function template(frames: Buffer): Template {
  const streams: number[] = [];
  let dataBytes = 0;
  for (let at = 0; at < frames.length; at += 9 + frames.readUIntBE(at, 3)) {
    streams.push(at + 5);
    if (frames[at + 3] === 0) dataBytes += frames.readUIntBE(at, 3);
  }
  const serial = frames.indexOf(SERIAL_PLACE, Math.max(0, frames.length - OWN_BYTES));
  if (serial >= 0) frames.write(String(Math.trunc(Math.random() * 1e9)).padStart(SERIAL_DIGITS, '0'), serial, 'latin1');
  return { bytes: frames, streams, serial, dataBytes };
}

const [HEAD, BODY, REST, ANSWER_HEAD, ANSWER_BODY] = exchange().map((bytes) => message(bytes));
const MESSAGES = [data(1, HEAD!), data(1, BODY!), data(1, REST!)];
const BLOCKS = headerBlocks();
const FIRST_REQUEST = template(Buffer.concat([frame('HEADERS', END_HEADERS, 1, BLOCKS.first), ...MESSAGES]));
const REQUEST = template(Buffer.concat([frame('HEADERS', END_HEADERS, 1, BLOCKS.later), ...MESSAGES]));
const RESPONSE = template(Buffer.concat([data(1, ANSWER_HEAD!), data(1, ANSWER_BODY!, END_STREAM)]));

export class ProxyConnection {
  readonly #socket: Socket;
  readonly #owner: ProxyOwner;
  readonly #free: Buffer[] = [];
  #chunk: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
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

  constructor(port: number, owner: ProxyOwner) {
    this.#owner = owner;
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
    this.#chunk = this.#free.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
    this.#at = 0;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #sendBlocked(): void {
    while (this.#blockedHead < this.#blocked.length && !this.closed) {
      const next = this.#nextStream === 1 ? FIRST_REQUEST : REQUEST;
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

  #write({ bytes, streams, serial, dataBytes }: Template, stream: number): void {
    if (this.#at + bytes.length > CHUNK_BYTES) this.flush();
    for (const at of streams) bytes.writeUInt32BE(stream, at);
    if (serial >= 0) countUp(bytes, serial, SERIAL_DIGITS);
    this.#chunk.set(bytes, this.#at);
    this.#at += bytes.length;
    this.#window -= dataBytes;
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
      this.#owner.answered(now - dueAt, 'placed');
      this.#write(RESPONSE, stream);
    } else this.#owner.answered(now - dueAt, tag === IMMEDIATE_TAG ? 'refused' : 'failed');
    this.#due[place(stream)] = isPlaced ? -dueAt : OVER;
  }

  #end(stream: number, ok: boolean, now: number): void {
    const dueAt = this.#due[place(stream)]!;
    if (Number.isNaN(dueAt)) return;
    this.#due[place(stream)] = NONE;
    this.#open--;
    if (dueAt >= 0) this.#owner.answered(now - dueAt, 'failed');
    else if (dueAt !== OVER) this.#owner.ended(now + dueAt, ok);
  }

  #close(): void {
    this.closed = true;
    const now = this.#owner.now();
    for (let stream = Math.max(1, this.#nextStream - 2 * STREAMS_MAX); stream < this.#nextStream; stream += 2) {
      this.#end(stream, false, now);
    }
    for (const dueAt of this.#blocked.splice(this.#blockedHead)) this.#owner.answered(now - dueAt, 'failed');
  }
}

/** Streams of a client have odd numbers. */
function place(stream: number): number {
  return (stream >>> 1) & (STREAMS_MAX - 1);
}
