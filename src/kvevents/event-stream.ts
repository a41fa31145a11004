import { decodeEvents } from './decode.js';
import type { EngineBlocks } from './engine-blocks.js';
import { type KvBatch, MalformedEvents } from './event.js';
import type { EventCounts } from './event-counts.js';

/** Action on a live message before the next one. */
export type Arrival =
  /** The message was applied, now or before. */
  | { readonly kind: 'done' }
  /** Messages from `from` on, up to this one, were lost. Nothing was applied. */
  | { readonly kind: 'gap'; readonly from: number };

/**
 * The numbered messages of one publisher, applied to the blocks of its endpoint in order. A publisher that counts from
 * the beginning was restarted with its engine, so all blocks are gone.
 *
 * A message that cannot be read proves nothing: it is counted and dropped, and its number fills the place of one
 * message at most. Removals in it may be missed. That messages are missing shows at the next one that is read.
 *
 * A call that throws IndexBusyError may be made again with the same message.
 */
export class EventStream {
  readonly #blocks: EngineBlocks;
  readonly #counts: EventCounts;
  /** Number of the last live message; undefined = none has come. */
  #live: number | undefined;
  /** Number up to which everything is applied, or given up. */
  #applied: number | undefined;
  /** Number up to which unreadable messages follow the applied ones; undefined = there are none. */
  #unreadable: number | undefined;

  constructor(blocks: EngineBlocks, counts: EventCounts) {
    this.#blocks = blocks;
    this.#counts = counts;
  }

  /** Number of the next message; undefined = unknown before the first. */
  get next(): number | undefined {
    return this.#applied === undefined ? undefined : this.#applied + 1;
  }

  /** A live message. @param model what the topic or the configuration says that the engine serves */
  receive(number: number, payload: Uint8Array, model: string | undefined): Arrival {
    const batch = this.#read(number, payload);
    if (batch === undefined) return { kind: 'done' };
    if (this.#live !== undefined && this.#applied !== undefined && number < this.#live) {
      this.#blocks.clear('engine-restarted');
      this.#counts.restarts++;
      this.#skipTo(number);
      this.#live = number;
    }
    if (this.#applied === undefined && number > 0) return { kind: 'gap', from: 0 };
    if (this.#applied !== undefined && this.#lacks(number)) return { kind: 'gap', from: this.#applied + 1 };
    if (this.#applied === undefined || number > this.#applied) this.#apply(number, batch, model);
    this.#live = number;
    return { kind: 'done' };
  }

  /** Takes a lost message that was sent again. */
  replay(number: number, payload: Uint8Array, model: string | undefined): void {
    if (this.#applied !== undefined && number <= this.#applied) return;
    const batch = this.#read(number, payload);
    if (batch === undefined) return;
    // The publisher no longer has the messages in between, which may contain removals.
    if (this.#lacks(number)) this.#blocks.clear('events-lost');
    this.#apply(number, batch, model);
  }

  /** Forgets the order of messages: the next one is the first one of another process. */
  forget(): void {
    this.#live = undefined;
    this.#applied = undefined;
    this.#unreadable = undefined;
  }

  /** Skips the messages before `number`: removes all blocks, as removals may be among the lost messages. */
  giveUp(number: number): void {
    if (this.#applied !== undefined) this.#blocks.clear('events-lost');
    this.#skipTo(number);
  }

  /** Messages before `number` are not waited for. */
  #skipTo(number: number): void {
    this.#applied = number - 1;
    this.#unreadable = undefined;
  }

  /** Whether messages before `number` never came. */
  #lacks(number: number): boolean {
    return this.#applied !== undefined && number > Math.max(this.#applied, this.#unreadable ?? 0) + 1;
  }

  /** Undefined = the message cannot be read, and is dropped. */
  #read(number: number, payload: Uint8Array): KvBatch | undefined {
    try {
      return decodeEvents(payload);
    } catch (error) {
      if (!(error instanceof MalformedEvents)) throw error;
      this.#counts.drop('malformed');
      if (this.#applied !== undefined && number > this.#applied && !this.#lacks(number)) {
        this.#unreadable = Math.max(this.#unreadable ?? 0, number);
      }
      return undefined;
    }
  }

  #apply(number: number, batch: KvBatch, model: string | undefined): void {
    this.#counts.messages++;
    this.#blocks.apply(batch, model);
    this.#applied = number;
  }
}
