import type { ScorerUse } from '../health-report.js';
import type { ShownDecision, ShownEndpoint } from './request-story.js';

/** Counts for each scorer the decisions in which its scores differed, and those in which it changed the pick. */
export function scorerUse(decisions: readonly ShownDecision[]): readonly ScorerUse[] {
  const uses = new Map<string, { decisions: number; apart: number; decided: number }>();
  for (const { endpoints } of decisions) {
    const candidates = (endpoints ?? []).filter(({ removedBy }) => removedBy === null);
    if (candidates.length < 2) continue;
    for (const [index, { scorer }] of candidates[0]!.scores.entries()) {
      const scores = candidates.map((each) => each.scores[index]?.score ?? null);
      if (scores.includes(null)) continue;
      const use = uses.get(scorer) ?? { decisions: 0, apart: 0, decided: 0 };
      use.decisions++;
      if (scores.some((score) => score !== scores[0])) use.apart++;
      if (!staysBest(candidates, index)) use.decided++;
      uses.set(scorer, use);
    }
  }
  return [...uses].map(([scorer, use]) => ({ scorer, ...use }));
}

/** Whether the pick is among the highest scores without a scorer. */
function staysBest(candidates: readonly ShownEndpoint[], without: number): boolean {
  const sums = candidates.map(({ scores }) =>
    scores.reduce((sum, { weight, score }, index) => sum + (index === without ? 0 : weight * (score ?? 0)), 0),
  );
  const picked = candidates.findIndex(({ rank }) => rank === 1);
  return picked < 0 || sums[picked]! >= Math.max(...sums) - ROUNDING;
}

/** Scores are kept as 32-bit floats. */
const ROUNDING = 1e-5;
