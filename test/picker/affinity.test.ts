import { describe, expect, it } from 'vitest';
import { converse, moved } from './conversations.ts';

/** Fresh starts; ten are measured with POINTSMAN_STARTS=10. */
const STARTS = Number(process.env.POINTSMAN_STARTS ?? 3);

describe('conversations on a pool with room', () => {
  it('conversations on a pool far below its limits stay where their prefix is', {
    timeout: 30_000 * STARTS,
  }, async () => {
    const counts: number[] = [];
    for (let seed = 1; seed <= STARTS; seed++) {
      counts.push(moved(await converse({ servers: 3, conversations: 24, turns: 4, atOnce: 9, seed })));
    }
    const middle = counts.toSorted((a, b) => a - b)[Math.floor(STARTS / 2)];
    expect(middle, `conversations moved, by start: ${counts.join(', ')}`).toBeLessThanOrEqual(2);
  });
});
