import type { AdaptationMode, GuardSettings } from '../config/adaptation.js';
import { type Arm, type ArmRecord, EpochRecords } from './epochs.js';

/**
 * shadow: the configured weights decide · canary: learned costs decide a fifth of the time · active: nearly always ·
 * fallback: the configured weights decide again, for a while
 */
export type GuardState = 'shadow' | 'canary' | 'active' | 'fallback';

/** What the guard is told at every tick. */
export interface Evidence {
  /** Labels learned from since the model was reset. */
  readonly labels: number;
  /** Rank correlation of predicted and observed times to first output; undefined = cannot be told. */
  readonly correlation: number | undefined;
  /** Median of ln(observed/predicted). */
  readonly bias: number | undefined;
  /** Share of finished requests that could be learned from; undefined = too few to tell. */
  readonly labelledShare: number | undefined;
  /** All coefficients are finite and above 0 where they must be. */
  readonly sound: boolean;
  /** Requests wait on every endpoint, since so many milliseconds. */
  readonly overloadedMs: number;
  /** 90th percentiles of the time to the end and to the first output; undefined = unknown. */
  readonly durationMs: number | undefined;
  readonly firstOutputMs: number | undefined;
  /** Labels per millisecond. */
  readonly labelRate: number;
}

/** A change that is worth a line in the log. */
export interface Transition {
  readonly from: GuardState;
  readonly to: GuardState;
  readonly reason: string;
}

/** Share of the epochs in which learned costs decide. */
const CANARY_SHARE = 0.2;
const ACTIVE_SHARE = 0.95;
/** Once this many epochs are in and nothing was lost, two epochs in a hundred are enough to compare with. */
const STABLE_SHARE = 0.98;
const STABLE_EPOCHS = 30;
/** Losses within so many epochs' budget are risked at once: otherwise nothing could ever be tried. */
const SLACK_EPOCHS = 5;
/** The budget looks back over about a hundred epochs, so that a long calm time does not pay for a bad one. */
const BUDGET_FADE = 0.99;
/** Epochs of the learned arm before it may become active. */
const LEAST_EPOCHS = 3;
const LEAST_CORRELATION = 0.1;
const LEAST_LABELS_FOR_BIAS = 300;
const MOST_BIAS = Math.log(4);
const LEAST_LABELLED = 0.5;
const OVERLOAD_MS = 30_000;
const LEAST_REQUESTS_PER_EPOCH = 200;
const LONGEST_PAUSE = 12;
/** An epoch is at most this many times the configured one, however few requests come. */
const LONGEST_EPOCH = 15;

/**
 * Decides, epoch by epoch, whether learned costs may drive: first nowhere, then a fifth of the time, then nearly always, and
 * not at all for a while when they are worse or the model is not to be trusted. Whole epochs are given to one arm and compared
 * in time, because arms that share endpoints spoil each other's results (Bojinov et al. 2009.00148; 2110.00118).
 * Time is an argument; the guard has no clock and no timer.
 */
export class Guard {
  readonly #settings: GuardSettings;
  readonly #mode: AdaptationMode;
  readonly #random: () => number;
  readonly #records = new EpochRecords();
  #state: GuardState = 'shadow';
  #arm: Arm;
  #epoch = 1;
  #epochEndsMs: number | undefined;
  #learnedEpochs = 0;
  #epochs = 0;
  #fallbacks = 0;
  #resumeMs = 0;
  #standsAside = false;

  /** @param random uniform in [0, 1) */
  constructor(mode: AdaptationMode, settings: GuardSettings, random: () => number) {
    this.#mode = mode;
    this.#settings = settings;
    this.#random = random;
    this.#arm = mode === 'always' ? 'learned' : 'static';
    if (mode === 'always') this.#state = 'active';
  }

  get state(): GuardState {
    return this.#state;
  }

  /** Who decides now. */
  get arm(): Arm {
    return this.#arm;
  }

  /** Number of the epoch under way, which the labels of its requests carry; 1 … 2^24 - 1, then from 1 again. */
  get epoch(): number {
    return this.#epoch;
  }

