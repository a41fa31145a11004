import type { AdaptationMode, GuardSettings } from '../config/adaptation.js';
import { type Arm, Comparison, type Estimate } from './comparison.js';
import { type JudgedEpoch, OpenEpochs } from './epochs.js';
import { type GuardNews, type GuardState, type Lead, PeerGuards, type Stop } from './peer-guards.js';
import type { RequestCost } from './request-cost.js';

export type { GuardState } from './peer-guards.js';

/** Results of one arm's epochs, in ln(cost/reference). */
export interface ArmRecord extends Estimate {
  readonly epochs: number;
}

/** Input of the guard at every tick. */
export interface Evidence {
  /** Samples learned from since the model was reset. */
  readonly labels: number;
  /** Rank correlation of predicted and observed times to first output; undefined = cannot be computed. */
  readonly correlation: number | undefined;
  /** Median of ln(observed/predicted). */
  readonly bias: number | undefined;
  /** Share of finished requests that were usable as samples; undefined = too few requests. */
  readonly sampledShare: number | undefined;
  /** Whether all coefficients are finite and positive where they must be. */
  readonly sound: boolean;
  /** Milliseconds for which requests have waited on every endpoint. */
  readonly overloadedMs: number;
  /** 90th percentiles of the times to the end and to the first output; undefined = unknown. */
  readonly durationMs: number | undefined;
  readonly firstOutputMs: number | undefined;
  /** Samples per millisecond. */
  readonly sampleRate: number;
}

/** A change of state for the log. */
export interface Transition {
  readonly from: GuardState;
  readonly to: GuardState;
  readonly reason: string;
}

const UNCHANGED = { epoch: false, transition: undefined, judged: [] } as const;

/** Share of the epochs with learned costs in the state `active`. */
const ACTIVE_SHARE = 0.95;
/** The same share after enough epochs without a loss: 2 % of the epochs suffice for the comparison. */
const STABLE_SHARE = 0.98;
const STABLE_EPOCHS = 30;
/** Epochs whose loss budget is available at once. Without it no first try would be possible. */
const SLACK_EPOCHS = 5;
/** Fading of the budget per epoch (about a hundred epochs), so that a long calm time does not pay for a bad one. */
const BUDGET_FADE = 0.99;
/** Minimum of epochs of the learned arm before the state `active`. */
const EPOCHS_MIN = 2;
/**
 * Thresholds for stopping, in half widths of the 95 % interval. A canary stops early: it will be repeated, and its
 * cache misses are expensive. An active model stops only at p < 1/400.
 */
const BEYOND_CHANCE = { canary: 1, active: 1.5 } as const;
/** Log cost ratio to the last configured epoch at which an epoch is stopped before its end. */
const ALARMING = Math.log(1.35);
/** Multiple of the configured weights' TTFT p99 from which on learned costs are worse, whatever the mean says. */
const SLOW_TAIL = Math.log(1.5);
/** Assumed noise of ln(TTFT p99) of an epoch, which about two of two hundred requests decide. */
const TAIL_DEVIATION = 0.4;
const TAIL_UNKNOWN_GAP = 0.5;
/** As BEYOND_CHANCE, of the slowest hundredth, whose results vary more. */
const TAIL_BEYOND_CHANCE = { canary: 1.5, active: 2.5 } as const;
const CORRELATION_MIN = 0.1;
const BIAS_SAMPLES_MIN = 300;
const BIAS_MAX = Math.log(4);
const SAMPLED_MIN = 0.5;
const OVERLOAD_MS = 30_000;
const EPOCH_REQUESTS_MIN = 200;
const PAUSE_EPOCHS_MAX = 12;
/** Bound on the length of an epoch, as a factor on the configured one, for pools with few requests. */
const EPOCH_FACTOR_MAX = 15;

/**
 * Decides epoch by epoch whether learned costs drive the picks. At first they do not, then in turn with the configured
 * weights as far as the loss budget allows, then nearly always. They are stopped for a while when they are worse or the
 * model is unreliable. Whole epochs belong to one arm and are compared in time, because arms that share endpoints spoil
 * each other's results (Bojinov et al. 2009.00148; 2110.00118). Time is an argument; the guard has no clock and no
 * timer.
 */
