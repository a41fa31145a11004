import type { DecisionRequest } from '../../dist/src/core/decision-data.js';
import { DecisionLog, DecisionTrail, type EndpointSignals } from '../../dist/src/core/index.js';
import { makeGate, type Shard } from './gate-pool.ts';
import { scorer } from './pool.ts';

/** Tokens of a block. */
export const BLOCK = 64;
/** An endpoint whose cache has 100 blocks. */
const IDLE = { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 100 };
export const RULE = { mode: 'on', smallPrompt: 0.02, stretch: 0, maxWaitMs: Number.POSITIVE_INFINITY } as const;

/** A text: each word stands for a block. */
export function wordsOf(name: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => name * 1_000 + i);
}

/** Pools of sessions whose decisions are read back from the log. */
export class LoggedPool {
  readonly pool;
  readonly log: DecisionLog;
  readonly #shard: Shard;
  readonly #trail: DecisionTrail;
  now = 1_000;

  /** @param told signals of each endpoint, where they differ from IDLE */
  constructor(endpoints: number, mode: 'on' | 'shadow' = 'on', told: Partial<EndpointSignals> = {}) {
    const operations = [scorer('OP_SCORE_ACTIVE_REQUEST', 1), scorer('OP_PICK_MAX_SCORE', 1, 1)];
    const signals = Array.from({ length: endpoints }, () => ({ ...IDLE, ...told }));
    this.pool = makeGate({ mode: 'requests', maxRequests: 1_000, maxTokens: 1 }, signals, operations);
    this.pool.programs.publish(0, [scorer('OP_SCORE_PREFIX', 0.01, 0, 8192, 64), ...operations], { inserts: true });
    this.pool.gate.sessions.configure({ ...RULE, mode });
    this.#shard = this.pool.shard(1);
    this.#trail = new DecisionTrail(this.#shard.core, 1);
    this.log = new DecisionLog(this.pool.control);
  }

  /** Decides a turn, which ends at once if it has an endpoint. @returns its record */
  turn(words: readonly number[], more: Partial<DecisionRequest> = {}) {
    const { end, record } = this.begin(words, more);
    end();
    return record;
  }

  /** Decides a turn that goes on until its end is called. */
  begin(words: readonly number[], more: Partial<DecisionRequest> = {}) {
    const { core } = this.#shard;
    const at = core.call.hashesAddress() >>> 0;
    let hash = 7n;
    for (const [i, word] of words.entries()) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(word)) * 0x9e37_79b9_7f4a_7c15n + 0x1234_5678_9abcn);
      core.view.setBigUint64(at + 8 * i, hash, true);
    }
    this.now += 100;
    this.#trail.begin('turn', true);
    const size = { blocks: words.length, promptTokens: words.length * BLOCK };
    const { status, ticket, ticketGeneration } = this.#shard.decide({
      ...size,
      tail: false,
      nowMs: this.now,
      ...more,
    });
    const end = () => {
      if (status !== 'decided') return;
      this.#shard.decider.complete(ticket, ticketGeneration, 0, this.now);
      this.#shard.decider.release(ticket, ticketGeneration);
    };
    return { record: this.log.recent(1)[0]!, end };
  }

  get counts() {
    return this.pool.gate.sessions.counts();
  }

  wait(ms: number): void {
    this.now += ms;
    this.pool.gate.sessions.tick(this.now);
  }
}