  /** The pool is overloaded and the configured weights decide until it is no more. */
  get standsAside(): boolean {
    return this.#standsAside;
  }

  get fallbacks(): number {
    return this.#fallbacks;
  }

  record(arm: Arm): ArmRecord {
    return this.#records.of(arm);
  }

  /** Share of the loss budget that has been risked, 0 … 1 and above; learned costs decide only below 1. */
  get risked(): number {
    return this.#loss(this.#learnedEpochs) / this.#allowance;
  }

  /** A request came to this cost, beside what a request of its kind should cost. */
  note(epoch: number, decidedAtMs: number, cost: number, reference: number): void {
    this.#records.note(epoch, decidedAtMs, cost, reference);
  }

  /**
   * Go on to `nowMs`; `gather` is asked only when the guard has something to decide.
   * @returns what has changed: `epoch` when a new one began (arm and number may differ), `transition` when the state did
   */
  tick(
    nowMs: number,
    gather: () => Evidence,
  ): { readonly epoch: boolean; readonly transition: Transition | undefined } {
    if (this.#mode !== 'auto') return { epoch: false, transition: undefined };
    const evidence = gather();
    this.#records.judge(nowMs - this.#grace(evidence));
    const transition = this.#transition(nowMs, evidence);
    if (transition !== undefined) this.#state = transition.to;
    const asideBefore = this.#standsAside;
    this.#standsAside = this.#driving && evidence.overloadedMs >= OVERLOAD_MS;
    const due = this.#epochEndsMs === undefined || nowMs >= this.#epochEndsMs;
    if (!due && transition === undefined && asideBefore === this.#standsAside) {
      return { epoch: false, transition };
    }
    this.#beginEpoch(nowMs, evidence);
    return { epoch: true, transition };
  }

  get #driving(): boolean {
    return this.#state === 'canary' || this.#state === 'active';
  }

  #transition(nowMs: number, evidence: Evidence): Transition | undefined {
    const from = this.#state;
    if (from === 'shadow') {
      const open = this.#obstacle(evidence) === undefined;
      return open
        ? { from, to: 'canary', reason: 'the predictions rank endpoints well enough to try them' }
        : undefined;
    }
    if (from === 'fallback') {
      if (nowMs < this.#resumeMs || this.#obstacle(evidence) !== undefined) return undefined;
      return { from, to: 'canary', reason: 'the pause is over and the predictions hold again' };
    }
    const alarm = this.#alarm(evidence) ?? this.#worse();
    if (alarm !== undefined) {
      this.#fallBack(nowMs);
      return { from, to: 'fallback', reason: alarm };
    }
    if (from === 'canary' && this.#proven()) {
      return { from, to: 'active', reason: 'the learned costs are no worse than the configured weights' };
    }
    return undefined;
  }

