import { describe, expect, it } from 'vitest';
import { converse, moved, type Served } from './conversations.ts';

/** Fresh starts. */
const STARTS = 10;

/** Decisions in which the scores of queue-scorer differ though no endpoint had a request waiting at its last scrape. */
function phantomQueues(conversations: readonly Served[]): number {
  const decisions = conversations.flat().flatMap(({ story }) => story.decisions);
  return decisions.filter(({ endpoints }) => {
    if (endpoints === null) throw new Error('a decision was not explained');
    if (endpoints.some(({ waiting }) => (waiting ?? 0) > 0)) return false;
    const scores = endpoints.map((each) => each.scores.find(({ scorer }) => scorer === 'queue-scorer')?.score);
    return new Set(scores).size > 1;
  }).length;
}

describe('conversations on a pool with room', () => {
  it('conversations on a pool far below its limits stay where their prefix is, and no queue is made up', {
    timeout: 30_000 * STARTS,
  }, async () => {
    const starts: { readonly moved: number; readonly phantoms: number }[] = [];
    for (let seed = 1; seed <= STARTS; seed++) {
      const served = await converse({ servers: 3, conversations: 24, turns: 4, atOnce: 9, seed });
      starts.push({ moved: moved(served), phantoms: phantomQueues(served) });
    }
    const told = JSON.stringify(starts);
    expect(Math.max(...starts.map((each) => each.moved)), told).toBeLessThanOrEqual(2);
    expect(Math.max(...starts.map((each) => each.phantoms)), told).toBe(0);
  });
});
