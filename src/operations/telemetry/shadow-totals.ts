import type { CoreInstance } from '../../core/memory.js';
import { shadowKind } from './metric-table.js';
import { SeriesReader } from './series-block.js';

/** Sums over the decisions that a candidate configuration made too. */
export interface ShadowSums {
  readonly decisions: number;
  /** Requests for which the candidate picked another endpoint, or none. */
  readonly different: number;
  /** Requests for which the candidate had no endpoint; they add no cost. */
  readonly unplaced: number;
  /** Predicted costs of the picks of both, in targets of the request. */
  readonly runningCost: number;
  readonly candidateCost: number;
}

const NO_DECISIONS: ShadowSums = { decisions: 0, different: 0, unplaced: 0, runningCost: 0, candidateCost: 0 };

/** Reads the counts of the candidate configuration of all shards. Control thread only. */
export class ShadowTotals {
  readonly #cells: Float64Array;
  readonly #readers: readonly SeriesReader[];
  readonly #known: { readonly objective: string; readonly base: number }[] = [];
  #before: ReadonlyMap<string, ShadowSums> = new Map();

  constructor(core: CoreInstance) {
    this.#cells = core.f64;
    this.#readers = Array.from({ length: core.sizes.threads }, (_, thread) => new SeriesReader(core, thread));
  }

  /** Counts from now on, for another version of the candidate. */
  restart(): void {
    this.#before = this.#sums();
  }

  /** Sums by objective since the last restart; objectives without a decision are left out. */
  read(): ReadonlyMap<string, ShadowSums> {
    const since = [...this.#sums()].map(
      ([objective, sums]) => [objective, minus(sums, this.#before.get(objective) ?? NO_DECISIONS)] as const,
    );
    return new Map(since.filter(([, { decisions }]) => decisions > 0));
  }

  #sums(): Map<string, ShadowSums> {
    this.#discover();
    const sums = new Map<string, ShadowSums>();
    for (const { objective, base } of this.#known) {
      sums.set(objective, plus(sums.get(objective) ?? NO_DECISIONS, this.#at(base)));
    }
    return sums;
  }

  #discover(): void {
    for (const reader of this.#readers) {
      for (const { kind, values, base } of reader.fresh()) {
        if (kind === shadowKind) this.#known.push({ objective: values[0]!, base });
      }
    }
  }

  #at(base: number): ShadowSums {
    const { decisions, different, none, runningCost, candidateCost } = shadowKind.at;
    const cell = ({ offset }: { readonly offset: number }) => this.#cells[base + offset]!;
    return {
      decisions: cell(decisions),
      different: cell(different),
      unplaced: cell(none),
      runningCost: cell(runningCost),
      candidateCost: cell(candidateCost),
    };
  }
}

/** The sums of two objectives or threads together. */
export function plus(one: ShadowSums, other: ShadowSums): ShadowSums {
  return {
    decisions: one.decisions + other.decisions,
    different: one.different + other.different,
    unplaced: one.unplaced + other.unplaced,
    runningCost: one.runningCost + other.runningCost,
    candidateCost: one.candidateCost + other.candidateCost,
  };
}

function minus(one: ShadowSums, other: ShadowSums): ShadowSums {
  return plus(one, {
    decisions: -other.decisions,
    different: -other.different,
    unplaced: -other.unplaced,
    runningCost: -other.runningCost,
    candidateCost: -other.candidateCost,
  });
}
