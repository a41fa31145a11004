import type { AdaptationMode, GuardSettings } from '../config/adaptation.js';
import { ArmComparison, type Measure } from './arm-comparison.js';
import { ArmTurns } from './arm-turns.js';
import { type Arm, Comparison, EPOCH_REQUESTS, type Estimate } from './comparison.js';
import { Doubt } from './doubt.js';
import { errorOf, type JudgedEpoch, OpenEpochs } from './epochs.js';
import {
  ALARMING,
  dear,
  EPOCHS_MIN,
  type Evidence,
  type Findings,
  obstacle,
  proven,
  suspectsTail,
  unreliable,
  worse,
} from './guard-rules.js';
import { LossBudget, possibleLoss } from './loss-budget.js';
import { type GuardNews, type GuardState, type Lead, PeerGuards, type Stop } from './peer-guards.js';
import type { RequestCost } from './request-cost.js';

export type { GuardState } from './peer-guards.js';

/** Results of one arm's epochs, in ln(cost/reference). */
export interface ArmRecord extends Estimate {
  readonly epochs: number;
}

/** A change of state for the log. */
export interface Transition {
  readonly from: GuardState;
  readonly to: GuardState;
  readonly reason: string;
}

const UNCHANGED = { epoch: false, transition: undefined, judged: [] } as const;

/** Assumed noise of ln(p99) of an epoch's times, which one or two of one to two hundred requests decide. */
const TAIL_DEVIATION = 0.4;
const TAIL_UNKNOWN_GAP = 0.5;
/** Time for which requests wait on every endpoint before the guard stands aside. */
const OVERLOAD_MS = 30_000;
/** Epochs, of the configured length, in which the guard that leads has to call the configured weights for a doubt. */
const WITNESS_EPOCHS = 2;
/** Time for the last requests of an epoch to end, in 90th percentiles of their durations. */
const GRACE = 1.25;
/** Bound on the pause after a fallback, as a factor on the configured one. */
const PAUSE_FACTOR_MAX = 12;
/** Bound on the length of an epoch, as a factor on the configured one, for pools with few requests. */
const EPOCH_FACTOR_MAX = 15;

/**
 * Decides epoch by epoch whether learned costs drive the picks. At first they do not drive them, then in turn with the
 * configured weights within the loss budget, then nearly always. They are stopped for a while when they are worse or
 * the model is unreliable. Whole epochs belong to one arm and are compared in time, because arms that share endpoints
 * change each other's results (Bojinov et al. 2009.00148; 2110.00118). Time is an argument; the guard has no clock and
 * no timer.
 */
