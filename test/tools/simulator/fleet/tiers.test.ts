import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Engine, type EngineRequest, type Sequence } from '../../../../dist/tools/simulator/fleet/engine.js';
import type { TierSettings } from '../../../../dist/tools/simulator/fleet/kv-tiers.js';

const HOST: TierSettings = { place: 'host', blocks: 100, blockMs: 2 };

function request(group: number, promptTokens = 32, outputTokens = 1): EngineRequest {
  const blocks = Math.floor((promptTokens + outputTokens) / 4);
  return { promptTokens, outputTokens, chain: Int32Array.from({ length: blocks }, (_, i) => 100 * group + i) };
}

/** An engine whose cache holds 8 blocks of 4 tokens, and whose steps take a millisecond a token. */
function engineWith(tiers: readonly TierSettings[], blocks = 9) {
  const limits = { blockTokens: 4, blocks, maxBatchedTokens: 64, maxSequences: 4, longPrefillTokens: 64, tiers };
  const engine = new Engine(limits, ({ tokens }) => tokens, 1_000);
  const ended: Sequence[] = [];
  const left: (readonly [content: number, place: string])[] = [];
  engine.kv.listen({
    stored: () => undefined,
    removed: (content) => left.push([content, 'gone']),
    moved: (content, place) => left.push([content, place]),
  });
  const listener = { token: () => undefined, finished: (sequence: Sequence) => ended.push(sequence) };
  /** Milliseconds until nothing is left to do. */
  const run = () => {
    let ms = 0;
    for (let step = engine.beginStep(); step > 0; step = engine.beginStep()) {
      engine.endStep(listener);
      ms += step;
    }
    return ms;
  };
  const serve = (asked: EngineRequest) => {
    engine.submit(asked);
    const ms = run();
    return { ms, sequence: ended.at(-1)! };
  };
  return { engine, left, ended, serve, run };
}

describe('tiers of a simulated engine', () => {
  test('what the GPU forgets comes back from the host memory in the time of its bandwidth', () => {
    const { serve } = engineWith([HOST]);
    serve(request(1));
    serve(request(2));
    const { ms, sequence } = serve(request(1));
    // The GPU has kept its first block, and the last token of a prompt is always computed.
    expect([sequence.cachedTokens, sequence.loadedTokens]).toEqual([28, 24]);
    expect(ms).toBe(6 * 2 + 4);
  });

  test('an engine without tiers computes it again', () => {
    const { serve } = engineWith([]);
    serve(request(1));
    serve(request(2));
    const { ms, sequence } = serve(request(1));
    expect([sequence.cachedTokens, sequence.loadedTokens, ms]).toEqual([4, 0, 28]);
  });

  test('a host memory that is full hands what was used longest ago to the disk, and the disk drops it', () => {
    const { serve, left } = engineWith([
      { ...HOST, blocks: 8 },
      { place: 'disk', blocks: 8, blockMs: 5 },
    ]);
    for (const group of [1, 2, 3, 4]) serve(request(group));
    expect(left.filter(([content]) => content === 100).map(([, place]) => place)).toEqual(['host', 'disk']);
    serve(request(5));
    expect(left.filter(([content]) => content === 107).at(-1)![1]).toBe('gone');
  });

  test('a slower tier takes the time of its own bandwidth', () => {
    const { serve } = engineWith([
      { ...HOST, blocks: 8 },
      { place: 'disk', blocks: 80, blockMs: 5 },
    ]);
    for (const group of [1, 2, 3, 4]) serve(request(group));
    expect(serve(request(1)).ms).toBe(7 * 5 + 4);
  });

  test('other sequences run while one waits for a tier', () => {
    const { engine, serve, run, ended } = engineWith([{ ...HOST, blockMs: 50 }], 20);
    serve(request(1));
    for (const group of [2, 3, 4]) serve(request(group));
    engine.submit(request(1));
    engine.submit(request(9, 8));
    run();
    expect(ended.slice(-2).map(({ request: { promptTokens } }) => promptTokens)).toEqual([8, 32]);
  });

  test('a sequence that waits for a tier counts as waiting and holds its blocks until it is aborted', () => {
    const { engine, serve } = engineWith([HOST]);
    serve(request(1));
    serve(request(2));
    const waiting = engine.submit(request(1))!;
    engine.beginStep();
    expect([engine.waiting, engine.running, engine.kv.free]).toEqual([1, 0, 2]);
    engine.abort(waiting);
    expect([engine.waiting, engine.kv.free]).toEqual([0, 9]);
  });

  test('a crash empties the tiers', () => {
    const { engine, serve } = engineWith([HOST]);
    serve(request(1));
    serve(request(2));
    engine.crash();
    expect(serve(request(1)).sequence.cachedTokens).toBe(0);
  });

  test('blocks are conserved, and every request is served, whatever comes', () => {
    const asked = fc.record({ group: fc.nat(5), prompt: fc.integer({ min: 4, max: 60 }) });
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 25 }), fc.nat(20), fc.nat(20), (requests, host, disk) => {
        const { engine, run, ended } = engineWith(
          [
            { place: 'host', blocks: host + 1, blockMs: 3 },
            { place: 'disk', blocks: disk + 1, blockMs: 9 },
          ],
          18,
        );
        for (const { group, prompt } of requests) {
          engine.submit(request(group, prompt, 2));
          if (prompt % 3 === 0) run();
        }
        run();
        expect(ended).toHaveLength(requests.length);
        expect(engine.kv.check()).toBeUndefined();
        expect(engine.kv.free).toBe(18);
      }),
    );
  });
});
