import type { Endpoint, SlotAssignment } from '../../contract/endpoint.js';
import type { EndpointTable, HeldBack } from '../../core/endpoint-table.js';

/** Filter that has held an endpoint back for long; without details it no longer does. */
export type HeldBackReport =
  | { readonly by: 'overload-filter'; readonly details: HeldBack['veto'] }
  | { readonly by: 'warm-up-filter'; readonly details: HeldBack['warming'] };

/** Interval between two looks at what filters hold back. */
const LOOK_MS = 1_000;
/** Seconds from which on a veto, and a cold cache, are reported. */
const REPORTED_SECONDS = { 'overload-filter': 30, 'warm-up-filter': 300 } as const;

/** Reports endpoints that a filter has held back for long: once at the beginning, and once at the end. */
export class HeldBackReports {
  readonly #table: Pick<EndpointTable, 'heldBack'>;
  readonly #report: (endpoint: Endpoint, report: HeldBackReport) => void;
  /** Slots that are reported, with the filters. */
  readonly #reported = new Set<`${number} ${HeldBackReport['by']}`>();
  #nextLookMs = 0;

  constructor(table: Pick<EndpointTable, 'heldBack'>, report: (endpoint: Endpoint, report: HeldBackReport) => void) {
    this.#table = table;
    this.#report = report;
  }

  /** Looks at all endpoints, unless the last look was within a second. */
  look(assignments: Iterable<SlotAssignment>, nowMs: number): void {
    if (nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + LOOK_MS;
    for (const { slot, endpoint } of assignments) {
      const { veto, warming } = this.#table.heldBack(slot, nowMs);
      this.#judge(slot, endpoint, { by: 'overload-filter', details: veto });
      this.#judge(slot, endpoint, { by: 'warm-up-filter', details: warming });
    }
  }

  /** Forgets the endpoint that had a slot. */
  forget(slot: number): void {
    this.#reported.delete(`${slot} overload-filter`);
    this.#reported.delete(`${slot} warm-up-filter`);
  }

  #judge(slot: number, endpoint: Endpoint, report: HeldBackReport): void {
    const { by, details } = report;
    const key = `${slot} ${by}` as const;
    if (details === undefined) {
      if (this.#reported.delete(key)) this.#report(endpoint, report);
    } else if (details.seconds >= REPORTED_SECONDS[by] && !this.#reported.has(key)) {
      this.#reported.add(key);
      this.#report(endpoint, report);
    }
  }
}