export class Guard {
  readonly #settings: GuardSettings;
  readonly #mode: AdaptationMode;
  readonly #random: () => number;
  readonly #turns: ArmTurns;
  readonly #budget: LossBudget;
  readonly #rotates: boolean;
  readonly #open = new OpenEpochs();
  readonly #comparison = new ArmComparison();
  /** The same of the slowest hundredth. */
  readonly #tails = {
    firstOutput: new Comparison(TAIL_DEVIATION, TAIL_UNKNOWN_GAP),
    perToken: new Comparison(TAIL_DEVIATION, TAIL_UNKNOWN_GAP),
  };
  #state: GuardState = 'shadow';
  #arm: Arm;
  #epoch = 1;
  #epochEndsMs: number | undefined;
  #fallbacks = 0;
  #resumeMs = 0;
  #standsAside = false;
  /** Reason why the configured weights are active, for the debug page. */
  #hindrance = 'nothing has been learned yet';
  #alarmed = '';
  readonly #peers: PeerGuards;
  #stop: Stop | undefined;
  /** Doubt that the configured weights have to clear up. */
  #doubt: Doubt | undefined;
  /** Stops that this guard has made by its own samples. */
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
    this.#turns = new ArmTurns(random);
    this.#budget = new LossBudget(settings.budget);
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
    const { level, gap } = this.#comparison.cost;
    const epochs = this.#comparison.cost.epochs(arm);
    if (arm === 'static') return { epochs, ...level };
    return { epochs, mean: level.mean + gap.mean, halfWidth: gap.halfWidth };
  }

  /** ln(cost with learned costs / cost with the configured weights). */
  get gap(): Estimate {
    return this.#comparison.cost.gap;
  }

  /** What decides between the arms: their cost, or the goodput of requests with latency targets. */
  get measure(): Measure {
    return this.#comparison.measure;
  }

  /** ln(goodput with the configured weights / goodput with learned costs); undefined = requests have no targets. */
  get goodputGap(): Estimate | undefined {
    return this.#comparison.goodputGap;
  }

  /** Share of the requests with latency targets that met theirs, 0 … 1; undefined = the arm has seen none. */
  goodputOf(arm: Arm): number | undefined {
    return this.#comparison.goodputOf(arm);
  }

  /** ln(TTFT p99 with learned costs / TTFT p99 with the configured weights). */
  get tailGap(): Estimate {
    return this.#tails.firstOutput.gap;
  }

  /** The same of the time per output token. */
  get tokenTailGap(): Estimate {
    return this.#tails.perToken.gap;
  }

  /** Risked share of the loss budget, 0 … 1 and above; learned costs are active only below 1. */
  get risked(): number {
    return this.#budget.risked(this.#believedGap);
  }

  /** State for the guards of other replicas. */
  news(nowMs: number): GuardNews {
    return {
      replica: this.#peers.replica,
      state: this.#state,
      arm: this.#arm,
      epoch: this.#epoch,
      gap: this.#comparison.decisive.gap,
      epochs: this.#comparison.decisive.epochs('learned'),
      stop: this.#stop,
      pauseMs: Math.max(0, this.#resumeMs - nowMs),
    };
  }

  /** Adds the cost of a request that was decided in `epoch`. @param standsFor requests that this sample stands for */
  note(epoch: number, decidedAtMs: number, cost: RequestCost, standsFor = 1): void {
    this.#open.note(epoch, decidedAtMs, cost, standsFor);
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
    const stops = this.#doubt !== undefined && lead === undefined && this.#arm === 'learned';
    const begins = due || stops || transition !== undefined || asideBefore !== this.#standsAside;
    if (begins) this.#beginEpoch(nowMs, evidence, lead);
    return { epoch: begins, transition, judged };
  }

  #add(epoch: JudgedEpoch): void {
    if (epoch.arm === 'learned')
      this.#doubt?.raise(epoch.result - errorOf(epoch.noted, this.#comparison.cost.deviation));
    this.#comparison.add(epoch);
    const { tail, tokenTail } = epoch;
    if (tail !== undefined) this.#tails.firstOutput.add({ ...epoch, result: tail, deviation: undefined });
    if (tokenTail !== undefined) this.#tails.perToken.add({ ...epoch, result: tokenTail, deviation: undefined });
  }

  get #driving(): boolean {
    return this.#state === 'canary' || this.#state === 'active';
  }

  #transition(nowMs: number, evidence: Evidence): Transition | undefined {
    const from = this.#state;
    const elsewhere = this.#stopElsewhere(nowMs);
    if (elsewhere !== undefined && this.#driving) return { from, to: 'fallback', reason: elsewhere };
    if (from === 'shadow') {
      return nowMs >= this.#resumeMs && this.#clear(nowMs, evidence)
        ? { from, to: 'canary', reason: 'the predictions rank endpoints well enough to try them' }
        : undefined;
    }
    if (from === 'fallback') {
      if (nowMs < this.#resumeMs || !this.#clear(nowMs, evidence)) return undefined;
      return { from, to: 'canary', reason: 'the pause is over and the predictions hold again' };
    }
    const alarm = unreliable(evidence, this.#settings) ?? worse(this.#findings, from) ?? this.#tooDear(nowMs);
    if (alarm !== undefined) {
      this.#stopHere(nowMs, alarm);
      return { from, to: 'fallback', reason: alarm };
    }
    if (this.#doubt !== undefined) return undefined;
    if (from === 'canary' && proven(this.#findings, this.#settings)) {
      return { from, to: 'active', reason: 'the learned costs are no worse than the configured weights' };
    }
    return from === 'canary' ? this.#provenElsewhere(nowMs) : undefined;
  }

  /**
   * Doubts learned costs whose open epochs cost far more than the configured weights before them, and clears a doubt
   * up. The guard that others keep step with calls the configured weights at once; one that waits for it in vain takes
   * the doubt for true.
   * @returns the reason to stop
   */
  #tooDear(nowMs: number): string | undefined {
    const cost = this.#worstSoFar;
    if (this.#doubt === undefined) {
      if (this.#excess > ALARMING) this.#begins(new Doubt(this.#open.count('learned'), cost, nowMs));
      return undefined;
    }
    this.#doubt.raise(cost);
    const last = this.#comparison.cost.latest!;
    if (this.#doubt.waitsFor(nowMs) > WITNESS_EPOCHS * this.#settings.epochMs) {
      return dear(this.#doubt.cost - last, 'just before');
    }
    const verdict = this.#doubt.verdict((epoch) => this.#open.costSoFar(epoch, this.#comparison.cost.deviation), last);
    if (verdict === 'cleared') this.#doubt = undefined;
    return typeof verdict === 'string' ? undefined : dear(verdict.excess, 'before and after');
  }

  #begins(doubt: Doubt): void {
    this.#doubt = doubt;
    if (this.#arm === 'static') doubt.callWitness(this.#epoch);
  }

  /** Repeats the stop of a peer, unless this guard has made it already. @returns its reason */
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
    const factor = Math.min(PAUSE_FACTOR_MAX, 2 ** this.#fallbacks);
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
  #clear(nowMs: number, evidence: Evidence): boolean {
    const isBlind = this.#comparison.cost.latest === undefined && this.#peers.proof(nowMs) === undefined;
    const blind = 'no epoch of the configured weights has a result yet, by which a try could be stopped';
    const reason = obstacle(evidence, this.#settings) ?? (isBlind ? blind : undefined);
    if (reason !== undefined) this.#hindrance = reason;
    return reason === undefined;
  }

  get #findings(): Findings {
    return { arms: this.#comparison, tails: this.#tails };
  }

  /** ln of the least cost of the open epochs of learned costs, against the last epoch of the configured weights. */
  get #excess(): number {
    const { latest } = this.#comparison.cost;
    return latest === undefined ? 0 : Math.max(0, this.#worstSoFar - latest);
  }

  /** ln of what the open epochs of learned costs cost at least. */
  get #worstSoFar(): number {
    return this.#open.worstSoFar('learned', this.#comparison.cost.deviation);
  }

  #fallBack(): void {
    this.#budget.endTry(this.#believedGap, this.#unjudgedLoss);
    this.#doubt = undefined;
    this.#turns.reset();
    this.#proof = undefined;
    this.#comparison.forgetGap();
    this.#tails.firstOutput.forgetGap();
    this.#tails.perToken.forgetGap();
    this.#open.forget('learned');
  }

  #beginEpoch(nowMs: number, evidence: Evidence, lead: Lead | undefined): void {
    const before = this.#arm;
    this.#open.end(this.#epoch, nowMs);
    if (this.#turns.probeIsOut && !this.#open.has('learned')) this.#turns.endProbe();
    this.#arm = lead === undefined || this.#standsAside ? this.#nextArm() : this.#armOf(lead);
    const probes = this.#state === 'canary' && this.#arm === 'learned' && this.#turns.probeIsDue;
    if (probes) this.#turns.beginProbe();
    this.#epoch = this.#epoch >= 0xff_ffff ? 1 : this.#epoch + 1;
    if (this.#arm === 'static') this.#doubt?.callWitness(this.#epoch);
    this.#budget.begin(this.#arm);
    const length = probes ? this.#settings.epochMs : this.#epochLength(evidence);
    this.#epochEndsMs = nowMs + length;
    const changes = before !== this.#arm || (this.#rotates && this.#arm === 'learned');
    const burnIn = !changes ? 0 : Math.max(length / 3, evidence.firstOutputMs ?? 0);
    const early = this.#open.begin(this.#epoch, this.#arm, nowMs + burnIn);
    if (early !== undefined) this.#add(early);
  }

  /**
   * Arm of the guard that this one follows: different arms of replicas with the same endpoints would change each
   * other's results.
   */
  #armOf({ replica, arm }: Lead): Arm {
    this.#hindrance = `it is the turn of the configured weights, as at replica ${replica}`;
    return arm;
  }

  #nextArm(): Arm {
    if (this.#mode === 'always') return 'learned';
    if (!this.#driving || this.#standsAside) return 'static';
    if (this.#doubt !== undefined) {
      this.#hindrance = 'requests cost far more than before, and the configured weights tell whether it is the traffic';
      return 'static';
    }
    const hasRoom = this.#budget.hasRoom(this.#believedGap);
    this.#hindrance = hasRoom
      ? 'it is the turn of the configured weights, to compare with'
      : 'what one more epoch of learned costs may lose would go beyond the budget';
    return this.#turn(hasRoom);
  }

  #turn(hasRoom: boolean): Arm {
    if (this.#state === 'canary') return this.#turns.ofCanary(hasRoom);
    // One epoch in fifty of the configured weights is a thin comparison of tails: a suspicion is looked into in pairs.
    if (suspectsTail(this.#tails)) return this.#turns.ofPair(hasRoom);
    return this.#turns.ofActive(this.#budget.learnedEpochs, hasRoom);
  }

  /** The own gap, or that of the peer whose proof was taken while the own evidence is thin. */
  get #believedGap(): Estimate {
    const { gap } = this.#comparison.decisive;
    return this.#proof !== undefined && gap.halfWidth > this.#proof.halfWidth ? this.#proof : gap;
  }

  /**
   * Loss of the open and the doubted epochs of learned costs beyond what the budget takes them for. They are forgotten
   * with the try: without this a try that ends in an alarm would cost the budget next to nothing, and be repeated after
   * every pause.
   */
  get #unjudgedLoss(): number {
    const doubted = this.#doubt === undefined ? 0 : this.#doubt.cost - this.#comparison.cost.latest!;
    const beyond = Math.expm1(Math.max(this.#excess, doubted)) - possibleLoss(this.#comparison.cost.gap);
    return Math.max(this.#open.count('learned'), this.#doubt?.epochs ?? 0) * Math.max(0, beyond);
  }

  /**
   * Length of an epoch: enough for two long requests and for 150 requests, varied by a quarter against resonance.
   */
  #epochLength({ durationMs, sampleRate }: Evidence): number {
    const { epochMs } = this.#settings;
    const forRequests = sampleRate > 0 ? EPOCH_REQUESTS / sampleRate : epochMs;
    const wanted = Math.max(epochMs, 2 * (durationMs ?? 0), forRequests);
    return Math.min(wanted, EPOCH_FACTOR_MAX * epochMs) * (0.75 + 0.5 * this.#random());
  }

  /** Time for the last requests of an epoch to end. */
  #grace({ durationMs }: Evidence): number {
    return Math.min(GRACE * (durationMs ?? 0), EPOCH_FACTOR_MAX * this.#settings.epochMs);
  }
}
