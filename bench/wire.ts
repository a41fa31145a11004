/**
 * Whole ext_proc exchanges over a loopback connection, per transport: a server thread with decisions from memory, and a
 * client of raw frames in this one. The figure is the larger of the two threads' shares; it is the server's with
 * grpc-js.
 */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { TransportName } from '../dist/src/contract/listen-settings.js';
import { data, END_STREAM, headers, message, PREFACE, settings, windowUpdate } from '../test/ingress/http2/frames.ts';
import type { Bench, Prepared } from './bench.ts';
import { exchange } from './stream.ts';

/** Streams under way at one time. */
const CONCURRENCY = 32;
/** Exchanges of one run. */
const EXCHANGES = 512;
const WINDOW_BYTES = 1 << 30;

/** What the client says to begin an exchange, and when it has its destination: frames of stream 0 to be numbered. */
interface Script {
  readonly request: Buffer;
  readonly response: Buffer;
}

function script(): Script {
  const [head, first, second, answerHead, answerBody] = exchange().map((bytes) => message(bytes));
  return {
    request: Buffer.concat([headers(1), data(1, head!), data(1, first!), data(1, second!)]),
    response: Buffer.concat([data(1, answerHead!), data(1, answerBody!, END_STREAM)]),
  };
}

/** The frames of a script on another stream. */
function numbered(frames: Buffer, stream: number): Buffer {
  const bytes = Buffer.from(frames);
  for (let at = 0; at < bytes.length; at += 9 + bytes.readUIntBE(at, 3)) bytes.writeUInt32BE(stream, at + 5);
  return bytes;
}

/** A client that keeps as many exchanges under way as it may. */
class Client {
  readonly #socket: Socket;
  readonly #script = script();
  #rest: Buffer = Buffer.alloc(0);
  #next = 1;
  #toBegin = 0;
  #toEnd = 0;
  /** DATA frames by stream. */
  readonly #replies = new Map<number, number>();
  #done = (): void => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.write(Buffer.concat([PREFACE, settings({ 4: WINDOW_BYTES }), windowUpdate(0, WINDOW_BYTES)]));
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
  }

  /** Resolves when so many exchanges have ended. */
  run(exchanges: number): Promise<void> {
    this.#toBegin = exchanges;
    this.#toEnd = exchanges;
    return new Promise((resolve) => {
      this.#done = resolve;
      const begun: Buffer[] = [];
      for (let i = 0; i < CONCURRENCY; i++) begun.push(this.#begin());
      this.#socket.write(Buffer.concat(begun));
    });
  }

  #begin(): Buffer {
    if (this.#toBegin === 0) return Buffer.alloc(0);
    this.#toBegin--;
    const frames = numbered(this.#script.request, this.#next);
    this.#next += 2;
    return frames;
  }

  #read(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const out: Buffer[] = [];
    let at = 0;
    while (at + 9 <= all.length && at + 9 + all.readUIntBE(at, 3) <= all.length) {
      out.push(this.#frame(all[at + 3]!, all[at + 4]!, all.readUInt32BE(at + 5)));
      at += 9 + all.readUIntBE(at, 3);
    }
    this.#rest = all.subarray(at);
    const said = Buffer.concat(out);
    if (said.length > 0) this.#socket.write(said);
  }

  /** @returns what the frame leads to */
  #frame(type: number, flags: number, stream: number): Buffer {
    if (type === 0 && stream !== 0) {
      const replies = (this.#replies.get(stream) ?? 0) + 1;
      this.#replies.set(stream, replies);
      // The reply to the headers and the body: now the model server answers.
      if (replies === 2) return numbered(this.#script.response, stream);
    }
    if (type !== 1 || (flags & END_STREAM) === 0) return Buffer.alloc(0);
    this.#replies.delete(stream);
    if (--this.#toEnd === 0) this.#done();
    return this.#begin();
  }
}

async function wireBench(transport: TransportName): Promise<Prepared> {
  const server = new Worker(new URL('wire/server.ts', import.meta.url), { workerData: transport });
  const [port] = (await once(server, 'message')) as [number];
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  const client = new Client(socket);
  return {
    run: () => client.run(EXCHANGES),
    opsPerRun: EXCHANGES,
    teardown: async () => {
      socket.destroy();
      server.postMessage('stop');
      await once(server, 'exit');
    },
  };
}

export const benches: readonly Bench[] = [
  { name: 'wire/lean/chat-4k', setup: () => wireBench('lean') },
  { name: 'wire/grpc-js/chat-4k', setup: () => wireBench('grpc-js') },
];
