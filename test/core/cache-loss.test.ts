import { describe, expect, it } from 'vitest';
import { type CachedTokens, cacheLossOf } from '../../dist/src/core/cache-loss.js';
import { lossCauseOf } from '../../dist/src/core/decision-log.js';
import { DecisionLog, DecisionTrail, PrefixIndex } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

const whole: CachedTokens = {
  promptTokens: 640,
  blockTokens: 64,
  held: 640,
  best: 640,
  bestCause: 'by-load',
  former: undefined,
  told: undefined,
};

describe('the cause of lost cache', () => {
  it.each<[string, Partial<CachedTokens>, ReturnType<typeof cacheLossOf>]>([
    ['a prompt that was cached whole', {}, undefined],
    ['a prompt of which less than a block is new', { held: 600, best: 600 }, undefined],
    ['a prompt that no endpoint ever held', { held: 0, best: 0 }, { cause: 'never-stored', tokens: 640 }],
    [
      'a prompt that an endpoint held before',
      { held: 64, best: 64, former: 'engine-restarted' },
      { cause: 'engine-restarted', tokens: 576 },
    ],
    ['a prompt of which the engine had more than was known', { held: 0, best: 0, told: 640 }, undefined],
    [
      'a prompt that another endpoint holds, and a third one held longer',
      { held: 64, best: 320, former: 'endpoint-gone' },
      { cause: 'by-load', tokens: 256 },
    ],
    ['a prompt that another endpoint held', { held: 64, best: 320 }, { cause: 'by-load', tokens: 256 }],
    [
      'an endpoint without room',
      { held: 0, best: 320, bestCause: 'by-overload' },
      { cause: 'by-overload', tokens: 320 },
    ],
    ['an engine that told fewer cached tokens', { told: 128 }, { cause: 'evicted', tokens: 512 }],
    ['an engine that told half a block less', { told: 610 }, undefined],
    ['the larger of two losses', { held: 512, told: 448, best: 640 }, { cause: 'by-load', tokens: 128 }],
  ])('%s is told by its cause', (_, given, loss) => {
    expect(cacheLossOf({ ...whole, ...given })).toEqual(loss);
  });

  it.each([
    ['scored less', undefined, 'by-load'],
    ['had no room', 'gate', 'by-overload'],
    ['had its room taken by requests that waited', 'behind', 'by-overload'],
    ['was left to a request that waited', 'aside', 'by-overload'],
    ['was no candidate', 'not-admitted', 'endpoint-away'],
    ['was taken out by an operation', 0, 'by-filter'],
  ] as const)('a loss to an endpoint that %s has a cause of its own', (_, removed, cause) => {
    expect(lossCauseOf(removed)).toBe(cause);
  });

  it('the trail tells the loss of every answered request once, from its record', () => {
    const { decider, core, control } = makePool(
      [scorer('OP_SCORE_QUEUE', 9), scorer('OP_SCORE_PREFIX', 1, 0, 8192, 64), pickMax],
      [{ waiting: 9 }, { waiting: 0 }],
    );
    const losses: unknown[] = [];
    const trail = new DecisionTrail(core, 0, (loss) => losses.push(loss));
    new PrefixIndex(core).writeHashes(BigUint64Array.of(11n, 22n, 33n));
    new PrefixIndex(core).insert(0, 2);
    const { record } = decider.decide({ ...plainRequest, blocks: 3, promptTokens: 192 });
    const measures = { outcome: 'completed', durationMs: 1 } as const;
    trail.ended(record!, {
      firstOutputMs: undefined,
      perTokenMs: undefined,
      outputTokens: undefined,
      promptTokens: undefined,
      cachedTokens: 0,
      ...measures,
    });
    expect(losses).toEqual([{ cause: 'by-load', tokens: 128 }]);
    expect(new DecisionLog(control).recent(1)).toMatchObject([{ slot: 1, best: { slot: 0, matchedBlocks: 2 } }]);
  });
});
