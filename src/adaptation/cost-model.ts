import type { CostModelSettings } from '../config/adaptation.js';
import type { TierPrices } from '../contract/block-place.js';
import type { Coefficients, HardwareCoefficients } from '../core/coefficients.js';
import { CORE } from '../core/core-names.js';
import type { TrainingSample } from '../core/training-sample.js';
import { ChangeDetector } from './change-detector.js';
import {
  type CostEstimators,
  coefficientsOf,
  type EstimatorsState,
  learnFirstOutput,
  makeEstimators,
  restoreEstimators,
  withFirstOutputs,
} from './cost-estimators.js';
import type { EndpointModel } from './endpoint-model.js';
import { AVERAGE_SPEED, type EndpointSpeed, EndpointSpeeds, type LiveEndpoint } from './endpoint-speeds.js';
import type { SeenTime } from './endpoint-times.js';
import { FitHistory } from './fit-history.js';
import { HardwareClasses, type HardwareClassState } from './hardware-classes.js';
import { SampleMemory } from './sample-memory.js';
import { firstOutputInputs, hasWaitedForMemory, isConfirmed, type Work, workOf } from './sample-work.js';
import { pricedTokens, TierCosts, type TierPricing, tokensBelow } from './tier-costs.js';
import { rankCorrelation, Window } from './window.js';

/** Predicted times of a request in milliseconds. */
export interface Prediction {
  readonly firstOutputMs: number;
  readonly perTokenMs: number;
}

/** Quality of the predictions over the last WINDOW samples, of the time to the first output unless stated otherwise. */
export interface Fit {
  /** Samples learned from since the last reset. */
  readonly samples: number;
  /** Spearman's rank correlation of predicted and observed times; undefined while it cannot be computed. */
  readonly correlation: number | undefined;
  /** Median of ln(observed/predicted); undefined without observations. */
  readonly bias: number | undefined;
  /** To the first output, or to the end of answers in one piece; undefined without observations. */
  readonly firstOutput: PredictedAndObserved | undefined;
  /** Per output token, of streamed answers. */
  readonly perToken: PredictedAndObserved | undefined;
}

/** Median and 90th percentile of times, in milliseconds. */
export interface Times {
  readonly p50: number;
  readonly p90: number;
}

/** Predicted times when a sample arrived, before the model learned from it, and observed times. */
export interface PredictedAndObserved {
  readonly predictedMs: Times;
  readonly observedMs: Times;
}

/** The model as plain data, without the endpoints, which differ after a restart. */
export interface CostModelState extends EstimatorsState {
  readonly outputTokens: number;
  /** Of a mixed pool; absent where no class has been learned. */
  readonly classes?: readonly HardwareClassState[] | undefined;
}

/** Coefficients of a hardware class, and the samples behind them. */
export interface LearnedClass {
  readonly hardware: string;
  readonly samples: number;
  readonly coefficients: HardwareCoefficients;
}

/** Estimators that hold for an endpoint, its factors on their times, and the length of their memory. */
interface Estimators {
  readonly costs: CostEstimators;
  readonly speed: EndpointSpeed;
  readonly memory: SampleMemory;
}

/** Samples by which the predictions are judged. */
const WINDOW = 500;
/** Minimum of output tokens for an estimate of the time per token. */
const OUTPUT_TOKENS_MIN = 8;
/**
 * Share of a request's own prefill in its expected time to first output from which on it tells the speed of its
 * endpoint: the waits of a full pool say nothing of machines.
 */
const PREFILL_SHARE = 0.5;
const BUSY_MAX = 0.9;
/** Weight of an answer in one piece, which gives the sum of both times only. */
const WHOLE_ANSWER_WEIGHT = 0.3;
/** Forgetting factor after an alarm, for the given number of samples. */
const QUICK_FORGET = 0.995;
const QUICK_SAMPLES = 200;
const KEPT_AFTER_ALARM = 0.3;
/** Memory of the mean output length, in requests. */
const OUTPUT_MEMORY = 200;

/**
 * Learns from finished requests the time of a prefill token, a waiting request, an output token and a busy endpoint. It
 * also learns how slow each endpoint is and how reliable the prefix index is. Time is taken from the samples.
 */
