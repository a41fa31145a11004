import type { LoggedEndpoint } from '../../core/decision-columns.js';

/** Rule by which the pick was chosen among candidates with the same score. */
export interface TieBreak {
  /** Candidates with the highest score. */
  readonly tied: number;
  /** Rule that decided between them; `score`: there was one only. */
  readonly by: 'score' | 'known signals' | 'requests in flight' | 'lot';
}

/** Scores are sums of 32-bit numbers; what differs by less is equal to the picker's eye. */
const SAME_SCORE = 1e-6;

/** The rule of the pickers: known signals first, then the fewest requests in flight, then by lot. */
export function tieBreakOf(endpoints: readonly LoggedEndpoint[]): TieBreak | undefined {
  const pick = endpoints.find(({ rank }) => rank === 1);
  if (pick?.score === undefined) return undefined;
  const { score } = pick;
  const tied = endpoints.filter(
    (endpoint) => endpoint.removed === undefined && Math.abs((endpoint.score ?? Number.NaN) - score) < SAME_SCORE,
  );
  if (tied.length <= 1) return { tied: 1, by: 'score' };
  const known = tied.filter((endpoint) => isKnown(endpoint) === isKnown(pick));
  if (known.length === 1) return { tied: tied.length, by: 'known signals' };
  const fewest = known.filter(({ inflight }) => inflight === pick.inflight);
  return { tied: tied.length, by: fewest.length === 1 ? 'requests in flight' : 'lot' };
}

function isKnown({ waiting, kvUsage }: LoggedEndpoint): boolean {
  return waiting !== undefined || kvUsage !== undefined;
}
