import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, createPoolMemory, loadCoreModule } from '../../dist/src/core/index.js';
import { Engine, type EngineRequest, type Sequence } from '../../dist/tools/simulator/fleet/engine.js';
import { ContentIds, GrowingText } from '../../dist/tools/simulator/workloads/text.js';
import { smallSizes } from './pool.ts';

const MODULE = loadCoreModule();
const BLOCK = 16;
const CACHE_BLOCKS = 256;
const SESSIONS = 6;
const SLOT = 0;
/** Blocks with which two of three sessions begin, and with which one of three does: the former and more. */
const BEGINNING = 20;
const LONGER = 30;
const CONTENTS = 100_000;

interface Request extends EngineRequest {
  readonly over: () => void;
}

/** Text of a session, and its entry. */
interface Agent {
  readonly text: GrowingText;
  readonly entry: number;
  running: boolean;
}

const roundedUp = (tokens: number) => Math.ceil(tokens / BLOCK) * BLOCK;

/** One simulated engine, and the sessions as the core counts them. */
class Bench {
  readonly #core = attachCore(createPoolMemory(smallSizes, { hashSeed: 7n, module: MODULE }), 0);
  readonly engine = new Engine<Request>(
    { blockTokens: BLOCK, blocks: CACHE_BLOCKS, maxBatchedTokens: 512, maxSequences: 64, longPrefillTokens: 512 },
    () => 1,
    CONTENTS,
  );
  readonly #ids = new ContentIds();
  readonly #beginning = new GrowingText(BLOCK, this.#ids).append(BEGINNING * BLOCK);
  readonly #longer = this.#beginning.copy().append((LONGER - BEGINNING) * BLOCK);
  readonly #agents: Agent[];
  #now = 0;

  constructor() {
    this.#agents = this.#locked((call) =>
      Array.from({ length: SESSIONS }, (_, i) => {
        const text = [this.#beginning, this.#longer, new GrowingText(BLOCK, this.#ids)][i % 3]!.copy();
        return { text, entry: call.sessionTake(), running: false };
      }),
    );
  }

  #locked<Result>(work: (call: CoreInstance['call']) => Result): Result {
    const { call } = this.#core;
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    call.lockAcquire(lock, 100);
    const result = work(call);
    expect(call.sessionsCheck()).toBe(0);
    call.lockRelease(lock);
    return result;
  }

  /** A turn begins if it can run beside the others; the sessions that it pushes out lapse. */
  turn(which: number, prompt: number, output: number): void {
    const agent = this.#agents[which]!;
    if (agent.running) return;
    const tokens = roundedUp(agent.text.tokens + prompt + output);
    if (tokens > 100 * BLOCK || this.#runningTokens + tokens > CACHE_BLOCKS * BLOCK) return;
    const promptTokens = agent.text.append(prompt).tokens;
    const chain = agent.text.append(output).chain();
    agent.running = true;
    const shared = this.#sharedBlocks(which);
    this.#locked((call) => {
      call.sessionBegin(agent.entry, SLOT, tokens, shared * BLOCK, BigInt(shared), 1, ++this.#now);
      if (shared === LONGER) call.sessionNest(agent.entry, BigInt(BEGINNING));
      call.sessionsForgotten(SLOT, CACHE_BLOCKS * BLOCK);
    });
    this.#submit(promptTokens, output, chain, tokens, () => {
      agent.running = false;
      this.#locked((call) => call.sessionEnd(agent.entry, ++this.#now));
    });
  }

  /** Two turns that compute one beginning at a time hold it twice, so it is shared only where it stands already. */
  #sharedBlocks(which: number): number {
    const beginnings = [this.#beginning, ...(which % 3 === 1 ? [this.#longer] : [])].map((text) => text.chain());
    const stands = (chain: Int32Array) => this.engine.kv.cachedRun(chain, chain.length) === chain.length;
    if (which % 3 === 2 || this.engine.waiting > 0) return 0;
    return Math.max(0, ...beginnings.filter(stands).map(({ length }) => length));
  }

  chat(prompt: number, output: number): void {
    const tokens = roundedUp(prompt + output);
    if (this.#runningTokens + tokens > CACHE_BLOCKS * BLOCK) return;
    const chain = new GrowingText(BLOCK, this.#ids).append(prompt + output).chain();
    this.#locked((call) => {
      call.sessionsOtherBegins(SLOT, tokens);
      call.sessionsForgotten(SLOT, CACHE_BLOCKS * BLOCK);
    });
    this.#submit(prompt, output, chain, tokens, () => this.#locked((call) => call.sessionsOtherEnds(SLOT, tokens)));
  }

  #runningTokens = 0;

  #submit(promptTokens: number, outputTokens: number, chain: Int32Array, tokens: number, ended: () => void): void {
    this.#runningTokens += tokens;
    const over = () => {
      this.#runningTokens -= tokens;
      ended();
    };
    this.engine.submit({ promptTokens, outputTokens, chain, over });
  }

  step(): void {
    if (this.engine.beginStep() === 0) return;
    this.engine.endStep({ token: () => undefined, finished: ({ request }: Sequence<Request>) => request.over() });
    this.#locked((call) => call.sessionsForgotten(SLOT, CACHE_BLOCKS * BLOCK));
  }

  /** Idle sessions of which the engine has forgotten a block although they are protected. */
  broken(): readonly number[] {
    const { call, view } = this.#core;
    return this.#agents.flatMap(({ text, entry }, i) => {
      const state = view.getUint16((call.sessionAddress(entry) >>> 0) + CORE.SESSION_STATE, true);
      if (state !== CORE.SESSION_IDLE) return [];
      // The last token of an answer is never computed: its block may not be whole.
      const blocks = Math.floor((text.tokens - 1) / BLOCK);
      return this.engine.kv.cachedRun(text.chain(), blocks) === blocks ? [] : [i];
    });
  }

  protectedSessions(): number {
    const { call, view } = this.#core;
    const state = ({ entry }: Agent) => view.getUint16((call.sessionAddress(entry) >>> 0) + CORE.SESSION_STATE, true);
    return this.#agents.filter((agent) => state(agent) === CORE.SESSION_IDLE).length;
  }
}

const act = fc.oneof(
  fc.record({
    what: fc.constant('turn' as const),
    which: fc.nat(SESSIONS - 1),
    prompt: fc.integer({ min: 1, max: 400 }),
    output: fc.integer({ min: 1, max: 40 }),
  }),
  fc.record({
    what: fc.constant('chat' as const),
    prompt: fc.integer({ min: 1, max: 200 }),
    output: fc.integer({ min: 1, max: 20 }),
  }),
  fc.record({ what: fc.constant('steps' as const), count: fc.integer({ min: 1, max: 30 }) }),
);

describe('what the core protects, and what a simulated engine forgets', () => {
  it('a protected session loses no block while what is in use fits into the cache', () => {
    let lookedAt = 0;
    fc.assert(
      fc.property(fc.array(act, { minLength: 30, maxLength: 80 }), (acts) => {
        const bench = new Bench();
        for (const each of acts) {
          if (each.what === 'turn') bench.turn(each.which, each.prompt, each.output);
          else if (each.what === 'chat') bench.chat(each.prompt, each.output);
          else for (let i = 0; i < each.count; i++) bench.step();
          expect(bench.broken()).toEqual([]);
          lookedAt += bench.protectedSessions();
        }
      }),
      { numRuns: 20, endOnFailure: true },
    );
    expect(lookedAt).toBeGreaterThan(1_000);
  });
});
