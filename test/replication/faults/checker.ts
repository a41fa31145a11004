import type { RequestBook } from './request-book.ts';

/** A charge may be known for so long after its request, and views are equal so long after quiet. Fair milliseconds. */
export const BOUND_MS = 1_000;

/** Answer of `/debug/replicas`, as far as the checker reads it. */
export interface ReplicaPage {
  readonly connected: boolean;
  readonly peers: readonly { readonly replica: string; readonly live: boolean; readonly incomplete: boolean }[];
  readonly endpoints: readonly {
    readonly address: string;
    readonly own: { readonly requests: number };
    readonly peers: { readonly requests: number };
  }[];
}

/** What one picker said. */
export interface Observation {
  readonly picker: string;
  /** Fair time at which it was asked. */
  readonly askedMs: number;
  readonly page: ReplicaPage;
}

/**
 * Charges that a picker knows and that no request of the last second accounts for: it outlived its request, or counts
 * twice.
 */
export function outlived({ picker, askedMs, page }: Observation, book: RequestBook): string[] {
  return page.endpoints.flatMap(({ address, peers: { requests: known } }) => {
    const most = book.most(picker, address, askedMs - BOUND_MS);
    if (known <= most) return [];
    return [
      `${picker} knows ${known} requests of its peers on ${address}, of which ${most} ran within the last second`,
    ];
  });
}

/** Differences between the views of a quiet group and the requests that run. */
export function differences({ picker, page }: Observation, book: RequestBook): string[] {
  return page.endpoints.flatMap(({ address, own, peers }) => {
    const pairs = [
      ['own', own.requests, book.running(address, (each) => each === picker)],
      ['its peers', peers.requests, book.running(address, (each) => each !== picker)],
    ] as const;
    return pairs
      .filter(([, known, running]) => known !== running)
      .map(
        ([whose, known, running]) => `${picker} knows ${known} requests on ${address} of ${whose}, and ${running} run`,
      );
  });
}
