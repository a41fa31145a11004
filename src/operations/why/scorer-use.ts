import type { ScorerUse } from '../health-report.js';

/** Scores of a decision: of each candidate by each scorer, before the weights. */
export interface CandidateScores {
  readonly scorers: readonly { readonly name: string; readonly weight: number }[];
  readonly candidates: readonly {
    readonly picked: boolean;
    /** In the order of `scorers`; undefined = the scorer did not run. */
    readonly scores: readonly (number | undefined)[];
  }[];
}

/** Counts for each scorer the decisions with different scores, and those in which the pick depends on it. */
export class ScorerUses {
  readonly #uses = new Map<string, { decisions: number; apart: number; decided: number }>();

  get uses(): readonly ScorerUse[] {
    return [...this.#uses].map(([scorer, use]) => ({ scorer, ...use }));
  }

  add({ scorers, candidates }: CandidateScores): void {
    if (candidates.length < 2) return;
    for (const [index, { name }] of scorers.entries()) {
      const scores = candidates.map((each) => each.scores[index]);
      if (scores.includes(undefined)) continue;
      const use = this.#uses.get(name) ?? { decisions: 0, apart: 0, decided: 0 };
      use.decisions++;
      if (scores.some((score) => score !== scores[0])) use.apart++;
      if (!staysBest({ scorers, candidates }, index)) use.decided++;
      this.#uses.set(name, use);
    }
  }
}

/**
 * Whether the pick is as good without a scorer: no candidate scores higher then, and none that scored lower has come
 * level, as a tie goes to another one by load or by lot.
 */
function staysBest({ scorers, candidates }: CandidateScores, without: number): boolean {
  const picked = candidates.findIndex((each) => each.picked);
  if (picked < 0) return true;
  const sums = candidates.map(({ scores }) => sumOf(scorers, scores));
  const rests = candidates.map(({ scores }) => sumOf(scorers, scores, without));
  return rests.every((rest, index) => {
    if (rest > rests[picked]! + ROUNDING) return false;
    return rest < rests[picked]! - ROUNDING || sums[index]! >= sums[picked]! - ROUNDING;
  });
}

/** Weighted sum of a candidate's scores, leaving out one scorer. */
function sumOf(scorers: CandidateScores['scorers'], scores: readonly (number | undefined)[], without?: number): number {
  return scorers.reduce((sum, { weight }, index) => sum + (index === without ? 0 : weight * (scores[index] ?? 0)), 0);
}

/** Scores are kept as 32-bit floats. */
const ROUNDING = 1e-5;
