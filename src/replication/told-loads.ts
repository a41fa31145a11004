import type { LoadRow } from './messages.js';

/** The own load on each endpoint in the last report to peers. */
export class ToldLoads {
  readonly #told = new Map<bigint, LoadRow>();

  /**
   * Loads that peers do not know, or all but the empty ones.
   * @param rows own load on every endpoint, or on those at least on which it has changed
   * @param full `rows` has every endpoint, and peers are told all
   */
  changed(rows: Iterable<LoadRow>, full: boolean): LoadRow[] {
    const changed: LoadRow[] = [];
    const present = full ? new Set<bigint>() : undefined;
    for (const row of rows) {
      present?.add(row.endpoint);
      const before = this.#told.get(row.endpoint);
      const same = before === undefined ? isEmpty(row) : sameLoad(before, row);
      if (!same) this.#told.set(row.endpoint, row);
      if (full ? !isEmpty(row) : !same) changed.push(row);
    }
    if (present !== undefined) {
      for (const endpoint of this.#told.keys()) if (!present.has(endpoint)) this.#told.delete(endpoint);
    }
    return changed;
  }
}

function isEmpty(row: LoadRow): boolean {
  return row.requests === 0 && row.tokens === 0 && row.output === 0 && row.held === 0 && row.charged === 0;
}

function sameLoad(a: LoadRow, b: LoadRow): boolean {
  return (
    a.requests === b.requests &&
    a.tokens === b.tokens &&
    a.prefill === b.prefill &&
    a.prompt === b.prompt &&
    a.output === b.output &&
    a.pending === b.pending &&
    a.held === b.held &&
    a.charged === b.charged
  );
}