  /** Why learned costs may not be tried yet. */
  #obstacle(evidence: Evidence): string | undefined {
    const { labels, correlation } = this.#settings;
    if (evidence.labels < labels) return 'too few requests to learn from';
    if ((evidence.correlation ?? -1) <= correlation) return 'the predictions do not rank the requests';
    return this.#alarm(evidence);
  }

  /** Why the model is not to be trusted. */
  #alarm({ sound, labels, correlation, bias, labelledShare }: Evidence): string | undefined {
    if (!sound) return 'a coefficient is not a number or out of range';
    if (labels >= this.#settings.labels && correlation !== undefined && correlation < LEAST_CORRELATION) {
      return `predicted and observed times to first output hardly go together (rank correlation ${correlation.toFixed(2)})`;
    }
    if (labels >= LEAST_LABELS_FOR_BIAS && bias !== undefined && Math.abs(bias) > MOST_BIAS) {
      return `observed times are ${Math.exp(bias).toFixed(1)} times the predicted ones`;
    }
    if (labelledShare !== undefined && labelledShare < LEAST_LABELLED) {
      return `only ${Math.round(labelledShare * 100)} % of the requests can be learned from`;
    }
    return undefined;
  }

  /** The learned costs are worse beyond chance. */
  #worse(): string | undefined {
    const learned = this.#records.of('learned');
    const fixed = this.#records.of('static');
    if (learned.epochs < 1 || fixed.epochs < 1) return undefined;
    if (learned.mean - learned.halfWidth <= fixed.mean + fixed.halfWidth) return undefined;
    const percent = Math.round((Math.exp(learned.mean - fixed.mean) - 1) * 100);
    return `requests cost ${percent} % more than with the configured weights`;
  }

  #proven(): boolean {
    const learned = this.#records.of('learned');
    const fixed = this.#records.of('static');
    if (learned.epochs < LEAST_EPOCHS || fixed.epochs < LEAST_EPOCHS) return false;
    return learned.mean + learned.halfWidth < fixed.mean + Math.log1p(this.#settings.budget);
  }

  #fallBack(nowMs: number): void {
    const factor = Math.min(LONGEST_PAUSE, 2 ** this.#fallbacks);
    this.#fallbacks++;
    this.#resumeMs = nowMs + this.#settings.pauseMs * factor;
    this.#records.forget('learned');
  }

  #beginEpoch(nowMs: number, evidence: Evidence): void {
    const before = this.#arm;
    this.#records.end(this.#epoch, nowMs);
    this.#arm = this.#nextArm();
    this.#epoch = this.#epoch >= 0xff_ffff ? 1 : this.#epoch + 1;
    this.#epochs = BUDGET_FADE * this.#epochs + 1;
    this.#learnedEpochs = BUDGET_FADE * this.#learnedEpochs + Number(this.#arm === 'learned');
    const length = this.#epochLength(evidence);
    this.#epochEndsMs = nowMs + length;
    const burnIn = before === this.#arm ? 0 : Math.max(length / 3, evidence.firstOutputMs ?? 0);
    this.#records.begin(this.#epoch, this.#arm, nowMs + burnIn);
  }

  #nextArm(): Arm {
    if (!this.#driving || this.#standsAside) return 'static';
    // Conservative rule (after Kazerouni et al. 1611.06426): the loss that is possible so far must fit the budget.
    if (this.#loss(this.#learnedEpochs + 1) > this.#allowance) return 'static';
    return this.#random() < this.#share ? 'learned' : 'static';
  }

  get #share(): number {
    if (this.#state === 'canary') return CANARY_SHARE;
    return this.#learnedEpochs >= STABLE_EPOCHS ? STABLE_SHARE : ACTIVE_SHARE;
  }

  /** What `epochs` of the learned arm may have lost at most, in ln(cost). */
  #loss(epochs: number): number {
    const learned = this.#records.of('learned');
    const fixed = this.#records.of('static');
    // Nothing is known of an arm that has not played: it is taken to be like the other one, with all its uncertainty.
    const gap = learned.epochs === 0 ? 0 : learned.mean - fixed.mean;
    return epochs * Math.max(0, gap + learned.halfWidth + fixed.halfWidth);
  }

  get #allowance(): number {
    return Math.log1p(this.#settings.budget) * (this.#epochs + SLACK_EPOCHS);
  }

  /** Long enough for three long requests and for two hundred, give or take a quarter so that nothing keeps step with it. */
  #epochLength({ durationMs, labelRate }: Evidence): number {
    const { epochMs } = this.#settings;
    const forRequests = labelRate > 0 ? LEAST_REQUESTS_PER_EPOCH / labelRate : epochMs;
    const wanted = Math.max(epochMs, 3 * (durationMs ?? 0), forRequests);
    return Math.min(wanted, LONGEST_EPOCH * epochMs) * (0.75 + 0.5 * this.#random());
  }

  /** How long to wait for the last requests of an epoch. */
  #grace({ durationMs }: Evidence): number {
    return Math.min(2 * (durationMs ?? 0), LONGEST_EPOCH * this.#settings.epochMs);
  }
}
