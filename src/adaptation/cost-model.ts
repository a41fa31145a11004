import type { CostModelSettings } from '../config/adaptation.js';
import type { Coefficients } from '../core/coefficients.js';
import { CORE } from '../core/core-names.js';
import type { TrainingSample } from '../core/training-sample.js';
import { ChangeDetector } from './change-detector.js';
import type { EndpointModel } from './endpoint-model.js';
import { EndpointSpeeds, type LiveEndpoint } from './endpoint-speeds.js';
import { FitHistory } from './fit-history.js';
import { AnchoredRidge, type RidgeState } from './ridge.js';
import { rankCorrelation, Window } from './window.js';

/** Predicted times of a request in milliseconds. */
export interface Prediction {
  readonly firstOutputMs: number;
  readonly perTokenMs: number;
}

/** Quality of the predictions over the last WINDOW samples, of the time to the first output unless stated otherwise. */
export interface Fit {
  /** Samples learned from since the last reset. */
  readonly labels: number;
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
export interface CostModelState {
  readonly firstOutput: RidgeState;
  readonly perToken: RidgeState;
  readonly outputTokens: number;
}

const WINDOW = 500;
/** Minimum of output tokens for an estimate of the time per token. */
const OUTPUT_TOKENS_MIN = 8;
const BUSY_MAX = 0.9;
/** Lower bounds of predictions when errors are weighed. */
const FIRST_OUTPUT_FLOOR_MS = 20;
const PER_TOKEN_FLOOR_MS = 5;
/** Weight of an answer in one piece, which gives the sum of both times only. */
const WHOLE_ANSWER_WEIGHT = 0.3;
/** Forgetting factor after an alarm, for the given number of samples. */
const QUICK_FORGET = 0.995;
const QUICK_LABELS = 200;
const KEPT_AFTER_ALARM = 0.3;
/** Memory of an estimator: the samples of two minutes, at least 500 and at most 5,000. */
const MEMORY_MS = 120_000;
const MEMORY_MIN = 500;
const MEMORY_MAX = 5000;
/** Memory of the mean output length, in requests. */
const OUTPUT_MEMORY = 200;
/** Samples over which the time between samples is averaged. */
const RATE_MEMORY = 100;

/**
 * Learns from finished requests the time of a prefill token, a waiting request, an output token and a busy endpoint. It
 * also learns how slow each endpoint is and how reliable the prefix index is. Time is taken from the samples.
 */
export class CostModel {
  readonly #settings: CostModelSettings;
  readonly #firstOutput: AnchoredRidge;
  readonly #perToken: AnchoredRidge;
  readonly #changes = new ChangeDetector();
  readonly #endpoints = new EndpointSpeeds();
  /** Of streamed answers. */
  readonly history = new FitHistory();
  readonly #predicted = new Window(WINDOW);
  readonly #observed = new Window(WINDOW);
  readonly #bias = new Window(WINDOW);
  readonly #predictedPerToken = new Window(WINDOW);
  readonly #observedPerToken = new Window(WINDOW);
  #outputTokens: number;
  #outputs = 0;
  #labels = 0;
  #quickLeft = 0;
  #lastMs: number | undefined;
  #gapMs = 0;
  #alarms = 0;

