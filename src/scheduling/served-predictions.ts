import type { PredictedColumns } from '../core/latency-predictions.js';
import type { EndpointPredictions } from './latency-outlook.js';

/** Hands what prediction servers said to the next decision of this thread, which reads it where OP_PREDICT looks. */
export class ServedPredictions {
  readonly #columns: PredictedColumns;

  constructor(columns: PredictedColumns) {
    this.#columns = columns;
  }

  /** @param predictions undefined = nothing is known of any endpoint */
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
