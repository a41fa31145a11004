import type { RefusalCause } from '../../contract/refusing-bound.js';
import type { CoreInstance } from '../../core/memory.js';
import type { QueueOutcome } from '../../flow-control/queue-contract.js';
import { boundsOf, observe } from './histogram-cells.js';
import { enqueueKind, refusalKind } from './queue-kinds.js';
import { SeriesTable } from './series-table.js';
import { ShownNames, type VouchedNames } from './shown-names.js';

/** Outcome label of an accepted request (llm-d-router's). */
const QUEUED = 'NotYetFinalized';

/** Outcome label of a request at its arrival. */
export function enqueueOutcome(outcome: QueueOutcome | undefined): string {
  return outcome === undefined || outcome === 'Dispatched' ? QUEUED : outcome;
}

const limit = boundsOf(enqueueKind.at.duration);

/** Counts arrivals in the queues. Control thread only, in cells of its own. */
export class EnqueueRecorder {
  readonly #cells: Float64Array;
  readonly #series: SeriesTable;
  readonly #names: ShownNames;

  /**
   * @param fairnessIds bound on the fairness ids that are shown; undefined = none of its own
   * @throws RangeError when the thread's telemetry block is too small
   */
  constructor(core: CoreInstance, fairnessIds: number | undefined = undefined) {
    this.#cells = core.f64;
    this.#names = new ShownNames(undefined, undefined, fairnessIds);
    this.#series = new SeriesTable(core, [enqueueKind, refusalKind]);
    for (const { kind, values } of this.#series.adopted)
      if (kind === enqueueKind) this.#names.admit(values[0]!, '', '');
  }

  /** Replaces the names that are always shown. */
  vouch(names: VouchedNames): void {
    this.#names.vouch(names);
  }

  /** @param outcome outcome of a wait that ended at once; undefined = the request waits */
  arrived(flow: string, priority: number, outcome: QueueOutcome | undefined, seconds: number): void {
    const [fairness] = this.#names.admit(flow, '', '');
    const values = [fairness, enqueueOutcome(outcome), String(priority)];
    const base = this.#series.resolve(enqueueKind, values);
    observe(this.#cells, base + enqueueKind.at.duration.offset, limit, seconds);
  }

  refused(cause: RefusalCause, priority: number): void {
    this.#cells[this.#series.resolve(refusalKind, [cause, String(priority)])]! += 1;
  }
}
