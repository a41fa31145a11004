// What a comparison has found so far.
import type { Decision } from './ext-proc.ts';

/** Scores this close are a tie: llm-d-router's pickers choose by chance then. */
const TIE = 1e-6;
/** Scores are 32-bit numbers here and 64-bit numbers there. */
const SAME_SCORE = 1e-4;

export type Verdict = 'identical' | 'different' | 'tied';

export class Tally {
  readonly #byChance: boolean;
  requests = 0;
  /** Requests whose best score one endpoint has alone, by llm-d-router's own scores. */
  unique = 0;
  identical = 0;
  scored = 0;
  sameScores = 0;
  furthest = 0;
  readonly differences: string[] = [];

  /** @param byChance the picker draws lots: only the scores can be compared */
  constructor(byChance: boolean) {
    this.#byChance = byChance;
  }

  /** @param free the request was free to go anywhere */
  add(theirs: Decision, ours: Decision, free: boolean): Verdict {
    this.requests++;
    this.#compareScores(theirs, ours);
    const same = theirs.destination === ours.destination;
    if (!free) return same ? 'identical' : this.#differs(theirs, ours);
    if (this.#byChance || isTied(theirs)) return same ? 'identical' : 'tied';
    this.unique++;
    if (!same) return this.#differs(theirs, ours);
    this.identical++;
    return 'identical';
  }

  #compareScores({ scores }: Decision, ours: Decision): void {
    if (scores.size === 0 || ours.scores.size === 0) return;
    this.scored++;
    let furthest = scores.size === ours.scores.size ? 0 : Number.POSITIVE_INFINITY;
    for (const [address, score] of scores) {
      furthest = Math.max(furthest, Math.abs(score - (ours.scores.get(address) ?? Number.POSITIVE_INFINITY)));
    }
    this.furthest = Math.max(this.furthest, furthest);
    if (furthest < SAME_SCORE) this.sameScores++;
  }

  #differs(theirs: Decision, ours: Decision): Verdict {
    if (this.differences.length < 5) this.differences.push(`${shown(theirs)} | ${shown(ours)}`);
    return 'different';
  }
}

function isTied({ scores }: Decision): boolean {
  const [first, second] = [...scores.values()].sort((a, b) => b - a);
  return second !== undefined && first! - second < TIE;
}

function shown({ destination, scores }: Decision): string {
  const best = [...scores].sort(([, a], [, b]) => b - a).slice(0, 3);
  return `${destination} (${best.map(([address, score]) => `${address} ${score.toFixed(5)}`).join(', ')})`;
}
