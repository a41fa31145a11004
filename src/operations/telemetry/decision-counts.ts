import type { CacheLoss, CacheLossCause } from '../../core/cache-loss.js';
import type { ShadowPick } from '../../core/decision-data.js';
import { cacheLossKind, NO_OBJECTIVE, shadowKind } from './metric-table.js';
import type { SeriesTable } from './series-table.js';

/** Counts of a shard's decisions by the cause of lost cache, and by the agreement with a candidate configuration. */
export class DecisionCounts {
  readonly #cells: Float64Array;
  readonly #series: SeriesTable;
  readonly #losses = new Map<CacheLossCause, number>();
  /** By objective. */
  readonly #shadows = new Map<string, number>();

  constructor(cells: Float64Array, series: SeriesTable) {
    this.#cells = cells;
    this.#series = series;
  }

  /** Counts the part of a prompt that was computed anew. */
  cacheLost({ cause, tokens }: CacheLoss): void {
    let base = this.#losses.get(cause);
    if (base === undefined) {
      base = this.#series.resolve(cacheLossKind, [cause]);
      this.#losses.set(cause, base);
    }
    this.#cells[base + cacheLossKind.at.requests.offset]! += 1;
    this.#cells[base + cacheLossKind.at.tokens.offset]! += tokens;
  }

  /**
   * Counts a decision that a shadow program made too.
   * @param named objective of the pool; undefined = none
   */
  shadowed(named: string | undefined, picked: number, shadow: Readonly<ShadowPick>): void {
    const objective = named ?? NO_OBJECTIVE;
    let base = this.#shadows.get(objective);
    if (base === undefined) {
      base = this.#series.resolve(shadowKind, [objective]);
      this.#shadows.set(objective, base);
    }
    const cells = this.#cells;
    const { at } = shadowKind;
    cells[base + at.decisions.offset]! += 1;
    if (shadow.slot !== picked) cells[base + at.different.offset]! += 1;
    if (shadow.state === 'none') {
      cells[base + at.none.offset]! += 1;
      return;
    }
    cells[base + at.runningCost.offset]! += shadow.pickCost;
    cells[base + at.candidateCost.offset]! += shadow.cost;
  }
}
