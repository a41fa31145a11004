import { describe, expect, it } from 'vitest';
import type { FairnessSettings, OrderingSettings } from '../../../dist/admission/flow/settings.js';
import { simulate } from './simulation.js';

/** POINTSMAN_STRESS=50 plays fifty times as much, POINTSMAN_REPLAY=seed one history. */
const STRESS = Number(process.env.POINTSMAN_STRESS ?? 1);
const REPLAY = process.env.POINTSMAN_REPLAY;
const EVENTS = 600;
const HISTORIES = Math.ceil(2 * STRESS);

const WEIGHTS = { f0: 2, f1: 0.5 };
const FAIRNESS: readonly FairnessSettings[] = [
  { kind: 'global-strict' },
  { kind: 'round-robin' },
  { kind: 'program-aware', serviceWeight: 0.8, headWaitWeight: 0.2, halfLifeMs: 300 },
  { kind: 'start-time', weights: WEIGHTS },
  { kind: 'deficit-round-robin', weights: WEIGHTS, quantumTokens: 100 },
];
const ORDERINGS: readonly OrderingSettings[] = [
  { kind: 'arrival' },
  { kind: 'deadline' },
  { kind: 'first-token-objective' },
  { kind: 'shortest-first', msPerToken: 5, ageBoundMs: 150 },
];
const POLICIES = FAIRNESS.flatMap((fairness) => ORDERINGS.map((ordering) => ({ fairness, ordering })));

describe('the queues do what the plain model says, event by event', () => {
  it.each(POLICIES)('$fairness.kind, $ordering.kind', ({ fairness, ordering }) => {
    const seeds = REPLAY === undefined ? Array.from({ length: HISTORIES }, (_, i) => 1000 * i + 7) : [Number(REPLAY)];
    const sums = { granted: 0, expired: 0, cancelled: 0, requeued: 0 };
    for (const seed of seeds) {
      const outcome = simulate({ seed, events: EVENTS, fairness, ordering, sticky: seed > 1_000 });
      for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += outcome[key];
    }
    // A history in which nothing happened would prove nothing.
    for (const count of Object.values(sums)) expect(count).toBeGreaterThan(10);
  });
});
