import { describe, expect, it } from 'vitest';
import type { FairnessSettings, OrderingSettings } from '../../dist/src/contract/queue-settings.js';
import type { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { type Counts, simulate, type World } from './simulation.ts';

/** POINTSMAN_STRESS=50 plays fifty times as much, POINTSMAN_REPLAY=seed one history of each pair of policies. */
const STRESS = Number(process.env.POINTSMAN_STRESS ?? 1);
const REPLAY = process.env.POINTSMAN_REPLAY;
const EVENTS = 1_500;
const HISTORIES = Math.ceil(2 * STRESS);

const WEIGHTS = { f0: 2, f1: 0.5 };
const FAIRNESS: readonly FairnessSettings[] = [
  { kind: 'global-strict' },
  { kind: 'round-robin' },
  { kind: 'program-aware', serviceWeight: 0.8, headWaitWeight: 0.2, halfLifeMs: 300 },
  { kind: 'start-time', weights: WEIGHTS },
  { kind: 'deficit-round-robin', weights: WEIGHTS, quantumTokens: 100 },
  { kind: 'turn-priority', timeWeight: 4, inactivityMs: 200, forgetMs: 400_000 },
];
const ORDERINGS: readonly OrderingSettings[] = [
  { kind: 'arrival' },
  { kind: 'deadline' },
  { kind: 'first-token-objective' },
  { kind: 'shortest-first', msPerToken: 5, ageBoundMs: 150 },
];
const POLICIES = FAIRNESS.flatMap((fairness) => ORDERINGS.map((ordering) => ({ fairness, ordering })));
const OTHERS = [
  ...POLICIES,
  { fairness: { kind: 'start-time', weights: {} } as const, ordering: ORDERINGS[0]! },
  { fairness: { kind: 'deficit-round-robin', weights: {}, quantumTokens: 30 } as const, ordering: ORDERINGS[3]! },
];

/** Histories of a world; with POINTSMAN_REPLAY that one. @returns how often each thing happened in all of them */
function play(world: Omit<World, 'seed' | 'events' | 'others'>, histories: number): Counts {
  const seeds = REPLAY === undefined ? Array.from({ length: histories }, (_, i) => 1_000 * i + 7) : [Number(REPLAY)];
  const all = seeds.map((seed) => simulate({ ...world, seed, events: EVENTS, others: OTHERS }));
  const sums = { ...all[0]! };
  for (const counts of all.slice(1))
    for (const name of Object.keys(sums) as (keyof Counts)[]) sums[name] += counts[name];
  return sums;
}

/** A history in which nothing happened would prove nothing. */
function expectEnough({
  dispatched,
  refused,
  expired,
  cancelled,
  requeued,
  endpointsGone,
  shardsDied,
  reloads,
}: Counts) {
  for (const count of [dispatched, refused, expired, cancelled, requeued]) expect(count).toBeGreaterThan(10);
  for (const count of [endpointsGone, shardsDied, reloads]) expect(count).toBeGreaterThan(0);
}

describe('the queues do what the plain model says, event by event', () => {
  it.each(POLICIES)('$fairness.kind, $ordering.kind', (policies) => {
    expectEnough(play({ ...policies, sticky: false, crowded: false }, HISTORIES / 2));
    expectEnough(play({ ...policies, sticky: true, crowded: false }, HISTORIES / 2));
  });

  it.each(FAIRNESS)('$kind, with more sets of candidates than there are classes', (fairness) => {
    expectEnough(play({ fairness, ordering: ORDERINGS[0]!, sticky: true, crowded: true }, HISTORIES));
  });
});

/** A machine that does not hear of something, under a name that says what it does wrong. */
const FAULTS: Readonly<Record<string, (machine: QueueMachine) => void>> = {
  'sleeps on when an endpoint opens': (machine) => {
    machine.opened = () => undefined;
  },
  'goes on waiting for an endpoint that has left': (machine) => {
    machine.endpointGone = () => undefined;
  },
  'forgets what a running request has used': (machine) => {
    machine.progress = () => undefined;
  },
  'cannot cancel any more after a while': (machine) => {
    const { cancel } = machine;
    let calls = 0;
    machine.cancel = (...call) => (++calls > 5 ? false : cancel.apply(machine, call));
  },
  'keeps its old settings': (machine) => {
    machine.configure = () => true;
  },
};

describe.skipIf(REPLAY !== undefined)('the simulation notices a machine that', () => {
  const world = { fairness: FAIRNESS[3]!, ordering: ORDERINGS[0]!, sticky: true, crowded: false, others: OTHERS };

  /** What the history says about a fault. */
  function found(fault: string): string {
    try {
      simulate({ ...world, seed: 7, events: EVENTS, fault: FAULTS[fault]! });
    } catch (error) {
      return (error as Error).message;
    }
    return 'nothing';
  }

  it.each(Object.keys(FAULTS))('%s, and plays the history again', (fault) => {
    expect(found(fault)).toMatch(/^seed 7 \(POINTSMAN_REPLAY=7 plays it again\): .+ at event \d+$/);
    expect(found(fault)).toBe(found(fault));
  });
});
