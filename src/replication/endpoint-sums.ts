import type { LoadRow } from './messages.js';

/** Load of all live peers on an endpoint. */
export type LoadSum = Omit<LoadRow, 'endpoint'>;

/** Load of one peer on an endpoint. */
export interface Row {
  /** Number of its update. */
  sequence: number;
  load: LoadRow;
  /** Requests of `load.charged` that have been added to the sum. */
  told: number;
  /** Whether `load` is in the sum. */
  counts: boolean;
  readonly sum: EndpointSum;
}

type Mutable<Part> = { -readonly [Field in keyof Part]: Part[Field] };

interface EndpointSum extends Mutable<LoadSum> {
  /** Rows of peers that name the endpoint. */
  rows: number;
  changed: boolean;
}

/** Bound on a sum of loads: what the columns of the core hold. */
const SUM_MAX = 2 ** 31 - 1;
const NONE_CHANGED: readonly bigint[] = [];
const NONE: LoadSum = { requests: 0, tokens: 0, prefill: 0, prompt: 0, output: 0, pending: 0, held: 0, charged: 0 };

/**
 * Sums of the rows of all peers by endpoint. A row that changes moves its sum by the difference, so the work does not
 * grow with the number of peers. The sums are exact: a row is a whole number below 2^31, and there are few peers.
 */
export class EndpointSums {
  readonly #sums = new Map<bigint, EndpointSum>();
  #changed: bigint[] = [];

  /** A row of another peer, not yet in the sum. */
  open(load: LoadRow): Row {
    let sum = this.#sums.get(load.endpoint);
    if (sum === undefined) {
      sum = { ...NONE, rows: 0, changed: false };
      this.#sums.set(load.endpoint, sum);
    }
    sum.rows++;
    return { sequence: 0, load, told: 0, counts: false, sum };
  }

  /** Replaces the load of a row, and says whether it is in the sum. */
  set(row: Row, load: LoadRow, counts: boolean): void {
    const { sum } = row;
    if (row.counts) add(sum, row.load, -1);
    row.load = load;
    row.counts = counts;
    if (counts) {
      add(sum, load, 1);
      sum.charged += Math.max(0, load.charged - row.told);
      row.told = Math.max(row.told, load.charged);
    }
    this.#note(load.endpoint, sum);
  }

  /** Takes a row out of its sum for good. */
  drop(endpoint: bigint, { sum, load, counts }: Row): void {
    if (counts) add(sum, load, -1);
    sum.rows--;
    this.#note(endpoint, sum);
  }

  /** Endpoints that `takeChanged` would return: those without a row are kept until then. */
  get changed(): number {
    return this.#changed.length;
  }

  /** Endpoints whose sum may have changed since the last call. */
  takeChanged(): readonly bigint[] {
    if (this.#changed.length === 0) return NONE_CHANGED;
    const changed = this.#changed;
    this.#changed = [];
    for (const endpoint of changed) {
      const sum = this.#sums.get(endpoint);
      if (sum === undefined) continue;
      sum.changed = false;
      if (sum.rows === 0) this.#sums.delete(endpoint);
    }
    return changed;
  }

  /** The sum of an endpoint; `charged` counts the requests sent there since the last call. */
  take(endpoint: bigint): LoadSum {
    const sum = this.#sums.get(endpoint);
    if (sum === undefined) return NONE;
    const { requests, tokens, prefill, prompt, output, pending, held, charged } = sum;
    sum.charged = 0;
    const rest = { output: bounded(output), pending: bounded(pending), held: bounded(held), charged: bounded(charged) };
    return {
      requests: bounded(requests),
      tokens: bounded(tokens),
      prefill: bounded(prefill),
      prompt: bounded(prompt),
      ...rest,
    };
  }

  #note(endpoint: bigint, sum: EndpointSum): void {
    if (sum.changed) return;
    sum.changed = true;
    this.#changed.push(endpoint);
  }
}

function add(sum: EndpointSum, load: LoadRow, sign: 1 | -1): void {
  sum.requests += sign * load.requests;
  sum.tokens += sign * load.tokens;
  sum.prefill += sign * load.prefill;
  sum.prompt += sign * load.prompt;
  sum.output += sign * load.output;
  sum.pending += sign * load.pending;
  sum.held += sign * load.held;
}

function bounded(sum: number): number {
  return Math.min(SUM_MAX, sum);
}
