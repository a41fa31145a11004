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

/** Counts for each scorer the decisions with different scores, and those whose pick it changed. */
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

/** Whether the pick is among the highest scores without a scorer. */
function staysBest({ scorers, candidates }: CandidateScores, without: number): boolean {
  const sums = candidates.map(({ scores }) =>
    scorers.reduce((sum, { weight }, index) => sum + (index === without ? 0 : weight * (scores[index] ?? 0)), 0),
  );
  const picked = candidates.findIndex((each) => each.picked);
  return picked < 0 || sums[picked]! >= Math.max(...sums) - ROUNDING;
}

/** Scores are kept as 32-bit floats. */
const ROUNDING = 1e-5;