export class Guard {
  readonly #settings: GuardSettings;
  readonly #mode: AdaptationMode;
  readonly #random: () => number;
  readonly #rotates: boolean;
  readonly #open = new OpenEpochs();
  readonly #comparison = new Comparison();
  /** The same of the slowest hundredth: ln(TTFT p99). */
  readonly #tails = new Comparison(TAIL_DEVIATION, TAIL_UNKNOWN_GAP);
  #state: GuardState = 'shadow';
  #arm: Arm;
  #epoch = 1;
  #epochEndsMs: number | undefined;
  /** out: the probe has started and some of its requests are still running. */
  #probe: 'due' | 'out' | 'over' = 'due';
  /** Arms of the rest of a pair. */
  #turns: Arm[] = [];
  #learnedEpochs = 0;
  #epochs = 0;
  /** Possible loss of the tries before the last fallback. */
  #lostBefore = 0;
  #fallbacks = 0;
  #resumeMs = 0;
  #standsAside = false;
  /** Reason why the configured weights are active, for the debug page. */
  #hindrance = 'nothing has been learned yet';
  #alarmed = '';
  readonly #peers: PeerGuards;
  #stop: Stop | undefined;
  /** Stops that this guard has found itself. */
  #stops = 0;
  /** Evidence of an active peer, in the place of the own while that is thin. */
  #proof: Estimate | undefined;
  /** Replica and epoch that this guard keeps step with. */
  #step: string | undefined;

  /**
   * @param random uniform in [0, 1)
   * @param rotates whether the learned arm may differ from epoch to epoch. Each epoch then starts with a burn-in, also
   * without a guard
   * @param peers guards of other replicas of the pool
   */
  constructor(
    mode: AdaptationMode,
    settings: GuardSettings,
    random: () => number,
    rotates = false,
    peers = new PeerGuards(''),
  ) {
    this.#peers = peers;
    this.#rotates = rotates;
    this.#mode = mode;
    this.#settings = settings;
    this.#random = random;
    this.#arm = mode === 'always' ? 'learned' : 'static';
    if (mode === 'always') this.#state = 'active';
  }

  get state(): GuardState {
    return this.#state;
  }

  /** The active arm. */
  get arm(): Arm {
    return this.#arm;
  }

  /** Number of the present epoch, which its samples carry; 1 … 2^24 - 1, then from 1 again. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Whether the configured weights are active because the pool is overloaded. */
  get standsAside(): boolean {
    return this.#standsAside;
  }

