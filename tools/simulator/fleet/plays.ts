import type { EventQueue } from './events.js';
import type { EndpointSettings, FleetSettings } from './fleet-settings.js';
import { RandomStream } from './random-stream.js';
import type { StepTime } from './step-time.js';
import type { Session, Turn, Workload } from './workload.js';

/** A session that is being played, at one of its turns. */
export interface Play {
  /** Stands for the session in outcomes: no two sessions of a run have the same. */
  readonly number: number;
  readonly session: Session;
  readonly turn: Turn;
  /** Position of the turn in the session. */
  readonly position: number;
  /** Number of the client that plays it, where their number is fixed; -1 = none. */
  readonly client: number;
  /** Called when the session is over. */
  readonly over: (() => void) | undefined;
}

/** Clients begin within this time, milliseconds, each in the middle of its first session. */
const BEGIN_MS = 10_000;

/** Who sends which turn when: sessions by their start, and fixed numbers of clients that go on until the run ends. */
export class Plays {
  readonly #workload: Workload;
  readonly #events: EventQueue;
  readonly #random: RandomStream;
  readonly #send: (play: Play) => void;
  readonly #alone: EndpointSettings;
  #number = 0;
  clients = 0;

  constructor(
    workload: Workload,
    { endpoints }: FleetSettings,
    events: EventQueue,
    seed: number,
    send: (play: Play) => void,
  ) {
    this.#workload = workload;
    this.#events = events;
    this.#random = new RandomStream(seed, 'clients');
    this.#send = send;
    this.#alone = endpoints[0]!;
  }

  begin(): void {
    const { sessions, clients = [] } = this.#workload;
    for (const session of sessions) {
      const number = this.#number++;
      this.#events.at(session.startMs, () => this.#play(number, session, 0, -1, undefined));
    }
    for (const { count, sessions: list } of clients) {
      let taken = 0;
      const take = () => list[taken++ % list.length]!;
      for (let i = 0; i < count; i++) this.#join(this.clients++, take);
    }
  }

  /** Adds a client, which is somewhere in its first session already. */
  #join(client: number, take: () => Session): void {
    const first = take();
    const position = this.#random.below(first.turns.length);
    const playNext = () => this.#play(this.#number++, take(), 0, client, playNext);
    const number = this.#number++;
    this.#events.at(this.#random.uniform() * BEGIN_MS, () => this.#play(number, first, position, client, playNext));
  }

  #play(number: number, session: Session, position: number, client: number, over: (() => void) | undefined): void {
    this.#send({ number, session, turn: session.turns[position]!, position, client, over });
  }

  /** Plans the turn after one that has ended, served or not: it follows the client's thought. */
  next({ number, session, turn, position, client, over }: Play): void {
    const following = session.turns[position + 1];
    const playFollowing = () => {
      if (following === undefined) over?.();
      else this.#events.after(following.thinkMs, () => this.#play(number, session, position + 1, client, over));
    };
    const spawned = turn.spawns ?? [];
    let left = spawned.length;
    if (left === 0) playFollowing();
    const ended = () => {
      if (--left === 0) playFollowing();
    };
    for (const child of spawned) {
      const own = this.#number++;
      this.#events.after(child.startMs, () => this.#play(own, child, 0, client, ended));
    }
  }

  /** Milliseconds of a turn on an idle endpoint with the turns before it in its cache. */
  aloneMs({ session, turn, position }: Play): number {
    const { stepTime, limits, speed } = this.#alone;
    const before = position === 0 ? undefined : session.turns[position - 1]!;
    const held = before === undefined ? 0 : Math.min(before.promptTokens + before.outputTokens, turn.promptTokens - 1);
    let ms = 0;
    for (let at = held; at < turn.promptTokens; ) {
      const tokens = Math.min(turn.promptTokens - at, limits.maxBatchedTokens, limits.longPrefillTokens);
      ms += prefillMs(stepTime, tokens, at);
      at += tokens;
    }
    return (ms + (turn.outputTokens - 1) * decodeMs(stepTime, turn.promptTokens)) / speed;
  }
}

function prefillMs(stepTime: StepTime, tokens: number, context: number): number {
  const prefillPairs = tokens * (context + tokens / 2);
  return stepTime({ tokens, prefillTokens: tokens, prefillPairs, decodes: 0, decodeContext: 0, rows: 1 });
}

function decodeMs(stepTime: StepTime, context: number): number {
  return stepTime({ tokens: 1, prefillTokens: 0, prefillPairs: 0, decodes: 1, decodeContext: context, rows: 1 });
}