  constructor(settings: CostModelSettings) {
    const { prior } = settings;
    this.#settings = settings;
    this.#outputTokens = prior.outputTokens;
    this.#firstOutput = new AnchoredRidge(
      [
        { prior: prior.baseMs, low: 0, high: 500, anchor: 50 / 200 ** 2 },
        // About one observation: the prior loses its weight with the first ones.
        within(prior.prefillMsPerKiloToken, 10, 1 / prior.prefillMsPerKiloToken ** 2),
        // Bounded: a higher price leads to a spiral of queue, avoidance, misses and more queue.
        { prior: Math.min(prior.waitingMs, 30), low: 0, high: 30, anchor: 50 / 200 ** 2 },
      ],
      FIRST_OUTPUT_FLOOR_MS,
    );
    this.#perToken = new AnchoredRidge(
      [within(prior.stepMs, 5, 15 / prior.stepMs ** 2), within(prior.growthMs, 8, 15 / prior.growthMs ** 2)],
      PER_TOKEN_FLOOR_MS,
    );
  }

  /** Learns from a finished request; unsuccessful ones are skipped. @returns whether it was used */
  learn(sample: TrainingSample): boolean {
    if (sample.outcome !== 'completed') return false;
    const endpoint = this.#endpoints.modelOf(sample.slot, sample.slotGeneration);
    // A late sample of an endpoint that has left does not concern the slot's present one.
    if (endpoint === undefined) return false;
    this.#clock(sample.timeMs + sample.durationMs);
    const output = sample.outputTokens;
    if (output !== undefined && output > 0) this.#noteOutput(output);
    endpoint.noteCached(sample);
    if (sample.staged) {
      // The first output is the work of several endpoints; the later output is this one's.
      if (sample.firstOutputMs === undefined || !this.#learnOutput(sample, endpoint)) return false;
    } else if (sample.firstOutputMs !== undefined) this.#learnStream(sample, endpoint, sample.firstOutputMs);
    else if (output !== undefined && output > 0) this.#learnWhole(sample, endpoint, output);
    else return false;
    this.#labels++;
    if (this.#quickLeft > 0) this.#quickLeft--;
    return true;
  }

  /** Predicts the times of the sample's request with the present coefficients. */
  predict(sample: TrainingSample): Prediction {
    const endpoint = this.#endpoints.at(sample.slot);
    const fits = endpoint !== undefined && endpoint.generation === sample.slotGeneration;
    const speed = fits ? this.speedOf(sample.slot) : 1;
    const uncached = this.#uncached(sample, fits ? endpoint.reliability : 1);
    return {
      firstOutputMs: this.#firstOutput.predict(this.#firstOutputInputs(sample, speed, uncached)),
      perTokenMs: this.#perToken.predict(this.#perTokenInputs(sample, speed)),
    };
  }

  get coefficients(): Coefficients {
    const [baseMs, prefillMsPerKiloToken, waitingMs] = this.#firstOutput.theta;
    const [stepMs, growthMs] = this.#perToken.theta;
    const { missPrice, firstOutputTargetMs, perTokenTargetMs, slots } = this.#settings;
    return {
      baseMs: baseMs!,
      prefillMsPerKiloToken: prefillMsPerKiloToken!,
      waitingMs: waitingMs!,
      stepMs: stepMs!,
      growthMs: growthMs!,
      missPrice,
      outputTokens: this.#outputTokens,
      firstOutputTargetMs,
      perTokenTargetMs,
      slots,
    };
  }

  /** Takes over the live endpoints. */
  meet(live: readonly LiveEndpoint[]): void {
    this.#endpoints.meet(live);
  }

  /** Endpoints by slot, with their known generation. */
  get endpoints(): ReadonlyMap<number, { readonly generation: number; readonly reliability: number }> {
    return this.#endpoints.models;
  }

  /** Factor on an endpoint's output times against the others; 1 when it cannot be distinguished from noise. */
  speedOf(slot: number): number {
    return this.#endpoints.of(slot);
  }

  get fit(): Fit {
    return {
      labels: this.#labels,
      correlation: this.#labels === 0 ? undefined : rankCorrelation(this.#predicted.values(), this.#observed.values()),
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
    this.#firstOutput.reset();
    this.#perToken.reset();
    this.#changes.reset();
    this.#endpoints.reset();
    for (const window of [this.#predicted, this.#observed, this.#bias]) window.clear();
    for (const window of [this.#predictedPerToken, this.#observedPerToken]) window.clear();
    this.#labels = 0;
    this.#quickLeft = 0;
  }

  save(): CostModelState {
    return {
      firstOutput: this.#firstOutput.save(),
      perToken: this.#perToken.save(),
      outputTokens: this.#outputTokens,
    };
  }

  /** Continues from a saved state with `share` of its weight. @returns false when the state does not fit */
  restore(state: CostModelState, share: number): boolean {
    if (!(state.outputTokens > 0 && Number.isFinite(state.outputTokens))) return false;
    if (!this.#firstOutput.restore(state.firstOutput, share)) return false;
    if (!this.#perToken.restore(state.perToken, share)) {
      this.#firstOutput.reset();
      return false;
    }
    this.#outputTokens = state.outputTokens;
    return true;
  }

  /** Updates the samples per millisecond, which set the length of the memory. */
  #clock(nowMs: number): void {
    if (this.#lastMs !== undefined) {
      const gap = Math.max(0, nowMs - this.#lastMs);
      this.#gapMs += (gap - this.#gapMs) / RATE_MEMORY;
    }
    this.#lastMs = nowMs;
  }

  get #forget(): number {
    if (this.#quickLeft > 0) return QUICK_FORGET;
    const perMemory = this.#gapMs > 0 ? MEMORY_MS / this.#gapMs : MEMORY_MAX;
    return Math.exp(-1 / Math.min(MEMORY_MAX, Math.max(MEMORY_MIN, perMemory)));
  }

  #noteOutput(tokens: number): void {
    this.#outputs++;
    this.#outputTokens += (tokens - this.#outputTokens) / Math.min(OUTPUT_MEMORY, this.#outputs + 10);
  }

  #learnStream(sample: TrainingSample, endpoint: EndpointModel, observedMs: number): void {
    const speed = this.speedOf(sample.slot);
    const x = this.#firstOutputInputs(sample, speed, this.#uncached(sample, endpoint.reliability));
    const predictedMs = this.#firstOutput.predict(x);
    this.#noteFit(predictedMs, observedMs);
    this.history.note(sample.timeMs, predictedMs, observedMs);
    this.#firstOutput.learn(x, observedMs, this.#forget);
    this.#learnOutput(sample, endpoint);
  }

  /** @returns whether there was enough output to learn from */
  #learnOutput(sample: TrainingSample, endpoint: EndpointModel): boolean {
    const { perTokenMs, outputTokens } = sample;
    if (perTokenMs === undefined || outputTokens === undefined || outputTokens < OUTPUT_TOKENS_MIN) return false;
    this.#noteOutputTime(endpoint, sample, perTokenMs);
    const z = this.#perTokenInputs(sample, this.speedOf(sample.slot));
    this.#predictedPerToken.add(this.#perToken.predict(z));
    this.#observedPerToken.add(perTokenMs);
    this.#perToken.learn(z, perTokenMs, this.#forget);
    return true;
  }

  /**
   * Learns from an answer in one piece: both parts are taken to deviate from their predictions by one factor. The whole
   * minus one predicted part would be no measure of the other: its error is that of the larger part, and the two
   * estimates would then drive each other away.
   */
  #learnWhole(sample: TrainingSample, endpoint: EndpointModel, output: number): void {
    const speed = this.speedOf(sample.slot);
    const x = this.#firstOutputInputs(sample, speed, this.#uncached(sample, endpoint.reliability));
    const z = this.#perTokenInputs(sample, speed);
    const firstMs = this.#firstOutput.predict(x);
    const perTokenMs = this.#perToken.predict(z);
    const expectedMs = firstMs + output * perTokenMs;
    this.#noteFit(expectedMs, sample.durationMs);
    if (!(expectedMs > 0)) return;
    const ratio = sample.durationMs / expectedMs;
    this.#firstOutput.learn(x, firstMs * ratio, this.#forget, WHOLE_ANSWER_WEIGHT);
    if (output < OUTPUT_TOKENS_MIN) return;
    this.#noteOutputTime(endpoint, sample, perTokenMs * ratio);
    this.#perToken.learn(z, perTokenMs * ratio, this.#forget, WHOLE_ANSWER_WEIGHT);
  }

  /** Records an output time against the pool model's prediction for an endpoint of average speed. */
  #noteOutputTime(endpoint: EndpointModel, sample: TrainingSample, observedMs: number): void {
    const expectedMs = this.#perToken.predict(this.#perTokenInputs(sample, 1));
    this.#endpoints.note(endpoint, observedMs, expectedMs, sample.timeMs + sample.durationMs);
  }

  #noteFit(predictedMs: number, observedMs: number): void {
    this.#predicted.add(predictedMs);
    this.#observed.add(observedMs);
    const z = Math.log(Math.max(observedMs, 0.1) / Math.max(predictedMs, 0.1));
    this.#bias.add(z);
    if (!this.#changes.observe(z)) return;
    this.#alarms++;
    this.#quickLeft = QUICK_LABELS;
    this.#firstOutput.soften(KEPT_AFTER_ALARM);
    this.#perToken.soften(KEPT_AFTER_ALARM);
  }

  /** Computed tokens: as reported by the engine, or estimated from the index by its reliability. */
  #uncached(sample: TrainingSample, reliability: number): number {
    const { promptTokens, uncachedTokens, cachedTokens, reportedPromptTokens } = sample;
    if (cachedTokens !== undefined && reportedPromptTokens) {
      return promptTokens * Math.max(0, 1 - cachedTokens / reportedPromptTokens);
    }
    return Math.max(0, promptTokens - reliability * (promptTokens - uncachedTokens));
  }

  /** Inputs linear in (θ0, c, w): one, thousands of tokens to prefill, requests waiting. */
  #firstOutputInputs(sample: TrainingSample, speed: number, uncached: number): number[] {
    return [speed, (speed * (sample.prefillTokens + uncached)) / 1000, speed * (sample.waiting ?? 0)];
  }

  /** Inputs linear in (d, g): one, and K as the mean of its values at the decision and at the end. */
  #perTokenInputs(sample: TrainingSample, speed: number): number[] {
    const prefill = this.#firstOutput.theta[1]!;
    const busy = Math.min(BUSY_MAX, (speed * prefill * sample.prefillRate) / 1000);
    const perRequest = this.#outputTokens / 2 + CORE.SLOT_TOKENS;
    const tokens = (prompts: number, requests: number) => (prompts + requests * perRequest) / CORE.KV_TOKENS;
    const before = tokens(sample.promptTokensInFlight + sample.promptTokens, sample.inflight + 1);
    const after = tokens(sample.promptTokensAtEnd, sample.inflightAtEnd);
    const scale = speed / (1 - busy);
    return [scale, (scale * (before + after)) / 2];
  }
}

/** A term within a factor of its prior. */
function within(prior: number, factor: number, anchor: number) {
  return { prior, low: prior / factor, high: prior * factor, anchor };
}

function beside(predicted: Window, observed: Window): PredictedAndObserved | undefined {
  const [predictedMs, observedMs] = [timesOf(predicted), timesOf(observed)];
  return predictedMs === undefined || observedMs === undefined ? undefined : { predictedMs, observedMs };
}

function timesOf(window: Window): Times | undefined {
  const [p50, p90] = [window.quantile(0.5), window.quantile(0.9)];
  return p50 === undefined || p90 === undefined ? undefined : { p50, p90 };
}
