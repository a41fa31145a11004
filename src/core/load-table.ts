import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/** Load of requests on one endpoint. */
export interface RequestLoad {
  readonly requests: number;
  /** Uncached tokens in flight. */
  readonly tokens: number;
  /** Uncached prompt tokens of requests without a first token. */
  readonly prefill: number;
  /** Prompt tokens of requests in flight. */
  readonly prompt: number;
  /**
   * Blocks in use: blocks of prompts, each counted once, and blocks filled by output. Peers add them to their
   * OUTPUT_BLOCKS, which scorers add to ACTIVE_BLOCKS. Blocks that requests of two replicas share count twice.
   */
  readonly output: number;
  /** Requests without a first token; known with flow control only, else 0. */
  readonly pending: number;
  /** Tokens in the KV cache; known with flow control only, else 0. */
  readonly held: number;
}

/** Load columns, each with the part of other replicas. */
const OWN_PAIRS: readonly number[] = [
  CORE.COLUMN_INFLIGHT,
  CORE.COLUMN_PEER_REQUESTS,
  CORE.COLUMN_INFLIGHT_TOKENS,
  CORE.COLUMN_PEER_TOKENS,
  CORE.COLUMN_PREFILL_TOKENS,
  CORE.COLUMN_PEER_PREFILL,
  CORE.COLUMN_PROMPT_TOKENS,
  CORE.COLUMN_PEER_PROMPT,
  CORE.COLUMN_OUTPUT_BLOCKS,
  CORE.COLUMN_PEER_OUTPUT,
];

/** Words that `LoadTable.note` notes of a slot. */
export const SLOT_WORDS = OWN_PAIRS.length / 2 + 4;

function put(words: Uint32Array, at: number, value: number): boolean {
  const differs = words[at] !== value;
  words[at] = value;
  return differs;
}

/** The two parts of the load columns: own requests, and those of other replicas. Control thread only. */
export class LoadTable {
  readonly #core: CoreInstance;
  readonly #columns: number;

  constructor(core: CoreInstance) {
    core.asserts?.control();
    this.#core = core;
    this.#columns = core.call.columnAddress(0) >>> 0;
  }

  /** Own load on a slot. Read without the lock: a value may be a decision older than the one beside it. */
  own(slot: number): RequestLoad {
    const { call } = this.#core;
    return {
      requests: this.#difference(CORE.COLUMN_INFLIGHT, CORE.COLUMN_PEER_REQUESTS, slot),
      tokens: this.#difference(CORE.COLUMN_INFLIGHT_TOKENS, CORE.COLUMN_PEER_TOKENS, slot),
      prefill: this.#difference(CORE.COLUMN_PREFILL_TOKENS, CORE.COLUMN_PEER_PREFILL, slot),
      prompt: this.#difference(CORE.COLUMN_PROMPT_TOKENS, CORE.COLUMN_PEER_PROMPT, slot),
      output:
        this.#difference(CORE.COLUMN_OUTPUT_BLOCKS, CORE.COLUMN_PEER_OUTPUT, slot) +
        this.#cell(CORE.COLUMN_ACTIVE_BLOCKS, slot),
      pending: call.pendingRequests(slot) >>> 0,
      held: call.heldTokens(slot) >>> 0,
    };
  }

  /**
   * Notes the own load on a slot and whether it is ejected.
   * @param noted SLOT_WORDS words that hold what was noted before
   * @returns whether anything differs
   */
  note(slot: number, noted: Uint32Array, at: number): boolean {
    const { u32, sizes, call } = this.#core;
    const first = (this.#columns >>> 2) + slot;
    let differs = false;
    for (let i = 0; i < OWN_PAIRS.length; i += 2) {
      const value = u32[first + OWN_PAIRS[i]! * sizes.endpoints]! - u32[first + OWN_PAIRS[i + 1]! * sizes.endpoints]!;
      differs = put(noted, at + (i >>> 1), value >>> 0) || differs;
    }
    const next = at + OWN_PAIRS.length / 2;
    differs = put(noted, next, this.isEjected(slot) ? 1 : 0) || differs;
    differs = put(noted, next + 1, call.pendingRequests(slot) >>> 0) || differs;
    differs = put(noted, next + 2, call.heldTokens(slot) >>> 0) || differs;
    return put(noted, next + 3, u32[first + CORE.COLUMN_ACTIVE_BLOCKS * sizes.endpoints]!) || differs;
  }

  /** The own load as `note` has noted it: the told load is the one with which the next note compares. */
  noted(words: Uint32Array, at: number): RequestLoad {
    const pair = (i: number) => Math.max(0, words[at + i]! | 0);
    const next = at + OWN_PAIRS.length / 2;
    return {
      requests: pair(0),
      tokens: pair(1),
      prefill: pair(2),
      prompt: pair(3),
      output: pair(4) + words[next + 3]!,
      pending: words[next + 1]!,
      held: words[next + 2]!,
    };
  }

  /** Load of other replicas on a slot, as it was set last. */
  peers(slot: number): Omit<RequestLoad, 'pending' | 'held'> {
    return {
      requests: this.#cell(CORE.COLUMN_PEER_REQUESTS, slot),
      tokens: this.#cell(CORE.COLUMN_PEER_TOKENS, slot),
      prefill: this.#cell(CORE.COLUMN_PEER_PREFILL, slot),
      prompt: this.#cell(CORE.COLUMN_PEER_PROMPT, slot),
      output: this.#cell(CORE.COLUMN_PEER_OUTPUT, slot),
    };
  }

  /**
   * Replaces the load of other replicas on a slot. Does nothing if the slot has another endpoint by now.
   * @returns false when a dead thread holds the lock: call again
   */
  setPeers(slot: number, generation: number, load: RequestLoad): boolean {
    const { requests, tokens, prefill, prompt, output, pending, held } = load;
    const { call } = this.#core;
    return call.peerLoad(slot, generation, requests, tokens, prefill, prompt, output, pending, held) === 0;
  }

  /**
   * Applies an ejection, or the end of one, that another replica reports.
   * @returns as setPeers
   */
  setEjection(slot: number, generation: number, out: boolean, nowMs: number): boolean {
    return this.#core.call.peerEjection(slot, generation, out ? 1 : 0, nowMs) === 0;
  }

  /**
   * Whether the endpoint of a slot is out because it failed, or is dead. Silence is not told: every replica judges by
   * its own requests.
   */
  isEjected(slot: number): boolean {
    if (this.#cell(CORE.COLUMN_DEATH, slot) === CORE.DEATH_DEAD) return true;
    return this.#cell(CORE.COLUMN_EJECTION, slot) !== 0 && this.#cell(CORE.COLUMN_SILENT, slot) === 0;
  }

  #cell(column: number, slot: number): number {
    return this.#core.u32[(this.#columns >>> 2) + column * this.#core.sizes.endpoints + slot]!;
  }

  #difference(all: number, peers: number, slot: number): number {
    return Math.max(0, (this.#cell(all, slot) - this.#cell(peers, slot)) | 0);
  }
}
