import { plus, type ShadowSums } from '../telemetry/shadow-totals.js';
import type { CandidateShown, ComparisonShown } from './snapshot.js';

/** Bound on the objectives of a snapshot. */
const OBJECTIVES_MAX = 20;

/** State of the candidate configuration, from the control thread. */
export interface CandidateState {
  readonly file: string;
  readonly every: number;
  /** Milliseconds of the pool clock at which its programs began to decide. */
  readonly sinceMs: number;
  /** Reason why it no longer decides; undefined = it decides. */
  readonly stopped: string | undefined;
}

/**
 * The candidate configuration beside the running one, for the page.
 * @param sums by objective, since its programs began to decide
 */
export function candidateShown(
  { file, every, sinceMs, stopped }: CandidateState,
  sums: ReadonlyMap<string, ShadowSums>,
  nowMs: number,
): CandidateShown {
  const objectives = [...sums].sort(([, a], [, b]) => b.decisions - a.decisions);
  return {
    file,
    every,
    seconds: Math.round((nowMs - sinceMs) / 1000),
    stopped: stopped ?? null,
    all: objectives.length === 0 ? null : comparison(objectives.map(([, each]) => each).reduce(plus)),
    objectives: objectives.slice(0, OBJECTIVES_MAX).map(([objective, each]) => ({ objective, ...comparison(each) })),
  };
}

function comparison({ decisions, different, unplaced, runningCost, candidateCost }: ShadowSums): ComparisonShown {
  const placed = decisions - unplaced;
  return {
    decisions,
    different: different / decisions,
    unplaced,
    runningCost: placed === 0 ? null : runningCost / placed,
    candidateCost: placed === 0 ? null : candidateCost / placed,
  };
}
