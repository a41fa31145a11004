import { describe, expect, it } from 'vitest';
import { NEW_WORK_SLICE_MS, TURN_BOUNDS } from '../../dist/src/ingress/shard-turn-budget.js';
import { LoopModel, type Traffic } from './loop-model.ts';

const OPTIONS = { ...TURN_BOUNDS, sliceMs: NEW_WORK_SLICE_MS };
const WARM = { ...OPTIONS, windows: { ...TURN_BOUNDS.windows, coldWork: 0 } };
const run = (traffic: Traffic) => new LoopModel(traffic, WARM).run();

/** A fast core, which serves 45 requests a millisecond, a slow one, and one that serves 5. */
const CORES = [1, 4, 9];

// In the model's own time: what the kernel and the garbage collector do is not in it (npm run bench -- overload).
describe.each(CORES)('a shard on a core that is %i times as slow as a fast one', (slowness) => {
  it.each([1.45, 2, 3])(
    'a shard that is offered %f times its capacity serves 90 % or what refusals leave, and answers all others soon',
    (load) => {
      const { p99, share, refusedP99 } = run({ load, slowness, ms: 5_000 });
      // Refusals at 3 times the capacity take an eighth of this model's time.
      expect(share).toBeGreaterThan(load === 3 ? 0.85 : 0.9);
      expect(p99).toBeLessThan(70);
      expect(refusedP99).toBeLessThan(250);
    },
  );

  it.each([0.7, 0.9])('a shard that is offered %f times its capacity refuses nothing', (load) => {
    expect(run({ load, slowness, ms: 3_000 }).refused).toBe(0);
  });

  it('a shard at 0.7 times its capacity refuses nothing of 2,000 requests that come at once', () => {
    expect(run({ load: 0.7, slowness, ms: 3_000, burst: 2_000 }).refused).toBe(0);
  });

  it('a shard whose code is being compiled at the begin refuses nothing at 0.7 times its capacity', () => {
    const traffic = { load: 0.7, slowness, ms: 3_000, coldMs: 60 * slowness };
    expect(new LoopModel(traffic, OPTIONS).run().refused).toBe(0);
  });

  it('a shard at 0.7 times its capacity refuses nothing of what comes in a stall of a tenth of a second', () => {
    expect(run({ load: 0.7, slowness, ms: 3_000, stallMs: 100 }).refused).toBe(0);
  });
});
