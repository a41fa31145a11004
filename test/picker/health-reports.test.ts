import { afterEach, describe, expect, it, vi } from 'vitest';
import { DecisionLog, DecisionTrail } from '../../dist/src/core/index.js';
import { RequestStories } from '../../dist/src/operations/why/request-story.js';
import { SeriesLabels } from '../../dist/src/operations/why/series-labels.js';
import { readScorers } from '../../dist/src/picker/control/health-reports.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from '../core/pool.ts';

afterEach(() => vi.restoreAllMocks());

const PROFILE = [scorer('OP_SCORE_QUEUE', 2), pickMax];
const SIGNALS = [{ waiting: 4 }, { waiting: 0 }, { waiting: 2 }];

/** A picker's log after so many decisions, each with its columns. */
function decided(count: number) {
  const { control, core, decider } = makePool(PROFILE, SIGNALS, { ...smallSizes, decisions: 1_024 });
  const trail = new DecisionTrail(core, 1);
  for (let i = 0; i < count; i++) {
    trail.begin(`request ${i}`, false);
    decider.decide({ ...plainRequest, charged: false });
  }
  const log = new DecisionLog(control);
  const stories = new RequestStories({
    log,
    labels: new SeriesLabels(control),
    endpointOf: (slot) => `server ${slot}`,
    profiles: () => [
      { name: 'default', operations: PROFILE.map((operation) => ({ ...operation, name: operation.code })) },
    ],
    room: () => ({ detector: 'utilization-detector', learns: false, saturation: () => 0 }),
    wallMs: (ms) => ms,
  });
  return { log, stories };
}

/** Time of the last decision on the pool's clock. */
const lastMs = ({ log }: ReturnType<typeof decided>) => log.recent(1)[0]!.timeMs;

describe('the use of the scorers in the health report', () => {
  it('the use of the scorers is counted over the last 100 decisions whose columns are kept', async () => {
    const sources = decided(130);
    const uses = await readScorers(sources, lastMs(sources));
    expect(uses).toEqual([{ scorer: 'OP_SCORE_QUEUE', decisions: 100, apart: 100, decided: 100 }]);
  });

  it('the use of the scorers is that of the last minute', async () => {
    const sources = decided(30);
    const madeAtMs = lastMs(sources);
    expect(await readScorers(sources, madeAtMs + 59_000)).toEqual([expect.objectContaining({ decisions: 30 })]);
    expect(await readScorers(sources, madeAtMs + 61_000)).toEqual([]);
  });

  it('the use of the scorers is read without a search of the whole log', async () => {
    const sources = decided(50);
    const nowMs = lastMs(sources);
    const find = vi.spyOn(sources.log, 'find');
    const recent = vi.spyOn(sources.log, 'recent');
    expect(await readScorers(sources, nowMs)).not.toEqual([]);
    expect([find.mock.calls.length, recent.mock.calls.length]).toEqual([0, 0]);
  });

  it('the use of the scorers is read in several turns of the event loop where one has no time for it', async () => {
    const sources = decided(30);
    const nowMs = lastMs(sources);
    let now = 0;
    // Every look at the clock finds a slice used up.
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 1));
    let turns = 0;
    const turn = () => {
      turns++;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    await readScorers(sources, nowMs).finally(() => clearImmediate(next));
    expect(turns).toBeGreaterThanOrEqual(29);
  });
});
