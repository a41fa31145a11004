// Suites of one drawn workload: the load that the default carries, the comparison at shares of it, and the guard.
import { type Suite, suiteSchema } from '../../dist/tools/simulator/suite/schema.js';
import { atLoad, atLoads } from '../adaptation-results/goal.ts';
import type { DrawnWorkload } from './draw.ts';

/** Shares of the load that the default carries. */
export const LOADS = [0.6, 0.85, 1.1] as const;
/** Load of the runs under the guard. */
export const GUARDED_LOAD = 0.85;
/** Rules that anybody can write down, of which the best in hindsight is a measure. */
export const SIMPLE_RULES = ['sticky', 'fewest-tokens', 'lmetric', 'least-request'] as const;

/** Requests of a run, and the fewest sessions that begin in it. */
const REQUESTS = 2500;
const ARRIVALS_MIN = 60;
/** The same of the usual rate in the search, whose lowest one has a quarter. */
const SEARCH_REQUESTS = 300;
const SECONDS_MAX = 1800;
const GUARDED_SECONDS = 600;
/** Share of the usual rate at which the search begins. */
export const LOWEST = 1 / 4;
/** Seed of the search; comparisons have others. */
const SEARCH_SEED = 51;
const FIRST_SEED = 101;

/** The highest rate at which enough of the default's requests meet both objectives, by bisection in steps of 6 %. */
export function limitSuite(drawn: DrawnWorkload): Suite {
  return suiteSchema.parse({
    fleet: drawn.fleet,
    workloads: [workloadAt(drawn, drawn.rate, secondsAt(drawn, drawn.rate, SEARCH_REQUESTS))],
    policies: [{ name: 'default' }],
    capacity: { goodput: drawn.goodput, from: LOWEST, to: 8, steps: 6 },
    firstSeed: SEARCH_SEED,
    seeds: 1,
  });
}

/** Learned costs, default and simple rules at shares of the default's limit. @param limit arrivals per second */
export function comparedSuite(drawn: DrawnWorkload, limit: number, seeds: number): Suite {
  const suite = suiteSchema.parse({
    fleet: drawn.fleet,
    workloads: [workloadAt(drawn, limit, secondsAt(drawn, limit, REQUESTS))],
    policies: ['default', 'learned', ...SIMPLE_RULES].map((name) => ({ name })),
    firstSeed: FIRST_SEED,
    seeds,
  });
  return atLoads(suite, LOADS);
}

/** `mode: auto` from a cold start beside the default, one seed. @param limit arrivals per second */
export function guardedSuite(drawn: DrawnWorkload, limit: number): Suite {
  return suiteSchema.parse({
    fleet: drawn.fleet,
    workloads: [workloadAt(drawn, limit * GUARDED_LOAD, GUARDED_SECONDS)],
    policies: [{ name: 'default' }, { name: 'guarded' }],
    firstSeed: FIRST_SEED,
    seeds: 1,
  });
}

/** Name of a drawn workload at a share of its limit. */
export function nameAt(drawn: DrawnWorkload, load: number): string {
  return atLoad(drawn.name, load);
}

function workloadAt({ name, kind, fields }: DrawnWorkload, rate: number, seconds: number) {
  return { name, kind, rate, seconds, ...fields };
}

function secondsAt({ requestsPerArrival, secondsMin }: DrawnWorkload, rate: number, requests: number): number {
  const wanted = Math.max(requests / (rate * requestsPerArrival), ARRIVALS_MIN / rate);
  return Math.round(Math.min(SECONDS_MAX, Math.max(secondsMin, wanted)));
}
