import type { QueueOutcome } from '../../flow-control/queue-contract.js';
import { enqueueOutcome } from './enqueue-recorder.js';
import { boundsOf, observe } from './histogram-cells.js';
import { enqueueKind, queueEndKind, queueKind, queueTotalKind } from './queue-kinds.js';
import type { SeriesTable } from './series-table.js';

const QUEUED = boundsOf(queueEndKind.at.duration);
const ENTERED = boundsOf(enqueueKind.at.duration);

/** First cells of the waits of one series' requests. */
interface QueueCells {
  /** Values of the labels of `queueKind`. */
  readonly values: readonly string[];
  readonly waiting: number;
  /** Of requests that never waited. */
  readonly entered: Map<QueueOutcome, number>;
  readonly ends: Map<QueueOutcome, { readonly duration: number; readonly total: number }>;
}

/** Records how requests wait in the queues. See RequestRecorder for each call. */
export class WaitRecorder {
  readonly #cells: Float64Array;
  readonly #series: SeriesTable;
  readonly #poolName: string;
  readonly #queues = new Map<number, QueueCells>();

  /** @param poolName value of `inference_pool` */
  constructor(cells: Float64Array, series: SeriesTable, poolName: string) {
    this.#cells = cells;
    this.#series = series;
    this.#poolName = poolName;
  }

  queued(series: number, by: 1 | -1, bodyBytes: number): void {
    const { waiting } = this.#queueOf(series);
    this.#cells[waiting + queueKind.at.size.offset]! += by;
    this.#cells[waiting + queueKind.at.bytes.offset]! += by * bodyBytes;
  }

  queueLeft(series: number, outcome: QueueOutcome, seconds: number): void {
    const queue = this.#queueOf(series);
    let end = queue.ends.get(outcome);
    if (end === undefined) {
      const [, priority, pool] = queue.values;
      end = {
        duration: this.#series.resolve(queueEndKind, [outcome, ...queue.values]),
        total: this.#series.resolve(queueTotalKind, [outcome, priority!, pool!]),
      };
      queue.ends.set(outcome, end);
    }
    this.#cells[queue.waiting + queueKind.at.left.offset]! += 1;
    observe(this.#cells, end.duration + queueEndKind.at.duration.offset, QUEUED, seconds);
    this.#cells[end.total]! += 1;
  }

  passedQueue(series: number, outcome: QueueOutcome): void {
    const queue = this.#queueOf(series);
    let entered = queue.entered.get(outcome);
    if (entered === undefined) {
      const [fairness, priority] = queue.values;
      entered = this.#series.resolve(enqueueKind, [fairness!, enqueueOutcome(outcome), priority!]);
      queue.entered.set(outcome, entered);
    }
    observe(this.#cells, entered + enqueueKind.at.duration.offset, ENTERED, 0);
    this.queueLeft(series, outcome, 0);
  }

  /** Cells of the waits of a series' requests. */
  #queueOf(series: number): QueueCells {
    let queue = this.#queues.get(series);
    if (queue === undefined) {
      const [fairness, model, priority, target] = this.#series.valuesOf(series);
      const values = [fairness!, priority!, this.#poolName, model!, target!];
      queue = { values, waiting: this.#series.resolve(queueKind, values), entered: new Map(), ends: new Map() };
      this.#queues.set(series, queue);
    }
    return queue;
  }
}
