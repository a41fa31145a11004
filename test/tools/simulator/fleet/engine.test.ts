import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  Engine,
  type EngineLimits,
  type EngineRequest,
  type Sequence,
} from '../../../../dist/tools/simulator/fleet/engine.js';

const limits: EngineLimits = {
  blockTokens: 4,
  blocks: 64,
  maxBatchedTokens: 32,
  maxSequences: 4,
  longPrefillTokens: 32,
};

/** Contents 100·group + position: requests of one group share the beginning. */
function request(promptTokens: number, outputTokens: number, group = 0, own = 0): EngineRequest {
  const blocks = Math.floor((promptTokens + outputTokens) / 4);
  const shared = Math.floor(promptTokens / 8);
  return {
    promptTokens,
    outputTokens,
    chain: Int32Array.from({ length: blocks }, (_, i) => (i < shared ? 100 * group + i : 10_000 + own * 200 + i)),
  };
}

function engineWith(changed: Partial<EngineLimits> = {}) {
  const finished: Sequence[] = [];
  const tokens: Sequence[] = [];
  const engine = new Engine({ ...limits, ...changed }, ({ tokens: n }) => n, 100_000);
  const listener = { token: (s: Sequence) => tokens.push(s), finished: (s: Sequence) => finished.push(s) };
  /** One step. @returns false when there was nothing to do */
  const step = () => {
    if (engine.beginStep() === 0) return false;
    engine.endStep(listener);
    return true;
  };
  return { engine, finished, tokens, step };
}

describe('the engine of a simulated model server', () => {
  test('the engine of a simulated model server computes a long prompt in pieces of the budget and then a token a step', () => {
    const { engine, tokens, finished, step } = engineWith();
    engine.submit(request(80, 3));
    expect([engine.beginStep(), engine.running]).toEqual([32, 1]);
    engine.endStep({ token: () => {}, finished: () => {} });
    step();
    step();
    expect(tokens).toHaveLength(1);
    step();
    step();
    expect([tokens.length, finished.length, engine.running]).toEqual([3, 1, 0]);
  });

  test('the engine of a simulated model server serves running sequences before waiting ones and shares the rest of the budget', () => {
    const { engine, step } = engineWith();
    engine.submit(request(20, 5, 1, 1));
    step();
    engine.submit(request(40, 1, 2, 2));
    // One token for the running one, 31 of the prompt.
    expect(engine.beginStep()).toBe(32);
  });

  test('the engine of a simulated model server takes a cached beginning over, but always computes the last token', () => {
    const { engine, finished, step } = engineWith();
    engine.submit(request(16, 1, 1, 1));
    step();
    engine.submit({ promptTokens: 16, outputTokens: 1, chain: finished[0]!.request.chain });
    expect(engine.beginStep()).toBe(4);
    engine.endStep({ token: () => {}, finished: (s) => finished.push(s) });
    expect(finished[1]!.cachedTokens).toBe(12);
  });

  test('the engine of a simulated model server gives blocks of the last sequence to the first, and begins the last anew', () => {
    const { engine, finished, step } = engineWith({ blocks: 14, maxBatchedTokens: 64, longPrefillTokens: 64 });
    engine.submit(request(24, 16, 1, 1));
    engine.submit(request(24, 16, 2, 2));
    while (step());
    expect(engine.preemptions).toBeGreaterThan(0);
    expect(finished.map(({ preemptions }) => preemptions)).toEqual([0, engine.preemptions]);
    expect(finished.every(({ generated }) => generated === 16)).toBe(true);
  });

  test('the engine of a simulated model server keeps waiting sequences behind the first one that does not fit', () => {
    const { engine, step } = engineWith({ blocks: 10, maxBatchedTokens: 64, longPrefillTokens: 64 });
    engine.submit(request(30, 8, 1, 1));
    step();
    engine.submit(request(30, 2, 2, 2));
    engine.submit(request(4, 2, 3, 3));
    step();
    expect([engine.running, engine.waiting]).toEqual([1, 2]);
  });

  test('the engine of a simulated model server refuses what can never fit', () => {
    expect(engineWith().engine.submit(request(300, 10))).toBeUndefined();
  });

  test('the engine of a simulated model server loses sequences and cache in a crash', () => {
    const { engine, step } = engineWith();
    engine.submit(request(16, 8, 1, 1));
    step();
    expect(engine.crash()).toHaveLength(1);
    expect([engine.running, engine.kv.free]).toEqual([0, 64]);
    engine.submit(request(16, 1, 1, 1));
    expect(engine.beginStep()).toBe(16);
  });

  test('whatever comes and goes: blocks are conserved and every sequence gets its tokens', () => {
    const action = fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('step' as const) }) },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('submit' as const),
          prompt: fc.integer({ min: 1, max: 120 }),
          output: fc.integer({ min: 1, max: 40 }),
          group: fc.integer({ min: 0, max: 3 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('abort' as const), which: fc.nat(20) }) },
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 120 }), (actions) => {
        const { engine, finished, step } = engineWith({ blocks: 48 });
        const live: Sequence[] = [];
        let submitted = 0;
        let aborted = 0;
        for (const what of actions) {
          if (what.kind === 'step') step();
          else if (what.kind === 'submit') {
            const sequence = engine.submit(request(what.prompt, what.output, what.group, ++submitted));
            if (sequence !== undefined) live.push(sequence);
            else submitted--;
          } else {
            const running = live.filter((s) => !finished.includes(s));
            const chosen = running[what.which % Math.max(1, running.length)];
            if (chosen !== undefined) {
              engine.abort(chosen);
              live.splice(live.indexOf(chosen), 1);
              aborted++;
            }
          }
          expect(engine.kv.check()).toBeUndefined();
        }
        for (let i = 0; i < 20_000 && step(); i++);
        expect(finished).toHaveLength(submitted - aborted);
        expect(finished.every((s) => s.generated === s.request.outputTokens)).toBe(true);
        expect(engine.kv.free).toBe(48);
      }),
      { numRuns: 150 },
    );
  });

  test('a queue of equal prompts waits as the M/D/1 formula says', () => {
    // Pollaczek and Khinchine for a constant service time T at utilisation r: mean wait = r T / 2 (1 - r).
    const service = 10;
    const utilisation = 0.7;
    const { engine } = engineWith({ maxBatchedTokens: 10, longPrefillTokens: 10, maxSequences: 1 });
    let state = 12_345;
    const uniform = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return (state + 0.5) / 2 ** 32;
    };
    const requests = 300_000;
    let arrival = 0;
    let now = 0;
    let waited = 0;
    const queue: number[] = [];
    let head = 0;
    for (let done = 0, sent = 0; done < requests; ) {
      while (sent < requests && arrival <= now) {
        queue.push(arrival);
        engine.submit({ promptTokens: 10, outputTokens: 1, chain: new Int32Array(0) });
        arrival -= Math.log(uniform()) * (service / utilisation);
        sent++;
      }
      const ms = engine.beginStep();
      if (ms === 0) now = arrival;
      else {
        waited += now - queue[head++]!;
        now += ms;
        engine.endStep({ token: () => {}, finished: () => done++ });
      }
    }
    const expected = (utilisation * service) / (2 * (1 - utilisation));
    expect(Math.abs(waited / requests / expected - 1)).toBeLessThan(0.03);
  });
});
