import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { KeyPair } from '../../contract/listen-settings.js';
import { threadClockMs } from '../../runtime/pool-clock.js';
import {
  HEALTH_MESSAGE_BYTES,
  type HealthListener,
  type HealthListenOptions,
  type HealthSource,
  PROCESS_PATH,
  type ProcessHandler,
  type ProcessStream,
  type StreamEntry,
  type Transport,
  type TransportOptions,
} from '../transport.js';
import { GrpcServer } from './grpc-server.js';
import type { OutgoingMessage } from './prompt-call.js';
import { within } from './within.js';

/** A stream whose replies pile up is not read any more until half of them are gone. */
const PAUSE_BYTES = 1024 * 1024;
const RESUME_BYTES = PAUSE_BYTES / 2;

type ProcessCall = ServerDuplexStream<Buffer, OutgoingMessage>;

/** One ext_proc stream over grpc-js. */
class GrpcStream implements ProcessStream {
  readonly #call: ProcessCall;
  readonly arrivedAt = performance.now();
  #pending = 0;
  #done = false;
  #paused = false;
  readonly #taken = (bytes: number): void => this.#onTaken(bytes);

  constructor(call: ProcessCall) {
    this.#call = call;
  }

  get pendingBytes(): number {
    return this.#pending;
  }

  /** grpc-js bounds no replies. */
  readonly room = Number.POSITIVE_INFINITY;

  get done(): boolean {
    return this.#done;
  }

  send(reply: Uint8Array): void {
    this.#write(Buffer.from(reply));
  }

  sendParts(head: Uint8Array, parts: readonly Uint8Array[]): void {
    this.#write(Buffer.concat([head, ...parts]));
  }

  #write(bytes: Buffer): void {
    if (this.#done) return;
    this.#pending += bytes.length;
    this.#call.write({ bytes, taken: this.#taken });
    if (this.#pending > PAUSE_BYTES && !this.#paused) {
      this.#paused = true;
      this.#call.pause();
    }
  }

  end(): void {
    if (this.#done) return;
    this.#done = true;
    this.#call.end();
  }

  fail(code: number, message: string): void {
    if (this.#done) return;
    this.#done = true;
    this.#call.emit('error', { code, details: message });
  }

  /** Ends the call; nothing is sent from then on. */
  close(): void {
    this.#done = true;
    this.#pending = 0;
  }

  #onTaken(bytes: number): void {
    this.#pending = Math.max(0, this.#pending - bytes);
    if (this.#paused && this.#pending <= RESUME_BYTES) {
      this.#paused = false;
      this.#call.resume();
    }
  }
}

/** Connects one call with its handler. */
function serve(
  call: ProcessCall,
  open: (stream: ProcessStream) => ProcessHandler,
  stallMs: number,
  onClosed: () => void,
): void {
  const stream = new GrpcStream(call);
  const handler = open(stream);
  let closed = false;
  const stall = setInterval(() => handler.stalled(), stallMs);
  stall.unref();
  const close = (): void => {
    if (closed) return;
    closed = true;
    clearInterval(stall);
    const cancelled = !stream.done;
    stream.close();
    handler.closed(cancelled);
    onClosed();
  };
  call.on('data', (bytes: Buffer) => {
    stall.refresh();
    // The streams take the time of this reading for that of the message.
    threadClockMs();
    if (!closed) handler.message(bytes, 0, bytes.length);
  });
  call.on('end', () => {
    if (!closed) handler.halfClosed();
  });
  // grpc-js reports the end of every call this way, even after an end by this side.
  call.on('cancelled', close);
}

/** After the last stream of a drain, for connections that the clients do not close at once. */
const FLUSH_MS = 250;

/** For broken connections to be gone: a close that hangs must not keep a shard from ending. */
const CLOSE_MS = 1_000;

/** ext_proc over `@grpc/grpc-js`: the reference transport. */
export class GrpcTransport implements Transport {
  #server: GrpcServer | undefined;
  #streams = 0;
  #whenIdle: (() => void) | undefined;
  opened = 0;

  get streams(): number {
    return this.#streams;
  }

  get handshakes(): number {
    return this.#server?.handshakes ?? 0;
  }

  async listen(options: TransportOptions, open: StreamEntry, health?: HealthSource): Promise<number> {
    const server = new GrpcServer(options);
    const handler = (call: ProcessCall): void => {
      this.#streams++;
      this.opened++;
      serve(call, open, options.stallMs, () => this.#streamClosed());
    };
    server.register(PROCESS_PATH, handler, 'bidi');
    if (health !== undefined) server.serveHealth(health);
    this.#server = server;
    const port = await server.listen(options);
    if (options.socket !== undefined) await server.listenOn(options.socket);
    return port;
  }

  replaceCertificate(pair: KeyPair): void {
    this.#server?.replaceCertificate(pair);
  }

  async drain(timeoutMs: number): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const flushed = server.drain(timeoutMs);
    if (this.#streams > 0) await within(timeoutMs, new Promise<void>((resolve) => (this.#whenIdle = resolve)));
    this.#whenIdle = undefined;
    // Output of the last streams and watches is still on its way.
    server.endHealth();
    await within(FLUSH_MS, flushed);
    // The last stream may have ended inside a read of its connection; closing that there would abort the process
    // (nodejs/node#64850).
    await new Promise((resolve) => setImmediate(resolve));
  }

  async close(): Promise<void> {
    if (this.#server !== undefined) await within(CLOSE_MS, this.#server.close());
    this.#server = undefined;
  }

  #streamClosed(): void {
    this.#streams--;
    if (this.#streams === 0) this.#whenIdle?.();
  }
}

/** Serves `grpc.health.v1.Health` alone (port 9003). Rejects when the port cannot be bound. */
export async function listenHealth(options: HealthListenOptions, health: HealthSource): Promise<HealthListener> {
  const sizes = { maxReceiveBytes: HEALTH_MESSAGE_BYTES, maxSendBytes: HEALTH_MESSAGE_BYTES };
  const server = new GrpcServer(sizes);
  server.serveHealth(health);
  const port = await server.listen({ ...options, reusePort: false });
  return { port, close: () => server.close() };
}
