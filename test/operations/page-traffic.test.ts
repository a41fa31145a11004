import { describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../dist/src/core/decision-log.js';
import { objectiveNames } from '../../dist/src/operations/page/objective-names.js';
import { Traffic } from '../../dist/src/operations/page/traffic.js';

/** A decision with this tag and priority; the rest does not count here. */
function decision(tag: number, priority = 0, status: DecisionRecord['status'] = 'decided'): DecisionRecord {
  return { tag, priority, status, further: false, end: 'completed', firstOutputMs: 5, durationMs: 9 } as DecisionRecord;
}

describe('figures of traffic', () => {
  it('decisions are shared out among configured weights and learned costs by the epoch that they were made in', () => {
    const arms = new Map([
      [7, 'static'],
      [8, 'learned'],
    ] as const);
    const records = [decision(7), decision(8), decision(8), decision(8), decision(3), decision(7, 0, 'undecided')];
    expect(new Traffic(records).deciders((tag) => arms.get(tag as 7 | 8))).toEqual({ configured: 0.25, learned: 0.75 });
  });

  it('decisions without a known epoch have no shares', () => {
    expect(new Traffic([decision(3)]).deciders(() => undefined)).toBeNull();
  });

  it('a point has the cached part of the prompts that engines told, and what was expected where none told', () => {
    const record = (told: Partial<DecisionRecord>): DecisionRecord => {
      const prompt = { promptTokens: 1_000, matchedBlocks: 10, blockTokens: 64, timeMs: 0 };
      return { ...decision(1), ...prompt, ...told };
    };
    const untold = record({});
    const told = record({ enginePromptTokens: 1_000, cachedTokens: 250 });
    expect(new Traffic([untold]).point(100, 0).hitRate).toBe(0.64);
    expect(new Traffic([untold, told]).point(100, 0).hitRate).toBe(0.25);
    const laterUntold = record({ timeMs: 60_000 });
    expect(new Traffic([laterUntold, told]).point(60_100, 0).hitRate).toBeNull();
  });

  it('priorities have the names of their objectives', () => {
    const names = objectiveNames([
      ['chat', 10],
      ['batch', -10],
    ]);
    const shown = new Traffic([decision(1, 10), decision(1, 0)]).priorities(names);
    expect(shown.map(({ priority, objectives }) => [priority, objectives])).toEqual([
      [10, ['chat']],
      [0, []],
    ]);
  });

  it('a priority of many objectives has three names and the number of the others', () => {
    const names = objectiveNames(['e', 'd', 'c', 'b', 'a'].map((name) => [name, 0] as const));
    expect(names.get(0)).toEqual(['a', 'b', 'c', '2 more']);
  });
});
