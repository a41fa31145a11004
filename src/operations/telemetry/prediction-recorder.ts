import type { ObservedLatency } from '../../response/recorder.js';
import type { LatencyPrediction } from '../../scheduling/latency-outlook.js';
import { boundsOf, observe } from './histogram-cells.js';
import { setLatest } from './latest-cells.js';
import { predictionKind, predictionServerKind } from './metric-table.js';
import type { SeriesTable } from './series-table.js';

const predicted = predictionKind.at;
const TOOK = boundsOf(predicted.ttftTook);
const ACCURACIES = boundsOf(predicted.ttftAccuracy);

/** Cells of the two times of a prediction. */
const ttftCells = {
  limit: boundsOf(predicted.predictedTtft),
  predicted: predicted.predictedTtft,
  accuracy: predicted.ttftAccuracy,
  missed: predicted.ttftMissed,
  took: predicted.ttftTook,
  last: predicted.lastTtft,
  lastPredicted: predicted.lastPredictedTtft,
  lastMissed: predicted.lastTtftMissed,
  lastTook: predicted.lastTtftTook,
};
const tpotCells: typeof ttftCells = {
  limit: boundsOf(predicted.predictedTpot),
  predicted: predicted.predictedTpot,
  accuracy: predicted.tpotAccuracy,
  missed: predicted.tpotMissed,
  took: predicted.tpotTook,
  last: predicted.lastTpot,
  lastPredicted: predicted.lastPredictedTpot,
  lastMissed: predicted.lastTpotMissed,
  lastTook: predicted.lastTpotTook,
};

/** The plugin that predicts latency. */
export interface PredictingPlugin {
  readonly name: string;
  readonly type: string;
  /** Whether it predicts first tokens and times per token; otherwise whole answers. */
  readonly streaming: boolean;
}

/** Records predictions of latency, and their errors. */
export class PredictionRecorder {
  readonly #cells: Float64Array;
  readonly #series: SeriesTable;
  readonly #plugin: PredictingPlugin;
  readonly #predictions = new Map<number, number>();

  constructor(cells: Float64Array, series: SeriesTable, plugin: PredictingPlugin) {
    this.#cells = cells;
    this.#series = series;
    this.#plugin = plugin;
  }

  predicted(series: number, prediction: LatencyPrediction, observed: ObservedLatency): void {
    const { streaming } = this.#plugin;
    const base = this.#seriesOf(series);
    const ttft = streaming ? observed.firstTokenSeconds : observed.durationSeconds;
    this.#compare(base, ttftCells, prediction.ttftMs, ttft, prediction.wantedTtftMs);
    if (streaming) {
      this.#compare(base, tpotCells, prediction.tpotMs, observed.perTokenSeconds, prediction.wantedTpotMs);
    }
  }

  /** Counts an answer of a prediction server. @returns whether it has a prediction, whose time is recorded */
  counts(outcome: string): boolean {
    this.#cells[this.#series.resolve(predictionServerKind, [outcome])]! += 1;
    return outcome === 'predicted' || outcome === 'partial';
  }

  /** Records the time that a prediction took. */
  took(series: number, seconds: number): void {
    const base = this.#seriesOf(series);
    for (const { took, lastTook } of [ttftCells, tpotCells]) {
      observe(this.#cells, base + took.offset, TOOK, seconds);
      setLatest(this.#cells, base, lastTook, seconds);
    }
  }

  #seriesOf(series: number): number {
    const { name, type } = this.#plugin;
    let base = this.#predictions.get(series);
    if (base === undefined) {
      const [, model, , target] = this.#series.valuesOf(series);
      base = this.#series.resolve(predictionKind, [model!, name, type, target!]);
      this.#predictions.set(series, base);
    }
    return base;
  }

  /** Records one time of one request: predicted, observed and wanted (0 = no objective). */
  #compare(
    base: number,
    cells: typeof ttftCells,
    predictedMs: number | undefined,
    seconds: number | undefined,
    wantedMs: number,
  ): void {
    if (seconds === undefined) return;
    setLatest(this.#cells, base, cells.last, seconds);
    if (predictedMs !== undefined) {
      observe(this.#cells, base + cells.predicted.offset, cells.limit, predictedMs / 1000);
      setLatest(this.#cells, base, cells.lastPredicted, predictedMs / 1000);
      if (predictedMs > 0) {
        observe(this.#cells, base + cells.accuracy.offset, ACCURACIES, (seconds * 1000) / predictedMs);
      }
    }
    if (wantedMs <= 0) return;
    const missed = seconds * 1000 > wantedMs;
    if (missed) this.#cells[base + cells.missed.offset]! += 1;
    setLatest(this.#cells, base, cells.lastMissed, missed ? 1 : 0);
  }
}
