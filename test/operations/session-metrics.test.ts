import { describe, expect, it } from 'vitest';
import type { SessionCounts } from '../../dist/src/core/session-ledger.js';
import { addSessionMetrics, type SessionFigures } from '../../dist/src/operations/metrics/session-metrics.js';
import { MetricsExposition } from '../../dist/src/operations/telemetry/exposition.js';
import { makePool, pickMax } from '../core/pool.ts';

const COUNTS: SessionCounts = {
  recognised: { prompt: 1, header: 2, new: 3, fork: 4, uncounted: 5 },
  splits: { rewritten: 1, merged: 2, renamed: 3 },
  looks: { protected: 1, room: 2, none: 3, small: 4 },
  lapsed: { 'given-up': 6, forgotten: 7, ended: 8 },
  recomputed: { lapsed: 1, lost: 2, moved: 3 },
  found: 9,
  forced: 10,
  released: { protected: 11, lapsed: 12, new: 13 },
  held: { protected: 14, lapsed: 15, new: 16 },
};

const FIGURES: SessionFigures = {
  sessionCounts: () => COUNTS,
  heldTurns: () => 2,
  held: () => undefined,
  keptSeconds: () => [1, 2, Number.POSITIVE_INFINITY],
  sessionTally: () => ({
    running: 1,
    idle: 2,
    lapsed: 3,
    active: 4,
    meanTokens: 500,
    fit: 7.5,
    endpoints: [
      { slot: 0, capacity: 1_000, used: 250, protected: 200 },
      { slot: 1, capacity: 0, used: 10, protected: 10 },
      { slot: 2, capacity: 1_000, used: 1, protected: 1 },
    ],
  }),
  longestHoldSeconds: () => 300,
  sessionPauses: () => ({
    buckets: [
      { upTo: 0.5, count: 1 },
      { upTo: 0.675, count: 3 },
      { upTo: Number.POSITIVE_INFINITY, count: 4 },
    ],
    sum: 12.5,
    count: 4,
  }),
};

/** The lines of a page about sessions. */
async function lines(figures: SessionFigures): Promise<readonly string[]> {
  const exposition = new MetricsExposition({
    core: makePool([pickMax], [{}]).control,
    poolName: 'pool',
    endpointOf: () => undefined,
    streamMetrics: false,
    build: undefined,
    processMetrics: false,
  });
  // The endpoint of slot 2 has left.
  addSessionMetrics(exposition, { ...figures }, (slot) => ['pod-a', 'pod-b'][slot]);
  const page = await exposition.text();
  return page.split('\n').filter((line) => /session|thunder_agent/.test(line) && !line.startsWith('# HELP'));
}

describe('metrics of sessions', () => {
  it('metrics of sessions have the names and labels of llm-d-router’s thunder-agent', async () => {
    const family = 'llm_d_epp_thunder_agent_';
    const found = await lines(FIGURES);
    for (const line of [
      'endpoint_working_set_tokens{endpoint="pod-a"} 250',
      'endpoint_capacity_tokens{endpoint="pod-a"} 1000',
      'sessions{state="running"} 1',
      'sessions{state="idle"} 2',
      'sessions{state="paused"} 3',
      'releases_total{class="admitted"} 11',
      'releases_total{class="paused"} 12',
      'releases_total{class="new"} 13',
      'holds_total{class="admitted"} 14',
      'holds_total{class="paused"} 15',
      'holds_total{class="new"} 16',
      'pauses_total 6',
      'resumes_total 12',
      'starvation_promotions_total 10',
    ]) {
      expect(found).toContain(`${family}${line}`);
    }
    expect(found.filter((line) => line.includes('pod-b'))).toEqual([]);
  });

  it('metrics of sessions tell how many are active, and how many of their size fit', async () => {
    const found = await lines(FIGURES);
    expect(found).toContain('pointsman_session_active 4');
    expect(found).toContain('pointsman_session_mean_tokens 500');
    expect(found).toContain('pointsman_session_fit 7.5');
    expect(found).toContain('pointsman_session_max_wait_seconds 300');
    expect(found).toContain('pointsman_session_used_ratio{endpoint="pod-a"} 0.25');
    expect(found).toContain('pointsman_session_splits_total{cause="renamed"} 3');
    expect(found).toContain('pointsman_session_lapsed_total{cause="ended"} 8');
  });

  it('metrics of sessions have the pauses between turns as a histogram', async () => {
    const found = (await lines(FIGURES)).filter((line) => line.includes('return_seconds'));
    expect(found).toEqual([
      '# TYPE pointsman_session_return_seconds histogram',
      'pointsman_session_return_seconds_bucket{le="0.5"} 1',
      'pointsman_session_return_seconds_bucket{le="0.675"} 3',
      'pointsman_session_return_seconds_bucket{le="+Inf"} 4',
      'pointsman_session_return_seconds_sum 12.5',
      'pointsman_session_return_seconds_count 4',
    ]);
  });

  it('metrics of sessions have no series while sessions are not counted', async () => {
    const off: SessionFigures = {
      ...FIGURES,
      sessionCounts: () => undefined,
      heldTurns: () => undefined,
      keptSeconds: () => [],
      sessionTally: () => undefined,
      longestHoldSeconds: () => undefined,
      sessionPauses: () => undefined,
    };
    // A metric without labels stays at 0.
    const series = (await lines(off)).filter((line) => !line.startsWith('#') && !line.endsWith(' 0'));
    expect(series).toEqual([]);
  });
});
