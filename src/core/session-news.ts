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
  /** Chain hash of the last block of a shorter beginning that what it shares begins with, 0 = none. */
  readonly within: bigint;
  /** Tokens of its prompt, with the output at its end; 0 = it waits, or its session lapses. */
  readonly tokens: number;
  /** Tokens of its beginning that it shares. */
  readonly shared: number;
  /** Tokens of that shorter beginning, 0 = there is none. */
  readonly withinTokens: number;
  /** Whether its header names it: its early anchor is that name then. */
  readonly named: boolean;
}

/**
 * A session as a whole, as a replica that joins is told it: a turn that begins if it has one in flight, else one that
 * ends.
 */
export interface SessionState extends SessionTold {
  /** Turns so far, 255 = that many or more. */
  readonly turns: number;
  /** Milliseconds since its last use. */
  readonly ageMs: number;
  /** Whether its next turn waits for room. */
  readonly waits: boolean;
  /** Tenths of a second that it was idle when its room was given away; undefined = it has its room. */
  readonly lapsedAfter: number | undefined;
  /** Whether its engine has forgotten it before. */
  readonly forgotten: boolean;
  /** `peerTag` of the replica where its turn is in flight or waits, 0 = the one that tells it, or none. */
  readonly peer: number;
}

/** The same with the endpoint's place in this pool. */
export interface PlacedTurn extends SessionTold {
  readonly slot: number;
  readonly generation: number;
}

/** The same for a session as a whole. */
export interface PlacedSession extends SessionState, PlacedTurn {}

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
      within: word(CORE.NEWS_WITHIN),
      slot: number(CORE.NEWS_SLOT),
      generation: number(CORE.NEWS_GENERATION),
      tokens: number(CORE.NEWS_TOKENS),
      shared: number(CORE.NEWS_SHARED),
      withinTokens: number(CORE.NEWS_WITHIN_TOKENS),
      named: (number(CORE.NEWS_MARKS) & CORE.NEWS_IS_NAMED) !== 0,
    };
  }

  /** Whether sessions are counted. */
  get isOn(): boolean {
    return this.#core.call.sessionsMode() !== CORE.SESSIONS_OFF;
  }

  /**
   * Numbers of the sessions that peers can be told: first those with a place, the one used longest ago before the
   * others, as they stand in the lists of their endpoints; then lapsed ones.
   */
  known(): Uint32Array {
    const { call, view } = this.#core;
    const first = call.sessionAddress(1) >>> 0;
    const placed: { readonly entry: number; readonly lastUse: number }[] = [];
    const lapsed: number[] = [];
    for (let i = 0, made = call.sessionsMade() >>> 0; i < made; i++) {
      const fields = first + i * CORE.SESSION_BYTES;
      const state = view.getUint16(fields + CORE.SESSION_STATE, true);
      if (state === CORE.SESSION_LAPSED) lapsed.push(i + 1);
      else if (state !== CORE.SESSION_FREE)
        placed.push({ entry: i + 1, lastUse: view.getFloat64(fields + CORE.SESSION_LAST_USE, true) });
    }
    placed.sort((a, b) => a.lastUse - b.lastUse);
    return Uint32Array.from([...placed.map(({ entry }) => entry), ...lapsed]);
  }

  /** A session as a whole; undefined = there is nothing to tell of it by now, or the lock was not free. */
  session(entry: number): PlacedSession | undefined {
    if (this.#core.call.sessionExport(entry) !== 0) return undefined;
    const record = this.#recordAt(CORE.SESSION_NEWS);
    const number = (offset: number) => this.#core.u32[(record + offset) >>> 2]!;
    const is = (mark: number) => (number(CORE.NEWS_MARKS) & mark) !== 0;
    return {
      ...this.#turnAt(CORE.SESSION_NEWS),
      turns: number(CORE.NEWS_TURNS),
      ageMs: number(CORE.NEWS_AGE),
      waits: is(CORE.NEWS_IS_WAITING),
      lapsedAfter: is(CORE.NEWS_IS_LAPSED) ? number(CORE.NEWS_IDLE) : undefined,
      forgotten: is(CORE.NEWS_IS_FORGOTTEN),
      peer: number(CORE.NEWS_PEER),
    };
  }

  /**
   * Takes a session that a peer tells as a whole, unless it is known already, its endpoint has left, or there is no
   * place for it.
   * @param tag of the peer
   * @returns as `hear`
   */
  learn(session: PlacedSession, tag: number, nowMs: number): boolean {
    const { waits, lapsedAfter, forgotten } = session;
    const marks =
      (waits ? CORE.NEWS_IS_WAITING : 0) |
      (lapsedAfter === undefined ? 0 : CORE.NEWS_IS_LAPSED) |
      (forgotten ? CORE.NEWS_IS_FORGOTTEN : 0);
    this.#put(session, marks);
    this.#putNumber(CORE.NEWS_TURNS, session.turns);
    this.#putNumber(CORE.NEWS_AGE, session.ageMs);
    this.#putNumber(CORE.NEWS_IDLE, lapsedAfter ?? 0);
    this.#putNumber(CORE.NEWS_PEER, session.peer);
    return this.#core.call.sessionImport(tag, nowMs) !== 1;
  }

  /**
   * Takes a turn that a peer tells. Without effect when its endpoint has left.
   * @param tag of the peer
   * @returns false when the lock was not free: call again
   */
  hear(turn: PlacedTurn, tag: number, nowMs: number): boolean {
    this.#put(turn, 0);
    return this.#core.call.sessionsHear(tag, nowMs) === 0;
  }

  #putNumber(offset: number, value: number): void {
    this.#core.u32[(this.#recordAt(CORE.SESSION_NEWS) + offset) >>> 2] = value;
  }

  /** Writes a turn into the record behind the ring. @param marks that it has beside its own */
  #put(turn: PlacedTurn, marks: number): void {
    this.#core.asserts?.slot(turn.slot);
    const record = this.#recordAt(CORE.SESSION_NEWS);
    const putWord = (offset: number, value: bigint) => {
      this.#words[(record + offset) >>> 3] = value;
    };
    putWord(CORE.NEWS_BEFORE, turn.before);
    putWord(CORE.NEWS_ANCHOR, turn.anchor);
    putWord(CORE.NEWS_EARLY_ANCHOR, turn.earlyAnchor);
    putWord(CORE.NEWS_PREFIX, turn.prefix);
    putWord(CORE.NEWS_WITHIN, turn.within);
    this.#putNumber(CORE.NEWS_SLOT, turn.slot);
    this.#putNumber(CORE.NEWS_GENERATION, turn.generation);
    this.#putNumber(CORE.NEWS_TOKENS, turn.tokens);
    this.#putNumber(CORE.NEWS_SHARED, turn.shared);
    this.#putNumber(CORE.NEWS_WITHIN_TOKENS, turn.withinTokens);
    this.#putNumber(CORE.NEWS_BEGINS, Number(turn.begins));
    this.#putNumber(CORE.NEWS_MARKS, (turn.named ? CORE.NEWS_IS_NAMED : 0) | marks);
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
