import type { EjectionNews, Placement } from './messages.js';

/** Bound on the hashes of one update: some 256 KiB, a quarter of what NATS takes. */
export const HASHES_MAX = 32_768;

/** Placements in lists of a bounded size. */
export function pieces(placements: readonly Placement[]): Placement[][] {
  const lists: Placement[][] = [];
  let hashes = Number.POSITIVE_INFINITY;
  for (const placement of placements) {
    hashes += placement.hashes.length + 3;
    if (hashes > HASHES_MAX) {
      lists.push([]);
      hashes = placement.hashes.length + 3;
    }
    lists.at(-1)!.push(placement);
  }
  return lists;
}

/** Last entry for each endpoint. */
export function unique(news: readonly EjectionNews[]): EjectionNews[] {
  return [...new Map(news.map((each) => [each.endpoint, each])).values()];
}
