import { HeldBytes } from '../../../dist/src/ingress/byte-budget.js';
import type { ConnectionShare } from '../../../dist/src/ingress/client-shares.js';
import type { ProcessHandler, ProcessStream } from '../../../dist/src/ingress/transport.js';
import { type ConnectionOptions, Http2Connection } from '../../../dist/src/ingress/transports/http2/connection.js';
import { HpackDecoder } from '../../../dist/src/ingress/transports/http2/hpack/decoder.js';
import { type Frame, PREFACE, PROCESS, parseFrames, settings } from './frames.ts';

/** What happened on one stream, in its order. */
export type Event =
  | readonly ['message', string]
  | readonly ['half-closed']
  | readonly ['overflowed']
  | readonly ['stalled']
  | readonly ['closed', boolean];

/** A handler that writes down what it is told, and says what the test wants. */
export class RecordingHandler implements ProcessHandler {
  readonly stream: ProcessStream;
  readonly events: Event[] = [];
  onMessage: ((text: string) => void) | undefined;
  onHalfClosed: (() => void) | undefined;
  onOverflow: (() => void) | undefined;

  constructor(stream: ProcessStream) {
    this.stream = stream;
  }
  message(bytes: Buffer, from: number, to: number): void {
    const text = bytes.toString('latin1', from, to);
    this.events.push(['message', text]);
    this.onMessage?.(text);
  }
  halfClosed(): void {
    this.events.push(['half-closed']);
    this.onHalfClosed?.();
  }
  overflowed(): void {
    this.events.push(['overflowed']);
    this.onOverflow?.();
  }
  stalled(): void {
    this.events.push(['stalled']);
  }
  closed(cancelled: boolean): void {
    this.events.push(['closed', cancelled]);
  }
  get messages(): string[] {
    return this.events.flatMap((event) => (event[0] === 'message' ? [event[1]] : []));
  }
}

interface MemoryOptions extends Partial<ConnectionOptions> {
  readonly heldBytes?: number;
  readonly share?: ConnectionShare;
}

/** A connection whose socket is the test. */
export class MemoryConnection {
  readonly handlers: RecordingHandler[] = [];
  readonly budget: HeldBytes;
  readonly connection: Http2Connection;
  now = 1_000;
  ended = false;
  /** Bytes that the kernel has not taken. */
  unsent = 0;
  /** Called for every new stream. */
  prepare: ((handler: RecordingHandler) => void) | undefined;
  #out: Buffer[] = [];
  readonly #decoder = new HpackDecoder();

  constructor({ share, ...options }: MemoryOptions = {}) {
    this.budget = new HeldBytes(options.heldBytes ?? 1e9);
    const open = (stream: ProcessStream): ProcessHandler => {
      const handler = new RecordingHandler(stream);
      this.handlers.push(handler);
      this.prepare?.(handler);
      return handler;
    };
    const wire = {
      write: (bytes: Buffer) => this.#out.push(Buffer.from(bytes)),
      end: () => {
        this.ended = true;
      },
      get unsent() {
        return self.unsent;
      },
    };
    const self = this;
    const all = {
      methods: new Map([[PROCESS, { open }]]),
      budget: this.budget,
      heldBytesMax: 1e9,
      messageBytesMax: 4_194_304,
      replyBytesMax: 4_194_304,
      streamsMax: 10_000,
      stallMs: 60_000,
      now: () => this.now,
      ...options,
    };
    this.connection = new Http2Connection(wire, all, share);
  }

  /** A connection whose prefaces have been exchanged. */
  static open(options: ConstructorParameters<typeof MemoryConnection>[0] = {}, client = settings()): MemoryConnection {
    const connection = new MemoryConnection(options);
    connection.say(PREFACE, client);
    connection.heard();
    return connection;
  }

  say(...bytes: readonly Buffer[]): this {
    // Between other bytes, and overwritten when the call is over: so it is with the thread's read buffer.
    const all = Buffer.concat([Buffer.alloc(2, 0xdd), ...bytes]);
    this.connection.receive(all, 2, all.length);
    all.fill(0xdd);
    return this;
  }

  /** Frames that came since the last call. */
  heard(): Frame[] {
    const bytes = Buffer.concat(this.#out);
    this.#out = [];
    return parseFrames(bytes);
  }

  /** As `heard`, in words: headers decoded, numbers of resets and the like. */
  told(): string[] {
    return this.heard().map((frame) => this.#describe(frame));
  }

  #describe({ type, flags, stream, payload }: Frame): string {
    const end = (type === 'DATA' || type === 'HEADERS') && (flags & 1) !== 0 ? ' END' : '';
    if (type === 'HEADERS') {
      const fields: string[] = [];
      this.#decoder.decode(payload, 0, payload.length, ({ name, value }) => fields.push(`${name}: ${value}`));
      return `HEADERS ${stream}${end} ${fields.join(', ')}`;
    }
    if (type === 'RST_STREAM') return `RST_STREAM ${stream} ${payload.readUInt32BE()}`;
    if (type === 'WINDOW_UPDATE') return `WINDOW_UPDATE ${stream} ${payload.readUInt32BE()}`;
    if (type === 'GOAWAY') return `GOAWAY ${payload.readUInt32BE()} ${payload.readUInt32BE(4)}`;
    if (type === 'DATA') return `DATA ${stream}${end} ${payload.length}`;
    return `${type} ${flags}`;
  }
}

/** The gRPC messages in the DATA of one stream. */
export function messagesOf(frames: readonly Frame[], stream: number): Buffer[] {
  const own = frames.filter((frame) => frame.type === 'DATA' && frame.stream === stream);
  const bytes = Buffer.concat(own.map(({ payload }) => payload));
  const messages: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1);
    messages.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return messages;
}
