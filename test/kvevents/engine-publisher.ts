import { Encoder } from '@msgpack/msgpack';
import { Publisher, Router } from 'zeromq';

const encoder = new Encoder({ useBigInt64: true });

/** An event as a list, the older of the two forms. */
export const stored = (
  hashes: readonly (number | bigint | Uint8Array)[],
  parent: number | bigint | null,
  tokens: readonly number[],
  blockTokens: number,
  ...rest: readonly unknown[]
) => ['BlockStored', hashes, parent, tokens, blockTokens, ...rest];
export const removed = (hashes: readonly (number | bigint)[], ...rest: readonly unknown[]) => [
  'BlockRemoved',
  hashes,
  ...rest,
];
export const cleared = ['AllBlocksCleared'];

/** The bytes of a message with these events. */
export const payload = (...events: readonly unknown[]): Buffer => packed([1_700_000_000.5, events, 0]);
export const packed = (value: unknown): Buffer => Buffer.from(encoder.encode(value));

/** Tokens `from`, `from` + 1 … */
export const run = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

function numbered(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(number));
  return bytes;
}

/** An engine's end of the event sockets: publishes numbered messages, and sends those again that it still has. */
export class EnginePublisher {
  readonly #socket = new Publisher({ linger: 0 });
  readonly #router = new Router({ linger: 0 });
  readonly #history: { number: number; bytes: Buffer }[] = [];
  /** Numbers of the messages that were asked for again. */
  readonly asked: number[] = [];
  /** Replayed messages carry their topic, as vLLM does since 2026-06. */
  topicInReplay = false;
  replays = true;
  topic = 'kv@engine@m';
  next = 0;

  /** @param address tcp://host:port to bind (`*` chooses a port) or, with `connects`, to connect to */
  static async start(address = 'tcp://127.0.0.1:*', connects = false): Promise<EnginePublisher> {
    const made = new EnginePublisher();
    if (connects) made.#socket.connect(address);
    else await made.#socket.bind(address);
    await made.#router.bind('tcp://127.0.0.1:*');
    void made.#answer();
    return made;
  }

  get address(): string {
    return this.#socket.lastEndpoint!;
  }

  get replayAddress(): string {
    return this.#router.lastEndpoint!;
  }

  /** Publishes events, or loses the message on the way. */
  async send(events: readonly unknown[], lost = false): Promise<void> {
    const message = { number: this.next++, bytes: payload(...events) };
    this.#history.push(message);
    if (!lost) await this.#socket.send([this.topic, numbered(message.number), message.bytes]);
  }

  /** Publishes bytes that may be anything. */
  async sendBytes(bytes: Buffer): Promise<void> {
    await this.#socket.send([this.topic, numbered(this.next++), bytes]);
  }

  /** Forgets all messages below a number. */
  forgetBefore(number: number): void {
    while (this.#history.length > 0 && this.#history[0]!.number < number) this.#history.shift();
  }

  async #answer(): Promise<void> {
    for await (const [client, , from] of this.#router) {
      const first = Number(from!.readBigInt64BE());
      this.asked.push(first);
      if (!this.replays) continue;
      const head = this.topicInReplay ? [client!, '', this.topic] : [client!, ''];
      for (const { number, bytes } of this.#history) {
        if (number >= first) await this.#router.send([...head, numbered(number), bytes]);
      }
      await this.#router.send([...head, numbered(-1), Buffer.alloc(0)]);
    }
  }

  close(): void {
    this.#socket.close();
    this.#router.close();
  }
}
