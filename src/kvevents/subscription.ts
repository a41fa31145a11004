import { setTimeout as sleep } from 'node:timers/promises';
import type { Subscriber } from 'zeromq';
import { IndexBusyError } from '../core/prefix-index.js';
import { errorMessage } from '../runtime/error-message.js';
import { LOCK_RETRY_MS } from '../runtime/lock-retry.js';
import type { EventCounts } from './event-counts.js';
import type { EventStream } from './event-stream.js';
import { type EventMessage, eventMessage, topicParts } from './frames.js';
import { COOLDOWN_MS, type ReplayTurns, replay } from './replay.js';
import type { TurnSlice } from './turn-slice.js';
import { zeromq } from './zeromq.js';

/**
 * `waiting` before the first event, `live` while events are applied as they arrive, `replaying` while lost ones are
 * fetched.
 */
export type SubscriptionState = 'waiting' | 'live' | 'replaying';

export interface SubscriptionOptions {
  /** Address at which the engine publishes: `tcp://address:port`. */
  readonly address: string;
  /** Address of the replay socket; undefined = none. */
  readonly replayAddress: string | undefined;
  readonly topicFilter: string;
  /** Model that the engine serves, for topics that do not name it. */
  readonly model: string | undefined;
  readonly stream: EventStream;
  readonly counts: EventCounts;
  readonly slice: TurnSlice;
  readonly turns: ReplayTurns;
  readonly report: (problem: string) => void;
}

/** Bound on messages that wait in the socket. Further ones are lost and leave a gap in the sequence numbers. */
export const WAITING_MESSAGES = 1_000;
export const MESSAGE_BYTES = 16 * 1024 * 1024;
/** Pauses between two attempts to connect: the first, and the longest (llm-d-router's). */
const RECONNECT_MS = 500;
const RECONNECT_MS_MAX = 5_000;

/** Repeat what finds the index locked by a dead thread, until that has been repaired. */
export async function whenFree<T>(work: () => T): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof IndexBusyError)) throw error;
      await sleep(LOCK_RETRY_MS);
    }
  }
}

/** Follows the events of one endpoint over a ZeroMQ connection of its own. */
export class Subscription {
  readonly #options: SubscriptionOptions;
  readonly #socket: Subscriber;
  #state: SubscriptionState = 'waiting';
  #closed = false;
  #noReplayBefore = 0;
  /** Ends when nothing of this endpoint is under way any more. */
  readonly ended: Promise<void>;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.#socket = new zeromq.Subscriber({
      linger: 0,
      receiveHighWaterMark: WAITING_MESSAGES,
      maxMessageSize: MESSAGE_BYTES,
      reconnectInterval: RECONNECT_MS,
      reconnectMaxInterval: RECONNECT_MS_MAX,
    });
    this.#socket.connect(options.address);
    this.#socket.subscribe(options.topicFilter);
    this.ended = this.#follow();
  }

  get state(): SubscriptionState {
    return this.#state;
  }

  /** Takes the end of the engine's process: the next one counts its messages anew, and may be asked at once. */
  restarted(): void {
    this.#options.stream.forget();
    this.#state = 'waiting';
    this.#noReplayBefore = 0;
  }

  close(): void {
    this.#closed = true;
    this.#socket.close();
  }

  async #follow(): Promise<void> {
    const { slice, report, counts } = this.#options;
    for await (const frames of this.#socket) {
      await slice.share();
      if (this.#closed) return;
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
    const { stream, counts } = this.#options;
    const model = topicParts(message.topic).model ?? this.#options.model;
    const apply = () => whenFree(() => stream.receive(message.number, message.payload, model));
    const first = stream.next === undefined;
    let arrival = await apply();
    if (arrival.kind === 'gap') {
      if (!first) counts.gaps++;
      await this.#fetch(arrival.from, model);
      if (this.#closed) return;
      arrival = await apply();
    }
    if (arrival.kind === 'gap') {
      await whenFree(() => stream.giveUp(message.number));
      await apply();
    }
    this.#state = 'live';
  }

  /** Fetches missing messages, if the engine keeps them. Messages that arrive meanwhile wait in the socket. */
  async #fetch(from: number, model: string | undefined): Promise<void> {
    const { replayAddress, stream, counts, turns, slice, report } = this.#options;
    if (replayAddress === undefined || performance.now() < this.#noReplayBefore) return;
    this.#state = 'replaying';
    await turns.take();
    try {
      const outcome = await replay(replayAddress, from, async (number, payload) => {
        await slice.share();
        if (this.#closed) throw new Error('the endpoint is gone');
        await whenFree(() => stream.replay(number, payload, model));
      });
      counts.replays[outcome]++;
      if (outcome === 'incomplete') this.#noReplayBefore = performance.now() + COOLDOWN_MS;
    } catch (error) {
      if (this.#closed) return;
      counts.replays.failed++;
      this.#noReplayBefore = performance.now() + COOLDOWN_MS;
      report(`lost events cannot be fetched from ${replayAddress}: ${errorMessage(error)}`);
    } finally {
      turns.release();
    }
  }
}
