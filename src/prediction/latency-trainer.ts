import type { Label } from '../core/label.js';
import { LabelReader } from '../core/label-reader.js';
import { CoefficientTable, predictionFeatures } from '../core/latency-predictions.js';
import type { CoreInstance } from '../core/memory.js';
import { LatencyModel } from './latency-model.js';
import { latencyPriors } from './latency-priors.js';
import type { PredictionSettings } from './settings.js';

export interface LatencyTrainerOptions {
  /** The control thread's instance. */
  readonly core: CoreInstance;
  readonly settings: PredictionSettings;
}

/** Labels of one round at most: about ten milliseconds of work. */
const LABELS_OF_A_ROUND = 2_000;
/** Shorter answers say little about the time between two tokens. */
const LEAST_OUTPUT_TOKENS = 4;
/** How fast the mean of a signal, which stands for an unknown one, follows. */
const MEAN_FOLLOWS = 0.02;

/**
 * Learns the latency model from the labels of finished requests and keeps its coefficients in shared memory up to date,
 * where decisions read them. One call of `learn` is one round; somebody else says when.
 */
export class LatencyTrainer {
  readonly #settings: PredictionSettings;
  readonly #reader: LabelReader;
  readonly #table: CoefficientTable;
  readonly #model: LatencyModel;
  readonly #features = new Float64Array(predictionFeatures.length);
  /** Endpoints whose coefficients have changed and are not written yet: generation by slot. */
  readonly #changed = new Map<number, number>();
  #poolChanged = true;
  #waiting = 0;
  #kvUsage = 0;

  constructor({ core, settings }: LatencyTrainerOptions) {
    this.#settings = settings;
    this.#reader = new LabelReader(core);
    this.#table = new CoefficientTable(core);
    this.#model = new LatencyModel(latencyPriors(settings.prior));
    this.#write();
  }

  /** Labels that were overwritten before they were read, and times that could not be used. */
  get lost(): number {
    return this.#reader.lost + this.#model.ignored;
  }

  get observations(): { readonly ttft: number; readonly tpot: number } {
    return this.#model.observations;
  }

  /** Take in what has been finished since the last round. @returns how many requests */
  learn(): number {
    const count = this.#reader.drain((label) => this.#take(label), LABELS_OF_A_ROUND);
    this.#write();
    return count;
  }

  #take(label: Label): void {
    if (label.outcome !== 'completed') return;
    const { streaming } = this.#settings;
    const counts = (label.outputTokens ?? 0) >= LEAST_OUTPUT_TOKENS;
    // With other endpoints before it the first token is not this one's work.
    const own = label.staged ? undefined : label.firstOutputMs;
    const ttftMs = streaming ? own : label.durationMs;
    const tpotMs = streaming && counts ? label.perTokenMs : undefined;
    if (ttftMs === undefined && tpotMs === undefined) return;
    this.#readFeatures(label);
    this.#model.observe(label.slot, label.slotGeneration, { features: this.#features, ttftMs, tpotMs });
    this.#changed.set(label.slot, label.slotGeneration);
    this.#poolChanged = true;
  }

  /** As assembly/scheduling/predictions.ts reads them; an unknown signal counts as the usual one. */
  #readFeatures(label: Label): void {
    if (label.waiting !== undefined) this.#waiting += MEAN_FOLLOWS * (label.waiting - this.#waiting);
    if (label.kvUsage !== undefined) this.#kvUsage += MEAN_FOLLOWS * (label.kvUsage - this.#kvUsage);
    const features = this.#features;
    features[0] = 1;
    features[1] = label.uncachedTokens / 1000;
    features[2] = label.prefillTokens / 1000;
    features[3] = label.waiting ?? this.#waiting;
    features[4] = label.inflight;
    features[5] = label.kvUsage ?? this.#kvUsage;
    features[6] = label.promptTokens / 1000;
  }

  /** Write what has changed. What finds the lock taken stays for the next round. */
  #write(): void {
    if (this.#poolChanged) this.#poolChanged = !this.#table.setUnknown(this.#model.pool);
    for (const [slot, generation] of this.#changed) {
      const learned = this.#model.endpoint(slot, generation);
      if (learned !== undefined && !this.#table.setLearned(slot, generation, learned)) return;
      this.#changed.delete(slot);
    }
  }
}
