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
/** First field of a `ProcessingResponse`: the reply to request headers, and an immediate response. */
const HEADERS_REPLY_TAG = 0x0a;
const IMMEDIATE_TAG = 0x3a;
/** Bytes of the prompt that differ from request to request. */
const SERIAL_DIGITS = 12;
/** The last bytes of a body are the request's own; others share what is before them. */
const OWN_BYTES = 2_048;
const SERIAL_PLACE = 'x'.repeat(SERIAL_DIGITS);

export type Answer = 'placed' | 'refused' | 'failed';

export interface ProxyOwner {
  /** The first reply of a stream, or its end without one. @param dueAt when the request was to be sent */
  answered(dueAt: number, answer: Answer): void;
  /** A stream whose request was placed has ended. */
  ended(dueAt: number, ok: boolean): void;
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

interface Template {
  readonly bytes: Buffer;
  /** Where stream numbers lie. */
  readonly streams: readonly number[];
  /** Where the serial number of the prompt lies; -1 = nowhere. */
  readonly serial: number;
  readonly dataBytes: number;
}

function template(frames: Buffer): Template {
  const streams: number[] = [];
  let dataBytes = 0;
  for (let at = 0; at < frames.length; at += 9 + frames.readUIntBE(at, 3)) {
    streams.push(at + 5);
    if (frames[at + 3] === 0) dataBytes += frames.readUIntBE(at, 3);
  }
  return {
    bytes: frames,
    streams,
    serial: frames.indexOf(SERIAL_PLACE, Math.max(0, frames.length - OWN_BYTES)),
    dataBytes,
  };
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
  #serial = Math.trunc(Math.random() * 1e9);
  /** Bytes that the picker takes. */
  #window = 65_535;
  #received = 0;
  /** When the request of a stream was to be sent; streams that are answered are negative. */
  readonly #open = new Map<number, number>();
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
    return this.#open.size + this.#blocked.length - this.#blockedHead;
  }

  /** Begin an exchange. @param dueAt when it was to begin */
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
      this.#open.set(this.#nextStream, this.#blocked[this.#blockedHead++]!);
      this.#write(next, this.#nextStream);
      this.#nextStream += 2;
    }
    if (this.#blockedHead < 4_096) return;
    this.#blocked.splice(0, this.#blockedHead);
    this.#blockedHead = 0;
  }

  #write({ bytes, streams, serial, dataBytes }: Template, stream: number): void {
    if (this.#at + bytes.length > CHUNK_BYTES) this.flush();
    const at = this.#at;
    bytes.copy(this.#chunk, at);
    for (const place of streams) this.#chunk.writeUInt32BE(stream, at + place);
    if (serial >= 0) this.#chunk.write(String(this.#serial++).padStart(SERIAL_DIGITS, '0'), at + serial, 'latin1');
    this.#at += bytes.length;
    this.#window -= dataBytes;
  }

  #read(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (at + 9 <= all.length) {
      const end = at + 9 + all.readUIntBE(at, 3);
      if (end > all.length) break;
      this.#frame(all, at, end);
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

  #frame(bytes: Buffer, at: number, end: number) {
    const stream = bytes.readUInt32BE(at + 5);
    const flags = bytes[at + 4]!;
    switch (bytes[at + 3]) {
      case 0:
        if (end - at > 14) this.#data(stream, bytes[at + 14]!);
        return;
      case 1:
        if ((flags & END_STREAM) !== 0) this.#end(stream, true);
        return;
      case 3:
        return this.#end(stream, bytes.readUInt32BE(at + 9) === 0);
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

  #data(stream: number, tag: number): void {
    const dueAt = this.#open.get(stream);
    if (dueAt === undefined || dueAt < 0) return;
    if (tag === HEADERS_REPLY_TAG) {
      this.#owner.answered(dueAt, 'placed');
      this.#write(RESPONSE, stream);
    } else this.#owner.answered(dueAt, tag === IMMEDIATE_TAG ? 'refused' : 'failed');
    this.#open.set(stream, tag === HEADERS_REPLY_TAG ? -dueAt : Number.NEGATIVE_INFINITY);
  }

  #end(stream: number, ok: boolean): void {
    const dueAt = this.#open.get(stream);
    if (dueAt === undefined) return;
    this.#open.delete(stream);
    if (dueAt >= 0) this.#owner.answered(dueAt, 'failed');
    else if (dueAt > Number.NEGATIVE_INFINITY) this.#owner.ended(-dueAt, ok);
  }

  #close(): void {
    this.closed = true;
    for (const stream of [...this.#open.keys()]) this.#end(stream, false);
    for (const dueAt of this.#blocked.splice(this.#blockedHead)) this.#owner.answered(dueAt, 'failed');
  }
}
