import { errorMessage } from '../runtime/error-message.js';
import type { EngineBlocks } from './engine-blocks.js';
import type { EventCounts } from './event-counts.js';
import { EventStream } from './event-stream.js';
import { type EventMessage, eventMessage, topicParts } from './frames.js';
import { MESSAGE_BYTES, WAITING_MESSAGES, whenFree } from './subscription.js';
import type { TurnSlice } from './turn-slice.js';
import { zeromq } from './zeromq.js';

/** Publisher of a topic. */
export interface Publisher {
  readonly slot: number;
  readonly generation: number;
  readonly blocks: EngineBlocks;
}

export interface BoundSocketOptions {
  /** Address that the engines connect to: `tcp://*:5557`. */
  readonly address: string;
  readonly topicFilter: string;
  readonly model: string | undefined;
  /** The endpoint that a topic names; undefined = none of the pool. */
  readonly publisher: (endpoint: string) => Publisher | undefined;
  readonly counts: EventCounts;
  readonly slice: TurnSlice;
  readonly report: (problem: string) => void;
}

/** Topics that are followed; engines have one or a few each. */
const TOPICS_MAX = 8_192;

/** One socket to which engines connect; their topics name the endpoints. Lost events cannot be fetched here. */
export class BoundSocket {
  readonly #options: BoundSocketOptions;
  readonly #socket = new zeromq.Subscriber({
    linger: 0,
    receiveHighWaterMark: WAITING_MESSAGES,
    maxMessageSize: MESSAGE_BYTES,
  });
  readonly #streams = new Map<string, Publisher & { readonly stream: EventStream }>();

  constructor(options: BoundSocketOptions) {
    this.#options = options;
  }

  /** @throws when the address cannot be bound */
  async open(): Promise<void> {
    const { address, topicFilter } = this.#options;
    try {
      await this.#socket.bind(address);
    } catch (error) {
      throw new Error(`kvEventsConfig.zmqEndpoint: ${address} cannot be bound: ${errorMessage(error)}`);
    }
    this.#socket.subscribe(topicFilter);
    void this.#follow();
  }

  /** The address with the port that was chosen. */
  get address(): string | null {
    return this.#socket.lastEndpoint;
  }

  /** Forgets the topics of an endpoint that has left. */
  forget(slot: number): void {
    for (const [topic, stream] of this.#streams) if (stream.slot === slot) this.#streams.delete(topic);
  }

  close(): void {
    this.#socket.close();
  }

  async #follow(): Promise<void> {
    const { slice, counts, report } = this.#options;
    for await (const frames of this.#socket) {
      await slice.share();
      const message = eventMessage(frames);
      try {
        if (message === undefined) counts.drop('malformed');
        else await this.#receive(message);
      } catch (error) {
        report(`an event could not be applied: ${errorMessage(error)}`);
      }
    }
  }

  async #receive(message: EventMessage): Promise<void> {
    const { counts } = this.#options;
    const { endpoint, model = this.#options.model } = topicParts(message.topic);
    const stream = endpoint === undefined ? undefined : this.#streamOf(message.topic, endpoint);
    if (stream === undefined) {
      counts.drop('unknown endpoint');
      return;
    }
    const first = stream.next === undefined;
    const apply = () => whenFree(() => stream.receive(message.number, message.payload, model));
    if ((await apply()).kind === 'done') return;
    if (!first) counts.gaps++;
    await whenFree(() => stream.giveUp(message.number));
    await apply();
  }

  #streamOf(topic: string, endpoint: string): EventStream | undefined {
    const publisher = this.#options.publisher(endpoint);
    if (publisher === undefined) return undefined;
    const known = this.#streams.get(topic);
    if (known?.blocks === publisher.blocks) return known.stream;
    if (known === undefined && this.#streams.size >= TOPICS_MAX) return undefined;
    const stream = new EventStream(publisher.blocks, this.#options.counts);
    this.#streams.set(topic, { ...publisher, stream });
    return stream;
  }
}
