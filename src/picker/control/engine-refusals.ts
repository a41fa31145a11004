import type { EngineFigures } from '../../contract/engine-figures.js';

/** Time in which a refusal loses all but 1/e of its weight. */
const FADES_MS = 2_000;
/** Weight below which an endpoint counts as refusing nothing. */
const WEIGHT_MIN = 0.5;
/** Least time between two reports of one endpoint. */
const REPORT_MS = 60_000;

/** An endpoint's engine has begun to refuse requests. */
export type RefusalReport = (slot: number, perSecond: number) => void;

interface Refusing {
  readonly figures: EngineFigures;
  readonly atMs: number;
  /** Refused requests, each weighed by its age. */
  readonly weight: number;
  readonly reportedMs: number;
}

/**
 * What engines tell beside their signals, by slot, and how many requests each has refused of late because of a limit
 * of its queue. A refused request would have waited, so the refused ones of the last seconds count as waiting.
 */
export class EngineRefusals {
  readonly #bySlot = new Map<number, Refusing>();
  readonly #report: RefusalReport;

  constructor(report: RefusalReport) {
    this.#report = report;
  }

  /** @returns refused requests that count as waiting now */
  note(slot: number, figures: EngineFigures | undefined, nowMs: number): number {
    if (figures === undefined) return 0;
    const before = this.#bySlot.get(slot);
    const told = figures.refused ?? 0;
    // The first page tells what was refused before; after a restart the count begins again.
    const added = before === undefined ? 0 : Math.max(0, told - (before.figures.refused ?? told));
    const kept = before === undefined ? 0 : before.weight * Math.exp((before.atMs - nowMs) / FADES_MS);
    const weight = kept + added;
    const reports = added > 0 && nowMs - (before?.reportedMs ?? Number.NEGATIVE_INFINITY) >= REPORT_MS;
    const reportedMs = reports ? nowMs : (before?.reportedMs ?? Number.NEGATIVE_INFINITY);
    this.#bySlot.set(slot, { figures, atMs: nowMs, weight, reportedMs });
    if (reports) this.#report(slot, perSecond(weight));
    return weight < WEIGHT_MIN ? 0 : Math.round(weight);
  }

  /** Last figures of a slot; undefined = its engine tells none. */
  figures(slot: number): EngineFigures | undefined {
    return this.#bySlot.get(slot)?.figures;
  }

  /** Requests per second that the engine of a slot has refused over the last seconds. */
  perSecond(slot: number): number {
    const { weight = 0 } = this.#bySlot.get(slot) ?? {};
    return weight < WEIGHT_MIN ? 0 : perSecond(weight);
  }

  forget(slot: number): void {
    this.#bySlot.delete(slot);
  }
}

function perSecond(weight: number): number {
  return Math.round((weight / FADES_MS) * 10_000) / 10;
}
