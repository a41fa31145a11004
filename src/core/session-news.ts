import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/**
 * A turn of a session that begins or ends, as replicas tell it to each other. Without tokens: it begins to wait for
 * room, or its session lapses.
 */
export interface SessionTold {
  /** Whether it begins; it ends otherwise. */
  readonly begins: boolean;
  /** Anchor that its session had before, 0 = it is new, or the turn ends. */
  readonly before: bigint;
  /** Anchors of its session now, 0 = no early one. */
  readonly anchor: bigint;
  readonly earlyAnchor: bigint;
  /** Chain hash of the last block that it shares with others, 0 = none. */
  readonly prefix: bigint;
  /** Tokens of its prompt, with the output at its end; 0 = it waits, or its session lapses. */
  readonly tokens: number;
  /** Tokens of its beginning that it shares. */
  readonly shared: number;
}

/** The same with the endpoint's place in this pool. */
export interface PlacedTurn extends SessionTold {
  readonly slot: number;
  readonly generation: number;
}

/** Turns for peers, and those that they tell. Control thread only. */
export class SessionNews {
  readonly #core: CoreInstance;
  readonly #address: number;
  readonly #words: BigUint64Array;
  #read: number;

  constructor(core: CoreInstance) {
    core.asserts?.control();
    this.#core = core;
    this.#address = core.call.sessionNewsAddress() >>> 0;
    this.#words = new BigUint64Array(core.memory.buffer);
    this.#read = this.#written;
  }

  /** Lets turns be told from now on. @returns false when the lock was not free: call again */
  begin(): boolean {
    return this.#core.call.sessionsTell(1) === 0;
  }

  get #written(): number {
    return Atomics.load(this.#core.i32, (this.#address + CORE.NEWS_WRITTEN) >>> 2) >>> 0;
  }

  /** Passes the turns since the last call. @returns turns that were overwritten before they were read */
  drain(visit: (turn: PlacedTurn) => void): number {
    let lost = 0;
    for (const end = this.#written; this.#read !== end; this.#read = (this.#read + 1) >>> 0) {
      const turn = this.#turnAt(this.#read % CORE.SESSION_NEWS);
      // The record after the latest one may be half written.
      if ((this.#written - this.#read) >>> 0 >= CORE.SESSION_NEWS) lost++;
      else visit(turn);
    }
    return lost;
  }

  #recordAt(at: number): number {
    return this.#address + CORE.SESSION_NEWS_HEAD_BYTES + at * CORE.SESSION_NEWS_BYTES;
  }

  #turnAt(at: number): PlacedTurn {
    const record = this.#recordAt(at);
    const word = (offset: number) => this.#words[(record + offset) >>> 3]!;
    const number = (offset: number) => this.#core.u32[(record + offset) >>> 2]!;
    return {
      begins: number(CORE.NEWS_BEGINS) !== 0,
      before: word(CORE.NEWS_BEFORE),
      anchor: word(CORE.NEWS_ANCHOR),
      earlyAnchor: word(CORE.NEWS_EARLY_ANCHOR),
      prefix: word(CORE.NEWS_PREFIX),
      slot: number(CORE.NEWS_SLOT),
      generation: number(CORE.NEWS_GENERATION),
      tokens: number(CORE.NEWS_TOKENS),
      shared: number(CORE.NEWS_SHARED),
    };
  }

  /**
   * Takes a turn that a peer tells. Without effect when its endpoint has left.
   * @param tag of the peer
   * @returns false when the lock was not free: call again
   */
  hear(turn: PlacedTurn, tag: number, nowMs: number): boolean {
    this.#core.asserts?.slot(turn.slot);
    const record = this.#recordAt(CORE.SESSION_NEWS);
    const put = (offset: number, value: number) => {
      this.#core.u32[(record + offset) >>> 2] = value;
    };
    const putWord = (offset: number, value: bigint) => {
      this.#words[(record + offset) >>> 3] = value;
    };
    putWord(CORE.NEWS_BEFORE, turn.before);
    putWord(CORE.NEWS_ANCHOR, turn.anchor);
    putWord(CORE.NEWS_EARLY_ANCHOR, turn.earlyAnchor);
    putWord(CORE.NEWS_PREFIX, turn.prefix);
    put(CORE.NEWS_SLOT, turn.slot);
    put(CORE.NEWS_GENERATION, turn.generation);
    put(CORE.NEWS_TOKENS, turn.tokens);
    put(CORE.NEWS_SHARED, turn.shared);
    put(CORE.NEWS_BEGINS, Number(turn.begins));
    return this.#core.call.sessionsHear(tag, nowMs) === 0;
  }

  /** The turns in flight at a peer count as ended. @returns as `hear` */
  peerGone(tag: number): boolean {
    return this.#core.call.sessionsPeerGone(tag) === 0;
  }
}

/** Number by which the core knows a peer: FNV-1a of its name, 31 bits. Two that share one are taken for one. */
export function peerTag(replica: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(replica)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash & 0x7fffffff) >>> 0;
}