  /** Reason why the configured weights are active at `nowMs`; undefined while learned costs are. */
  why(nowMs: number): string | undefined {
    if (this.#arm === 'learned') return undefined;
    if (this.#mode === 'off') return 'adaptation is off';
    if (this.#mode === 'shadow') return 'learned costs only look on (mode: shadow)';
    if (this.#standsAside) return 'requests wait on every endpoint; it is not a question of where then';
    if (this.#state !== 'fallback') return this.#hindrance;
    const minutes = Math.max(0, (this.#resumeMs - nowMs) / 60_000);
    const next =
      minutes > 0 ? `tried again in ${minutes.toFixed(1)} minutes` : `not tried again yet: ${this.#hindrance}`;
    return `learned costs were taken back, because ${this.#alarmed}; ${next}`;
  }

  get fallbacks(): number {
    return this.#fallbacks;
  }

  record(arm: Arm): ArmRecord {
    const { level, gap } = this.#comparison;
    const epochs = this.#comparison.epochs(arm);
    if (arm === 'static') return { epochs, ...level };
    return { epochs, mean: level.mean + gap.mean, halfWidth: gap.halfWidth };
  }

  /** ln(cost with learned costs / cost with the configured weights). */
  get gap(): Estimate {
    return this.#comparison.gap;
  }

  /** ln(TTFT p99 with learned costs / TTFT p99 with the configured weights). */
  get tailGap(): Estimate {
    return this.#tails.gap;
  }

  /** Risked share of the loss budget, 0 … 1 and above; learned costs are active only below 1. */
  get risked(): number {
    return this.#loss(this.#learnedEpochs) / this.#allowance;
  }

  /** State for the guards of other replicas. */
  news(nowMs: number): GuardNews {
    return {
      replica: this.#peers.replica,
      state: this.#state,
      arm: this.#arm,
      epoch: this.#epoch,
      gap: this.gap,
      epochs: this.#comparison.epochs('learned'),
      stop: this.#stop,
      pauseMs: Math.max(0, this.#resumeMs - nowMs),
    };
  }

  /** Adds the cost of a request that was decided in `epoch`. */
  note(epoch: number, decidedAtMs: number, cost: RequestCost): void {
    this.#open.note(epoch, decidedAtMs, cost);
  }

  /**
   * Advances to `nowMs`; `gather` is called only when the guard has something to decide.
   * @returns the changes: `epoch` when a new one began (arm and number may differ), `transition` at a new state, and
   * the epochs
   * whose results have arrived
   */
  tick(
    nowMs: number,
    gather: () => Evidence,
  ): {
    readonly epoch: boolean;
    readonly transition: Transition | undefined;
    readonly judged: readonly JudgedEpoch[];
  } {
    const guards = this.#mode === 'auto';
    if (!guards && !(this.#mode === 'always' && this.#rotates)) return UNCHANGED;
    const evidence = gather();
    const judged = this.#open.judge(nowMs - this.#grace(evidence));
    for (const result of judged) this.#add(result);
    const transition = guards ? this.#transition(nowMs, evidence) : undefined;
    if (transition !== undefined) this.#state = transition.to;
    const lead = guards && this.#driving ? this.#peers.lead(nowMs) : undefined;
    const step = lead === undefined ? undefined : `${lead.replica} ${lead.epoch} ${lead.arm}`;
    const asideBefore = this.#standsAside;
    this.#standsAside = guards && this.#driving && evidence.overloadedMs >= OVERLOAD_MS;
    const ended = this.#epochEndsMs === undefined || nowMs >= this.#epochEndsMs;
    const due = step === undefined ? ended : step !== this.#step;
    this.#step = step;
    const begins = due || transition !== undefined || asideBefore !== this.#standsAside;
    if (begins) this.#beginEpoch(nowMs, evidence, lead);
    return { epoch: begins, transition, judged };
  }

  #add(epoch: JudgedEpoch): void {
    this.#comparison.add(epoch);
    if (epoch.tail !== undefined) this.#tails.add({ ...epoch, result: epoch.tail });
  }

  get #driving(): boolean {
    return this.#state === 'canary' || this.#state === 'active';
  }

  #transition(nowMs: number, evidence: Evidence): Transition | undefined {
    const from = this.#state;
    const elsewhere = this.#stopElsewhere(nowMs);
    if (elsewhere !== undefined && this.#driving) return { from, to: 'fallback', reason: elsewhere };
    if (from === 'shadow') {
      return nowMs >= this.#resumeMs && this.#clear(evidence)
        ? { from, to: 'canary', reason: 'the predictions rank endpoints well enough to try them' }
        : undefined;
    }
    if (from === 'fallback') {
      if (nowMs < this.#resumeMs || !this.#clear(evidence)) return undefined;
      return { from, to: 'canary', reason: 'the pause is over and the predictions hold again' };
    }
    const alarm = this.#alarm(evidence) ?? this.#worse(from);
    if (alarm !== undefined) {
      this.#stopHere(nowMs, alarm);
      return { from, to: 'fallback', reason: alarm };
    }
    if (from === 'canary' && this.#proven()) {
      return { from, to: 'active', reason: 'the learned costs are no worse than the configured weights' };
    }
    return from === 'canary' ? this.#provenElsewhere(nowMs) : undefined;
  }

  /** Makes a stop that a peer reports, as far as this guard has not made it. @returns its reason */
  #stopElsewhere(nowMs: number): string | undefined {
    const taken = this.#peers.takeStop(nowMs);
    if (taken === undefined) return undefined;
    const { stop, pauseMs } = taken;
    const reason = `replica ${stop.replica} found: ${stop.reason}`;
    if (this.#driving) this.#fallBack();
    this.#stop = stop;
    this.#alarmed = reason;
    this.#hindrance = `learned costs were taken back, because ${reason}`;
    this.#fallbacks = Math.max(this.#fallbacks, stop.fallbacks);
    this.#resumeMs = Math.max(this.#resumeMs, nowMs + pauseMs);
    return reason;
  }

  #stopHere(nowMs: number, reason: string): void {
    const factor = Math.min(PAUSE_EPOCHS_MAX, 2 ** this.#fallbacks);
    this.#fallbacks++;
    this.#resumeMs = nowMs + this.#settings.pauseMs * factor;
    this.#fallBack();
    this.#alarmed = reason;
    this.#stop = { replica: this.#peers.replica, number: ++this.#stops, reason, fallbacks: this.#fallbacks };
    this.#peers.noteStop(this.#stop);
  }

  /** The proof of an active peer stands for that of a canary here. */
  #provenElsewhere(nowMs: number): Transition | undefined {
    const proof = this.#peers.proof(nowMs);
    if (proof === undefined || proof.epochs < EPOCHS_MIN) return undefined;
    this.#proof = proof.gap;
    const reason = `replica ${proof.replica} has found learned costs no worse than the configured weights`;
    return { from: 'canary', to: 'active', reason };
  }

  /** Whether learned costs may be tried; keeps the reason when they may not. */
  #clear(evidence: Evidence): boolean {
    const obstacle = this.#obstacle(evidence);
    if (obstacle !== undefined) this.#hindrance = obstacle;
    return obstacle === undefined;
  }

  /** Reason why learned costs may not be tried yet. */
  #obstacle(evidence: Evidence): string | undefined {
    const { labels, correlation } = this.#settings;
    if (evidence.labels < labels) return `${evidence.labels} of ${labels} requests that have to be learned from first`;
    if ((evidence.correlation ?? -1) <= correlation) {
      return `predictions do not rank the requests (rank correlation ${evidence.correlation?.toFixed(2) ?? 'unknown'}, wanted above ${correlation})`;
    }
    return this.#alarm(evidence);
  }

  /** Reason why the model is unreliable. */
  #alarm({ sound, labels, correlation, bias, sampledShare }: Evidence): string | undefined {
    if (!sound) return 'a coefficient is not a number or out of range';
    if (labels >= this.#settings.labels && correlation !== undefined && correlation < CORRELATION_MIN) {
      return `predicted and observed times to first output hardly go together (rank correlation ${correlation.toFixed(2)})`;
    }
    if (labels >= BIAS_SAMPLES_MIN && bias !== undefined && Math.abs(bias) > BIAS_MAX) {
      return `observed times are ${Math.exp(bias).toFixed(1)} times the predicted ones`;
    }
    if (sampledShare !== undefined && sampledShare < SAMPLED_MIN) {
      return `only ${Math.round(sampledShare * 100)} % of the requests can be learned from`;
    }
    return undefined;
  }

  /** Reason when the learned costs are significantly worse. */
  #worse(state: 'canary' | 'active'): string | undefined {
    const { gap } = this.#comparison;
    const excess = this.#excess;
    if (excess > ALARMING) {
      return `requests cost ${Math.exp(excess).toFixed(1)} times as much as they did with the configured weights just before`;
    }
    if (this.#comparison.epochs('learned') === 0) return undefined;
    if (this.#isSlowTail(state)) {
      const times = Math.exp(this.#tails.gap.mean).toFixed(1);
      return `the slowest hundredth waits ${times} times as long for the first output as with the configured weights`;
    }
    if (gap.mean <= BEYOND_CHANCE[state] * gap.halfWidth) return undefined;
    return `requests cost ${Math.round(Math.expm1(gap.mean) * 100)} % more than with the configured weights`;
  }

  /** ln of what the open epochs of learned costs cost at least, against the last epoch of the configured weights. */
  get #excess(): number {
    const { latest } = this.#comparison;
    return latest === undefined ? 0 : Math.max(0, this.#open.worstSoFar('learned') - latest);
  }

  #isSlowTail(state: 'canary' | 'active'): boolean {
    const { mean, halfWidth } = this.#tails.gap;
    return this.#tails.epochs('learned') > 0 && mean >= SLOW_TAIL && mean > TAIL_BEYOND_CHANCE[state] * halfWidth;
  }

  #proven(): boolean {
    const { gap } = this.#comparison;
    if (this.#comparison.epochs('learned') < EPOCHS_MIN) return false;
    return gap.mean + gap.halfWidth < Math.log1p(this.#settings.budget);
  }

  #fallBack(): void {
    this.#lostBefore = this.#loss(this.#learnedEpochs) + this.#unjudgedLoss;
    this.#learnedEpochs = 0;
    this.#turns = [];
    this.#probe = 'due';
    this.#proof = undefined;
    this.#comparison.forgetGap();
    this.#tails.forgetGap();
    this.#open.forget('learned');
  }

  #beginEpoch(nowMs: number, evidence: Evidence, lead: Lead | undefined): void {
    const before = this.#arm;
    this.#open.end(this.#epoch, nowMs);
    if (this.#probe === 'out' && !this.#open.has('learned')) this.#probe = 'over';
    this.#arm = lead === undefined || this.#standsAside ? this.#nextArm() : this.#armOf(lead);
    const probes = this.#state === 'canary' && this.#arm === 'learned' && this.#probe === 'due';
    if (probes) this.#probe = 'out';
    this.#epoch = this.#epoch >= 0xff_ffff ? 1 : this.#epoch + 1;
    this.#epochs = BUDGET_FADE * this.#epochs + 1;
    this.#learnedEpochs = BUDGET_FADE * this.#learnedEpochs + Number(this.#arm === 'learned');
    this.#lostBefore *= BUDGET_FADE;
    const length = probes ? this.#settings.epochMs : this.#epochLength(evidence);
    this.#epochEndsMs = nowMs + length;
    const changes = before !== this.#arm || (this.#rotates && this.#arm === 'learned');
    const burnIn = !changes ? 0 : Math.max(length / 3, evidence.firstOutputMs ?? 0);
    const early = this.#open.begin(this.#epoch, this.#arm, nowMs + burnIn);
    if (early !== undefined) this.#add(early);
  }

  /** Arm of the guard that this one keeps step with: arms of replicas that share endpoints would spoil each other's results. */
  #armOf({ replica, arm }: Lead): Arm {
    this.#hindrance = `it is the turn of the configured weights, as at replica ${replica}`;
    return arm;
  }

  #nextArm(): Arm {
    if (this.#mode === 'always') return 'learned';
    if (!this.#driving || this.#standsAside) return 'static';
    const turn = this.#turn();
    // Conservative rule (after Kazerouni et al. 1611.06426): the possible loss so far must fit the budget.
    const fits = this.#loss(this.#learnedEpochs + 1) <= this.#allowance;
    this.#hindrance = fits
      ? 'it is the turn of the configured weights, to compare with'
      : 'what one more epoch of learned costs may lose would go beyond the budget';
    return fits ? turn : 'static';
  }

  /**
   * Next arm of a try. It begins with a short probe, whose requests must end first. Pairs of one epoch each follow in
   * random order (randomised blocks), so that a trend favours neither arm.
   */
  #turn(): Arm {
    if (this.#state === 'canary') {
      if (this.#probe === 'due') return 'learned';
      if (this.#probe === 'out') return 'static';
      return this.#ofPair();
    }
    // One epoch in fifty of the configured weights is a thin comparison of tails: a suspicion is looked into in pairs.
    if (this.#tails.gap.mean >= SLOW_TAIL) return this.#ofPair();
    const share = this.#learnedEpochs >= STABLE_EPOCHS ? STABLE_SHARE : ACTIVE_SHARE;
    return this.#random() < share ? 'learned' : 'static';
  }

  #ofPair(): Arm {
    if (this.#turns.length === 0) {
      this.#turns = this.#random() < 0.5 ? ['learned', 'static'] : ['static', 'learned'];
    }
    return this.#turns.shift()!;
  }

  /** The own gap, or that of the peer whose proof was taken while the own evidence is thin. */
  get #believedGap(): Estimate {
    const { gap } = this.#comparison;
    return this.#proof !== undefined && gap.halfWidth > this.#proof.halfWidth ? this.#proof : gap;
  }

  /** Upper bound on the loss of `epochs` of the learned arm and of earlier tries, in epochs of the configured weights. */
  #loss(epochs: number): number {
    const { mean, halfWidth } = this.#believedGap;
    return this.#lostBefore + epochs * Math.max(0, Math.expm1(mean + halfWidth));
  }

  /**
   * Loss of the open epochs of learned costs beyond what `#loss` takes them for. They are not judged, and are forgotten with the
   * try: without this a try that ends in an alarm would cost the budget next to nothing, and be repeated after every pause.
   */
  get #unjudgedLoss(): number {
    const { mean, halfWidth } = this.#comparison.gap;
    const beyond = Math.expm1(this.#excess) - Math.max(0, Math.expm1(mean + halfWidth));
    return this.#open.count('learned') * Math.max(0, beyond);
  }

  get #allowance(): number {
    return this.#settings.budget * (this.#epochs + SLACK_EPOCHS);
  }

  /** Length of an epoch: enough for two long requests and for two hundred requests, varied by a quarter against resonance. */
  #epochLength({ durationMs, sampleRate }: Evidence): number {
    const { epochMs } = this.#settings;
    const forRequests = sampleRate > 0 ? EPOCH_REQUESTS_MIN / sampleRate : epochMs;
    const wanted = Math.max(epochMs, 2 * (durationMs ?? 0), forRequests);
    return Math.min(wanted, EPOCH_FACTOR_MAX * epochMs) * (0.75 + 0.5 * this.#random());
  }

  /** Time for the last requests of an epoch to end. */
  #grace({ durationMs }: Evidence): number {
    return Math.min(2 * (durationMs ?? 0), EPOCH_FACTOR_MAX * this.#settings.epochMs);
  }
}
