import { describe, expect, test } from 'vitest';
import { adaptationSpeed } from '../../../dist/tools/simulator/suite/adaptation-speed.js';
import { suiteSchema } from '../../../dist/tools/simulator/suite/schema.js';

const suite = suiteSchema.parse({
  workloads: [
    { name: 'a', kind: 'chat' },
    { name: 'b', kind: 'separate' },
    {
      name: 'shift',
      kind: 'sequence',
      parts: [
        { workload: 'a', seconds: 200 },
        { workload: 'b', seconds: 200 },
      ],
    },
  ],
  policies: [{ name: 'default' }, { name: 'learned' }],
});

/**
 * Windows of 10 s; the learned policy costs as much as the reference, and 20 % less from 40 s into the second part on.
 */
const run = (policy: string, seed: number) =>
  ({
    workload: 'shift',
    policy,
    seed,
    summary: {
      timeline: {
        windowMs: 10_000,
        cost: Array.from({ length: 40 }, (_, i) => (policy === 'learned' && i >= 24 ? 0.8 : 1) * seed),
      },
    },
  }) as never;

describe('the time to adapt', () => {
  test('the time to adapt is that until the gain which stays is there; where none stays there is none', () => {
    const results = [1, 2].flatMap((seed) => [run('default', seed), run('learned', seed)]);
    const [first, second] = adaptationSpeed(results, suite, 'learned');
    expect([first!.part, first!.seconds]).toEqual(['a', undefined]);
    expect(second!.part).toBe('b');
    expect(Math.exp(second!.steady)).toBeCloseTo(0.8, 6);
    expect(second!.seconds).toBe(40);
  });
});