export class CostModel {
  readonly #settings: CostModelSettings;
  /** Of the whole pool. */
  readonly #costs: CostEstimators;
  readonly #classes: HardwareClasses;
  readonly #memory = new SampleMemory();
  readonly #changes = new ChangeDetector();
  readonly #endpoints = new EndpointSpeeds();
  /** Of streamed answers. */
  readonly history = new FitHistory();
  readonly tiers: TierCosts;
  readonly #predicted = new Window(WINDOW);
  readonly #observed = new Window(WINDOW);
  readonly #bias = new Window(WINDOW);
  readonly #predictedPerToken = new Window(WINDOW);
  readonly #observedPerToken = new Window(WINDOW);
  #outputTokens: number;
  #outputs = 0;
  #samples = 0;
  #quickLeft = 0;
  #alarms = 0;

  /** @param tiers prices of blocks below the GPU; undefined = there are none */
  constructor(settings: CostModelSettings, tiers?: TierPricing) {
    const { prior } = settings;
    this.tiers = new TierCosts(tiers);
    this.#settings = settings;
    this.#outputTokens = prior.outputTokens;
    this.#costs = makeEstimators(prior, 1, 'observed');
    this.#classes = new HardwareClasses(settings);
  }

  /**
   * Learns from a finished request; unsuccessful ones are skipped.
   * @param prices those of blocks below the GPU at the decision
   * @returns whether it was used
   */
  learn(sample: TrainingSample, prices: TierPrices = this.tiers.configured): boolean {
    if (sample.outcome !== 'completed') return false;
    const endpoint = this.#endpoints.modelOf(sample.slot, sample.slotGeneration);
    // A late sample of an endpoint that has left does not concern the new endpoint of its slot.
    if (endpoint === undefined) return false;
    this.#noteTime(sample);
    const output = sample.outputTokens;
    if (output !== undefined && output > 0) this.#noteOutput(output);
    endpoint.noteCached(sample, pricedTokens(tokensBelow(sample), prices));
    if (sample.staged || hasWaitedForMemory(sample)) {
      // The first output is the work of several endpoints, or of others that had to end; the later one is its own. An
      // answer in one piece does not tell them apart.
      if (sample.firstOutputMs === undefined || !this.#learnOutput(sample, endpoint)) return false;
    } else if (sample.firstOutputMs !== undefined) this.#learnStream(sample, endpoint, prices, sample.firstOutputMs);
    else if (output !== undefined && output > 0) this.#learnWhole(sample, endpoint, prices, output);
    else return false;
    this.#samples++;
    if (this.#quickLeft > 0) this.#quickLeft--;
    return true;
  }

  /** Predicts the times of the sample's request with the present coefficients. */
  predict(sample: TrainingSample): Prediction {
    const endpoint = this.#endpoints.at(sample.slot);
    const fits = endpoint !== undefined && endpoint.generation === sample.slotGeneration;
    const used = fits ? this.#estimatorsOf(sample.slot) : { costs: this.#costs, speed: AVERAGE_SPEED };
    const uncached = this.#uncached(workOf(sample, fits ? endpoint.reliability : 1, this.tiers.configured));
    return {
      firstOutputMs: used.costs.firstOutput.predict(firstOutputInputs(sample, used.speed.firstOutput, uncached)),
      perTokenMs: used.costs.perToken.predict(this.#perTokenInputs(sample, used)),
    };
  }

  /** Without a price of evictions, of which the model knows nothing. */
  get coefficients(): Coefficients {
    const { missPrice, firstOutputTargetMs, perTokenTargetMs, slots } = this.#settings;
    return {
      ...coefficientsOf(this.#costs),
      missPrice,
      outputTokens: this.#outputTokens,
      firstOutputTargetMs,
      perTokenTargetMs,
      slots,
      evictionPrice: 1,
    };
  }

  /** Takes over the live endpoints. */
  meet(live: readonly LiveEndpoint[]): void {
    this.#endpoints.meet(live);
    this.#classes.meet(live.map(({ hardware }) => hardware));
    this.#drawClasses();
  }

  /** Coefficients of every hardware class of a mixed pool. */
  get classes(): readonly LearnedClass[] {
    this.#drawClasses();
    return [...this.#classes.live].map(([hardware, costs]) => ({
      hardware,
      samples: costs.firstOutput.count,
      coefficients: coefficientsOf(costs),
    }));
  }

  /**
   * Factor on an endpoint's output times, and its coefficients, in which its first outputs have the same factor; `own`
   * is undefined where those of the pool hold.
   */
  costsOf(slot: number): { readonly speed: number; readonly own: HardwareCoefficients | undefined } {
    const { costs, speed } = this.#estimatorsOf(slot);
    const { output, firstOutput } = speed;
    if (costs === this.#costs && output === firstOutput) return { speed: output, own: undefined };
    return { speed: output, own: withFirstOutputs(coefficientsOf(costs), firstOutput / output) };
  }

  /** Endpoints by slot, with their known generation. */
  get endpoints(): ReadonlyMap<number, { readonly generation: number; readonly reliability: number }> {
    return this.#endpoints.models;
  }

  /** Factor on an endpoint's output times against the others; 1 when it cannot be distinguished from noise. */
  speedOf(slot: number): number {
    return this.#endpoints.of(slot).output;
  }

  get fit(): Fit {
    return {
      samples: this.#samples,
      correlation: this.#samples === 0 ? undefined : rankCorrelation(this.#predicted.values(), this.#observed.values()),
      bias: this.#bias.quantile(0.5),
      firstOutput: beside(this.#predicted, this.#observed),
      perToken: beside(this.#predictedPerToken, this.#observedPerToken),
    };
  }

  /** Number of alarms of the change detector. */
  get alarms(): number {
    return this.#alarms;
  }

  /** Resets the model to the prior and all endpoints to equal speed. */
  reset(): void {
    this.#costs.firstOutput.reset();
    this.#costs.perToken.reset();
    this.#classes.reset();
    this.#changes.reset();
    this.tiers.reset();
    this.#endpoints.reset();
    this.#drawClasses();
    for (const window of [this.#predicted, this.#observed, this.#bias]) window.clear();
    for (const window of [this.#predictedPerToken, this.#observedPerToken]) window.clear();
    this.#samples = 0;
    this.#quickLeft = 0;
  }

  save(): CostModelState {
    const classes = this.#classes.save();
    return {
      firstOutput: this.#costs.firstOutput.save(),
      perToken: this.#costs.perToken.save(),
      outputTokens: this.#outputTokens,
      ...(classes.length === 0 ? {} : { classes }),
    };
  }

  /** Continues from a saved state with `share` of its weight. @returns false when the state does not fit */
  restore(state: CostModelState, share: number): boolean {
    if (!(state.outputTokens > 0 && Number.isFinite(state.outputTokens))) return false;
    if (!restoreEstimators(this.#costs, state, share)) return false;
    if (!this.#classes.restore(state.classes ?? [], share)) {
      this.#costs.firstOutput.reset();
      this.#costs.perToken.reset();
      return false;
    }
    this.#outputTokens = state.outputTokens;
    this.#drawClasses();
    return true;
  }

  /** Estimators for the endpoint in a slot: those of its hardware class, or the pool's. */
  #estimatorsOf(slot: number): Estimators {
    const own = this.#classes.of(this.#endpoints.hardwareOf(slot));
    if (own === undefined) return { costs: this.#costs, speed: this.#endpoints.of(slot), memory: this.#memory };
    return { costs: own, speed: this.#endpoints.inKind(slot), memory: own.memory };
  }

  /** Estimators that learn from a sample of this endpoint: the pool's, preceded by its own. */
  #taught(slot: number): readonly [Estimators, ...Estimators[]] {
    const used = this.#estimatorsOf(slot);
    if (used.costs === this.#costs) return [used];
    return [used, { costs: this.#costs, speed: this.#endpoints.of(slot), memory: this.#memory }];
  }

  /** Draws every class to the pool's estimate at its speed. */
  #drawClasses(): void {
    for (const [hardware, drawn] of this.#classes.live) {
      this.#classes.draw(drawn, this.#costs, this.#endpoints.ofKind(hardware));
    }
  }

  /** Notes the time of a sample in the memories that it counts for. */
  #noteTime({ slot, timeMs, durationMs }: TrainingSample): void {
    this.#memory.note(timeMs + durationMs);
    const hardware = this.#endpoints.hardwareOf(slot);
    const own = this.#classes.of(hardware);
    if (own === undefined) return;
    own.memory.note(timeMs + durationMs);
    this.#classes.draw(own, this.#costs, this.#endpoints.ofKind(hardware));
  }

  #forget({ memory }: Estimators): number {
    return this.#quickLeft > 0 ? QUICK_FORGET : memory.forget;
  }

  #noteOutput(tokens: number): void {
    this.#outputs++;
    this.#outputTokens += (tokens - this.#outputTokens) / Math.min(OUTPUT_MEMORY, this.#outputs + 10);
  }

  #learnStream(sample: TrainingSample, endpoint: EndpointModel, prices: TierPrices, observedMs: number): void {
    const work = workOf(sample, endpoint.reliability, prices);
    const uncached = this.#uncached(work);
    const taught = this.#taught(sample.slot);
    const [{ costs, speed }] = taught;
    if (isConfirmed(sample)) this.#noteFirstOutput(endpoint, sample, costs, uncached, observedMs);
    const predictedMs = costs.firstOutput.predict(firstOutputInputs(sample, speed.firstOutput, uncached));
    this.#noteFit(predictedMs, observedMs);
    this.history.note(sample.timeMs, predictedMs, observedMs);
    const msPerToken = (speed.firstOutput * costs.firstOutput.theta[1]!) / 1000;
    this.tiers.learn({ loaded: work.loaded, msPerToken, predictedMs, observedMs });
    for (const each of taught) {
      const inputs = firstOutputInputs(sample, each.speed.firstOutput, uncached);
      learnFirstOutput(each.costs.firstOutput, inputs, observedMs, this.#forget(each));
    }
    this.#learnOutput(sample, endpoint);
  }

  /** @returns whether there was enough output to learn from */
  #learnOutput(sample: TrainingSample, endpoint: EndpointModel): boolean {
    const { perTokenMs, outputTokens } = sample;
    if (perTokenMs === undefined || outputTokens === undefined || outputTokens < OUTPUT_TOKENS_MIN) return false;
    this.#noteOutputTime(endpoint, sample, perTokenMs);
    const taught = this.#taught(sample.slot);
    this.#predictedPerToken.add(taught[0].costs.perToken.predict(this.#perTokenInputs(sample, taught[0])));
    this.#observedPerToken.add(perTokenMs);
    for (const each of taught) {
      each.costs.perToken.learn(this.#perTokenInputs(sample, each), perTokenMs, this.#forget(each));
    }
    return true;
  }

  /**
   * Learns from an answer in one piece: both parts are taken to deviate from their predictions by one factor. The whole
   * minus one predicted part would be no measure of the other part: it has the error of the larger one, and the two
   * estimates would drive each other away.
   */
  #learnWhole(sample: TrainingSample, endpoint: EndpointModel, prices: TierPrices, output: number): void {
    const uncached = this.#uncached(workOf(sample, endpoint.reliability, prices));
    const parts = this.#taught(sample.slot).map((each) => this.#partsOf(sample, each, uncached));
    const [used] = parts;
    this.#noteFit(used!.firstMs + output * used!.perTokenMs, sample.durationMs);
    for (const { each, x, z, firstMs, perTokenMs } of parts) {
      const expectedMs = firstMs + output * perTokenMs;
      if (!(expectedMs > 0)) continue;
      const ratio = sample.durationMs / expectedMs;
      learnFirstOutput(each.costs.firstOutput, x, firstMs * ratio, this.#forget(each), WHOLE_ANSWER_WEIGHT);
      if (output < OUTPUT_TOKENS_MIN) continue;
      if (each.costs === this.#costs) this.#noteOutputTime(endpoint, sample, perTokenMs * ratio);
      each.costs.perToken.learn(z, perTokenMs * ratio, this.#forget(each), WHOLE_ANSWER_WEIGHT);
    }
  }

  #partsOf(sample: TrainingSample, each: Estimators, uncached: number) {
    const x = firstOutputInputs(sample, each.speed.firstOutput, uncached);
    const z = this.#perTokenInputs(sample, each);
    return { each, x, z, firstMs: each.costs.firstOutput.predict(x), perTokenMs: each.costs.perToken.predict(z) };
  }

  /** Records an output time against the pool model's prediction for an endpoint of average speed. */
  #noteOutputTime(endpoint: EndpointModel, sample: TrainingSample, observedMs: number): void {
    const average = { costs: this.#costs, speed: AVERAGE_SPEED };
    const expectedMs = this.#costs.perToken.predict(this.#perTokenInputs(sample, average));
    this.#endpoints.noteOutput(endpoint, seenTime(sample, observedMs, expectedMs));
  }

  /**
   * Records a time to first output that was mostly the request's own prefill, against the prediction of its own
   * coefficients for an endpoint of average speed.
   */
  #noteFirstOutput(
    endpoint: EndpointModel,
    sample: TrainingSample,
    { firstOutput }: CostEstimators,
    uncached: number,
    observedMs: number,
  ): void {
    const inputs = firstOutputInputs(sample, 1, uncached);
    const expectedMs = firstOutput.predict(inputs);
    const ownMs = (uncached * firstOutput.theta[1]!) / 1000;
    if ((sample.waiting ?? 0) > 0 || ownMs < PREFILL_SHARE * expectedMs) return;
    this.#endpoints.noteFirstOutput(endpoint, seenTime(sample, observedMs, expectedMs));
  }

  #noteFit(predictedMs: number, observedMs: number): void {
    this.#predicted.add(predictedMs);
    this.#observed.add(observedMs);
    const z = Math.log(Math.max(observedMs, 0.1) / Math.max(predictedMs, 0.1));
    this.#bias.add(z);
    if (!this.#changes.observe(z)) return;
    this.#alarms++;
    this.#quickLeft = QUICK_SAMPLES;
    this.#costs.firstOutput.soften(KEPT_AFTER_ALARM);
    this.#costs.perToken.soften(KEPT_AFTER_ALARM);
    this.#classes.soften(KEPT_AFTER_ALARM);
  }

  /** Tokens whose computation costs as much as the work. */
  #uncached({ computed, loaded }: Work): number {
    return computed + pricedTokens(loaded, this.tiers.prices);
  }

  /** Inputs linear in (d, g): one, and K as the mean of its values at the decision and at the end. */
  #perTokenInputs(sample: TrainingSample, { costs, speed }: Pick<Estimators, 'costs' | 'speed'>): number[] {
    const prefill = costs.firstOutput.theta[1]!;
    const busy = Math.min(BUSY_MAX, (speed.firstOutput * prefill * sample.prefillRate) / 1000);
    const perRequest = this.#outputTokens / 2 + CORE.SLOT_TOKENS;
    const tokens = (prompts: number, requests: number) => (prompts + requests * perRequest) / CORE.KV_TOKENS;
    const before = tokens(sample.promptTokensInFlight + sample.promptTokens, sample.inflight + 1);
    const after = tokens(sample.promptTokensAtEnd, sample.inflightAtEnd);
    const scale = speed.output / (1 - busy);
    return [scale, (scale * (before + after)) / 2];
  }
}

function seenTime({ timeMs, durationMs, inflight }: TrainingSample, observedMs: number, expectedMs: number): SeenTime {
  return { observedMs, expectedMs, nowMs: timeMs + durationMs, durationMs, together: inflight + 1 };
}

function beside(predicted: Window, observed: Window): PredictedAndObserved | undefined {
  const [predictedMs, observedMs] = [timesOf(predicted), timesOf(observed)];
  return predictedMs === undefined || observedMs === undefined ? undefined : { predictedMs, observedMs };
}

function timesOf(window: Window): Times | undefined {
  const [p50, p90] = [window.quantile(0.5), window.quantile(0.9)];
  return p50 === undefined || p90 === undefined ? undefined : { p50, p90 };
}
