import type { PredictionSettings } from '../contract/prediction-settings.js';
import { CoefficientTable, predictionFeatures } from '../core/latency-predictions.js';
import type { CoreInstance } from '../core/memory.js';
import { SampleReader } from '../core/sample-reader.js';
import type { TrainingSample } from '../core/training-sample.js';
import { LatencyModel } from './latency-model.js';
import { latencyPriors } from './latency-priors.js';

export interface LatencyTrainerOptions {
  /** The control thread's instance. */
  readonly core: CoreInstance;
  readonly settings: PredictionSettings;
}

/** Samples of one round at most: about ten milliseconds of work. */
const SAMPLES_PER_ROUND_MAX = 2_000;
/** Shorter answers say little about the time between two tokens. */
const OUTPUT_TOKENS_MIN = 4;
/** Smoothing factor of the mean of a signal, which replaces an unknown one. */
const MEAN_FOLLOWS = 0.02;

/**
 * Learns the latency model from the samples of finished requests and keeps its coefficients in shared memory up to
 * date, where decisions read them. One call of `learn` is one round; the caller owns the interval.
 */
export class LatencyTrainer {
  readonly #settings: PredictionSettings;
  readonly #reader: SampleReader;
  readonly #table: CoefficientTable;
  readonly #model: LatencyModel;
  readonly #features = new Float64Array(predictionFeatures.length);
  /** Endpoints with changed coefficients that are not written yet: generation by slot. */
  readonly #changed = new Map<number, number>();
  #poolChanged = true;
  #waiting = 0;
  #kvUsage = 0;

  constructor({ core, settings }: LatencyTrainerOptions) {
    this.#settings = settings;
    this.#reader = new SampleReader(core);
    this.#table = new CoefficientTable(core);
    this.#model = new LatencyModel(latencyPriors(settings.prior));
    this.#write();
  }

  /** Samples that were overwritten before they were read, and times that could not be used. */
  get lost(): number {
    return this.#reader.lost + this.#model.ignored;
  }

  get observations(): { readonly ttft: number; readonly tpot: number } {
    return this.#model.observations;
  }

  /** Takes in what has been finished since the last round. @returns how many requests */
  learn(): number {
    const count = this.#reader.drain((sample) => this.#take(sample), SAMPLES_PER_ROUND_MAX);
    this.#write();
    return count;
  }

  #take(sample: TrainingSample): void {
    if (sample.outcome !== 'completed') return;
    const { streaming } = this.#settings;
    const counts = (sample.outputTokens ?? 0) >= OUTPUT_TOKENS_MIN;
    // With work of other endpoints before it, the first token is not this endpoint's alone.
    const own = sample.staged ? undefined : sample.firstOutputMs;
    const ttftMs = streaming ? own : sample.durationMs;
    const tpotMs = streaming && counts ? sample.perTokenMs : undefined;
    if (ttftMs === undefined && tpotMs === undefined) return;
    this.#readFeatures(sample);
    this.#model.observe(sample.slot, sample.slotGeneration, { features: this.#features, ttftMs, tpotMs });
    this.#changed.set(sample.slot, sample.slotGeneration);
    this.#poolChanged = true;
  }

  /** Reads the features as assembly/scheduling/predictions.ts does; an unknown signal counts as the usual one. */
  #readFeatures(sample: TrainingSample): void {
    if (sample.waiting !== undefined) this.#waiting += MEAN_FOLLOWS * (sample.waiting - this.#waiting);
    if (sample.kvUsage !== undefined) this.#kvUsage += MEAN_FOLLOWS * (sample.kvUsage - this.#kvUsage);
    const features = this.#features;
    features[0] = 1;
    features[1] = sample.uncachedTokens / 1000;
    features[2] = sample.prefillTokens / 1000;
    features[3] = sample.waiting ?? this.#waiting;
    features[4] = sample.inflight;
    features[5] = sample.kvUsage ?? this.#kvUsage;
    features[6] = sample.promptTokens / 1000;
  }

  /** Writes changed coefficients. Those that find the lock taken stay for the next round. */
  #write(): void {
    if (this.#poolChanged) this.#poolChanged = !this.#table.setUnknown(this.#model.pool);
    for (const [slot, generation] of this.#changed) {
      const learned = this.#model.endpoint(slot, generation);
      if (learned !== undefined && !this.#table.setLearned(slot, generation, learned)) return;
      this.#changed.delete(slot);
    }
  }
}
