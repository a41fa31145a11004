import { expect } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import type { DecisionRequest } from '../../dist/src/core/index.js';
import type { SessionRule } from '../../dist/src/core/session-ledger.js';
import { type PlacedSession, type PlacedTurn, SessionNews } from '../../dist/src/core/session-news.js';
import { makeGate } from './gate-pool.ts';
import { scorer } from './pool.ts';

export const BLOCK = 64;
/** Tokens of the cache of each endpoint. */
export const CACHE = 100 * BLOCK;
const IDLE = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 100 };
export const RULE: SessionRule = { mode: 'on', smallPrompt: 0.02, stretch: 0, maxWaitMs: 300_000 };

/** A text: each word stands for a block. */
export function wordsOf(name: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => name * 1_000 + i);
}

/** One of several replicas over the same endpoints, which have the same slots at both. */
export class SessionReplica {
  readonly pool;
  readonly news: SessionNews;
  readonly #shard;
  #now = 1_000;

  constructor(tag: number, { endpoints = 2, share = 1, rule = RULE, blockCount = IDLE.blockCount } = {}) {
    const operations = [scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), scorer('OP_PICK_MAX_SCORE', 1, 1)];
    const idle = Array.from({ length: endpoints }, () => ({ ...IDLE, blockCount }));
    this.pool = makeGate({ mode: 'requests', maxRequests: 1_000, maxTokens: 1 }, idle, operations);
    this.pool.programs.publish(0, operations, { inserts: true });
    this.pool.gate.configure({ mode: 'requests', maxRequests: 1_000, maxTokens: 1 }, BLOCK, share, this.#now);
    expect(this.pool.gate.sessions.configure(rule)).toBe(true);
    this.#shard = this.pool.shard(1);
    this.news = new SessionNews(this.pool.control);
    expect(this.news.begin()).toBe(true);
    this.tag = tag;
  }

  readonly tag: number;

  /** A turn with this prompt on one of the endpoints. */
  begin(words: readonly number[], subset?: readonly number[], more: Partial<DecisionRequest> = {}) {
    const { core } = this.#shard;
    const at = core.call.hashesAddress() >>> 0;
    let hash = 7n;
    for (const [i, word] of words.entries()) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(word)) * 0x9e37_79b9_7f4a_7c15n + 0x1234_5678_9abcn);
      core.view.setBigUint64(at + 8 * i, hash, true);
    }
    const size = { blocks: words.length, promptTokens: words.length * BLOCK };
    const { slots, ticket, ticketGeneration } = this.#shard.decide({ ...size, nowMs: this.#now++, subset, ...more });
    return { slot: slots[0]!, ticket, generation: ticketGeneration };
  }

  end({ ticket, generation }: { ticket: number; generation: number }, tokens = 0): void {
    this.#shard.decider.complete(ticket, generation, tokens, this.#now++);
    this.#shard.decider.release(ticket, generation);
  }

  /** Passes the news to another replica. @returns what it was */
  tell(other: SessionReplica): PlacedTurn[] {
    const told: PlacedTurn[] = [];
    expect(this.news.drain((turn) => told.push(turn))).toBe(0);
    for (const turn of told) expect(other.news.hear(turn, this.tag, this.#now)).toBe(true);
    return told;
  }

  /** Lets time pass. */
  wait(ms: number): void {
    this.#now += ms;
  }

  get now(): number {
    return this.#now;
  }

  /** Tells another replica all sessions as a whole. @returns what it was told */
  join(other: SessionReplica): PlacedSession[] {
    const told = [...this.news.known()].flatMap((entry) => this.news.session(entry) ?? []);
    for (const session of told) expect(other.news.learn(session, this.tag, other.now)).toBe(true);
    other.check();
    return told;
  }

  /** States of all entries. */
  get states(): readonly number[] {
    const { call, view } = this.pool.control;
    const made = call.sessionsMade();
    const stateAt = (entry: number) => view.getUint16((call.sessionAddress(entry) >>> 0) + CORE.SESSION_STATE, true);
    return Array.from({ length: made }, (_, i) => stateAt(i + 1));
  }

  used(slot: number): number {
    return this.pool.gate.sessions.usedTokens(slot);
  }

  /** Pauses that have ended. */
  get pauses(): number {
    return this.pool.gate.sessions.pauses().count;
  }

  get counts() {
    return this.pool.gate.sessions.counts();
  }

  elsewhere(entry: number): boolean {
    return this.pool.control.call.sessionIsElsewhere(entry) !== 0;
  }

  check(): void {
    expect([this.pool.control.call.sessionsCheck(), this.pool.control.call.turnsCheck()]).toEqual([0, 0]);
  }
}
