import type { PredictedColumns } from '../core/latency-predictions.js';
import type { EndpointPredictions } from './latency-outlook.js';

/**
 * Passes the answers of prediction servers to the next decision of this thread, which reads them where OP_PREDICT does.
 */
export class ServedPredictions {
  readonly #columns: PredictedColumns;

  constructor(columns: PredictedColumns) {
    this.#columns = columns;
  }

  /** @param predictions undefined = no prediction for any endpoint */
  write(predictions: EndpointPredictions | undefined): void {
    const { ttft, tpot } = this.#columns;
    ttft.fill(Number.NaN);
    tpot.fill(Number.NaN);
    for (const [i, slot] of (predictions?.slots ?? []).entries()) {
      ttft[slot] = predictions!.ttftMs[i]!;
      tpot[slot] = predictions!.tpotMs[i]!;
    }
  }
}
