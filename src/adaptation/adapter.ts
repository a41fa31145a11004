import type { AdaptationSettings } from '../config/adaptation.js';
import type { TierPrices } from '../contract/block-place.js';
import {
  type Coefficients,
  type CostTable,
  costTerms,
  type HardwareCoefficients,
  type TermShares,
} from '../core/coefficients.js';
import type { ComputedTokens } from '../core/decision-log.js';
import type { SampleReader } from '../core/sample-reader.js';
import type { TrainingSample } from '../core/training-sample.js';
import type { Measure } from './arm-comparison.js';
import type { Arm, Estimate } from './comparison.js';
import { CostModel, type Fit, type LearnedClass } from './cost-model.js';
import { EvictionPrice } from './eviction-price.js';
import { type ArmRecord, Guard, type GuardState, type Transition } from './guard.js';
import type { Evidence } from './guard-rules.js';
import type { GuardNews, PeerGuards } from './peer-guards.js';
import { Projection } from './projection.js';
import { requestCost } from './request-cost.js';
import { RuleChoice, type RuleRecord } from './rule-choice.js';
import { hasWaitedForMemory } from './sample-work.js';
import type { TierPricing } from './tier-costs.js';
import { Window } from './window.js';

/** The arm that drives the decisions, and the tag of their training samples. */
export interface Drive {
  readonly arm: Arm;
  readonly tag: number;
  /** Weights of the projected scorers; undefined = no projection drives the decisions. */
  readonly weights?: readonly number[] | undefined;
  /** Number of the rule that drives the decisions (scheduling/rules.ts); with `drive: rules` only. */
  readonly rule?: number | undefined;
}

export interface AdapterOptions {
  readonly settings: AdaptationSettings;
  readonly samples: Pick<SampleReader, 'drain' | 'lost'>;
  readonly coefficients: Pick<CostTable, 'write' | 'writeEndpoint' | 'shares' | 'projection'>;
  /** Tokens that endpoints were given to compute so far. */
  readonly computed: () => ComputedTokens;
  /** Configured weights of the scorers that a projection moves; with `drive: weights` only. */
  readonly projected?: readonly number[] | undefined;
  /** Names of the rules, the configured one first; with `drive: rules` only. */
  readonly rules?: readonly string[] | undefined;
  /** Lets this arm drive the decisions from the next one on. */
  readonly drive: (drive: Drive) => void;
  /** Whether requests wait on every live endpoint, by the last scrapes. */
  readonly overloaded: () => boolean;
  /** Reports a new state of the guard. */
  readonly changed: (transition: Transition) => void;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Prices of blocks below the GPU, and what sets those that decide; undefined = there are no such blocks. */
  readonly tiers?: (TierPricing & { readonly set: (prices: TierPrices) => void }) | undefined;
  /** Guards of other replicas; undefined = there are none. */
  readonly peers?: PeerGuards | undefined;
}

/** Share of the recent decisions in which each term distinguished the endpoints. */
export type DecisionShares = Readonly<Record<(typeof costTerms)[number], number>>;

/** State of the adaptation as plain data, for the debug page and the metrics. */
export interface AdapterReport {
  readonly mode: AdaptationSettings['mode'];
  readonly state: GuardState;
  readonly arm: Arm;
  readonly epoch: number;
  /** Reason why the configured weights are active; undefined while learned costs are. */
  readonly why: string | undefined;
  readonly standsAside: boolean;
  readonly risked: number;
  readonly fallbacks: number;
  readonly arms: Readonly<Record<Arm, ArmRecord>>;
  /** ln(cost with learned costs / cost with the configured weights), with half the width of its 95 % interval. */
  readonly gap: Estimate;
  /** ln(TTFT p99 with learned costs / TTFT p99 with the configured weights), with the same. */
  readonly tailGap: Estimate;
  /** The same of the time per output token. */
  readonly tokenTailGap: Estimate;
  /** What decides between the arms: their cost, or the goodput of requests with latency targets. */
  readonly measure: Measure;
  /** Share of the requests with latency targets that met theirs, by arm; an arm that has seen none is left out. */
  readonly goodput: Readonly<Partial<Record<Arm, number>>>;
  /** ln(goodput with the configured weights / goodput with learned costs); undefined = requests have no targets. */
  readonly goodputGap: Estimate | undefined;
  readonly fit: Fit;
  readonly alarms: number;
  /** Share of the computed tokens that had been evicted: the odds that what a prompt evicts is wanted again. */
  readonly returnOdds: number;
  readonly coefficients: Coefficients;
  /** Coefficients of each hardware class; empty in a pool of one class. */
  readonly classes: readonly LearnedClass[];
  /** Learned cost of loading a block from each tier, beside computing it; undefined = no events tell of tiers. */
  readonly tierPrices: TierPrices | undefined;
  /** Undefined until decisions have been sampled. */
  readonly shares: DecisionShares | undefined;
  /** Terms with a share below 1 % for five minutes. */
  readonly inactive: readonly (typeof costTerms)[number][];
  /** Share of the decisions in which the other arm would have picked the same endpoint; undefined = not measured. */
  readonly agreement: number | undefined;
  readonly samples: { readonly learned: number; readonly ignored: number; readonly lost: number };
  /** Weights closest to marginal cost, and the number of decisions behind them; with `drive: weights` only. */
  readonly projection: { readonly weights: readonly number[]; readonly samples: number } | undefined;
  /** Results of each rule, and the active one; with `drive: rules` only. */
  readonly rules:
    | { readonly current: string; readonly records: readonly (RuleRecord & { readonly name: string })[] }
    | undefined;
  readonly endpoints: readonly { readonly slot: number; readonly speed: number; readonly reliability: number }[];
}

/** Bound on the samples of one tick; the rest is read in the next one. */
const SAMPLES_PER_TICK_MAX = 10_000;
/**
 * Bound on the samples of one tick that are learned from. Of more, one in so many is, since 4,000 a second say as much
 * as 40,000. A sample takes 1.2 µs of the control thread.
 */
const LEARNED_PER_TICK = 1_000;
const WRITE_EVERY_MS = 1000;
const EVIDENCE_EVERY_MS = 2000;
const TIMES = 500;
const RATE_MS = 20_000;
/** Weight of the newest second in the decision shares. */
const SHARE_RATE = 0.05;
const INACTIVE_BELOW = 0.01;
const INACTIVE_AFTER_MS = 300_000;
const AGREEMENT_MEMORY = 500;
/** Bound on the epochs whose rules are remembered: the bound on open epochs. */
const EPOCHS_MAX = 64;
/** Requests over which the share of usable samples is averaged, and the minimum before it counts. */
const USABLE_MEMORY = 500;

/**
 * The adaptation of one pool: reads samples, runs the model and the guard, writes the coefficients and sets the active
 * arm. It has no clock and no timers: its owner calls `tick`, in real or simulated time.
 */
export class Adapter {
  readonly #options: AdapterOptions;
  readonly #guard: Guard;
  readonly model: CostModel;
  readonly #evictions = new EvictionPrice();
  readonly #durations = new Window(TIMES);
  readonly #firstOutputs = new Window(TIMES);
  readonly #learn: (sample: TrainingSample) => void;
  readonly #projection: Projection | undefined;
  readonly #rules: RuleChoice | undefined;
  /** Arm of the last epochs, by the tag of their decisions. */
  readonly #arms = new Map<number, Arm>();
  /** Rule of every epoch without a result. */
  readonly #ruleOf = new Map<number, number>();
  #rule = 0;
  #nowMs = 0;
  /** Time of the start, or of the last reset of the model. */
  #learnsSinceMs = 0;
  #wroteMs = Number.NEGATIVE_INFINITY;
  #overloadedSinceMs: number | undefined;
  /** One sample of so many is read in the next tick. */
  #every = 1;
  #learned = 0;
  #ignored = 0;
  #usable = 1;
  #finished = 0;
  #agreement: number | undefined;
  #evidence: Evidence | undefined;
  #gatheredMs = 0;
  #rate = 0;
  #ratedMs = 0;
  #sharesBefore: TermShares | undefined;
  #shares: Record<(typeof costTerms)[number], number> | undefined;
  readonly #quietSinceMs = new Map<(typeof costTerms)[number], number>();

  constructor(options: AdapterOptions) {
    const { settings, random } = options;
    this.#options = options;
    this.model = new CostModel(settings.model, options.tiers);
    const rules = settings.drive === 'rules' ? (options.rules ?? []) : [];
    this.#guard = new Guard(settings.mode, settings.guard, random, rules.length > 0, options.peers);
    if (rules.length > 0) this.#rules = new RuleChoice(rules.length);
    this.#learn = (sample) => this.#take(sample);
    const projected = settings.drive === 'weights' ? options.projected : undefined;
    if (projected !== undefined && projected.length > 0) this.#projection = new Projection(projected);
  }

  /** Starts: writes the assumed coefficients and sets the arm. */
  start(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#learnsSinceMs = nowMs;
    this.#write();
    this.#noteArm();
    this.#options.drive(this.drive);
  }

  /** Arm that made the decisions with this tag; undefined when that is longer ago than `EPOCHS_MAX` epochs. */
  armOf(tag: number): Arm | undefined {
    return this.#arms.get(tag);
  }

  /** Number of the guard's epoch. */
  get epoch(): number {
    return this.#guard.epoch;
  }

  get drive(): Drive {
    const { arm, epoch } = this.#guard;
    const rule = this.#rules === undefined ? undefined : this.#rule;
    return { arm, tag: epoch, weights: this.#projection?.weights, rule };
  }

  /** Advances to `nowMs`, milliseconds of the clock of the samples. Called several times a second. */
  tick(nowMs: number): void {
    const { samples, drive, changed } = this.#options;
    const passedMs = nowMs - this.#nowMs;
    this.#nowMs = nowMs;
    const every = this.#every;
    const count = samples.drain(this.#learn, SAMPLES_PER_TICK_MAX, every);
    this.#ignored += count * (every - 1);
    this.#every = Math.max(1, Math.ceil((count * every) / LEARNED_PER_TICK));
    this.#noteRate(count, passedMs);
    this.#watchOverload();
    const { epoch, transition, judged } = this.#guard.tick(nowMs, () => this.#freshEvidence());
    for (const { number, result } of judged) this.#rules?.note(this.#ruleOf.get(number) ?? 0, result);
    if (epoch) {
      this.#noteArm();
      this.#chooseRule();
    }
    if (transition?.to === 'fallback') this.#forgetAll();
    const due = nowMs - this.#wroteMs >= WRITE_EVERY_MS;
    if (epoch || due) this.#write();
    const moved = due && this.#guard.arm === 'learned' && this.#projection !== undefined;
    if (epoch || moved) drive(this.drive);
    if (transition !== undefined) changed(transition);
  }

  /** State of the guard for other replicas. */
  get news(): GuardNews {
    return this.#guard.news(this.#nowMs);
  }

  report(): AdapterReport {
    const guard = this.#guard;
    return {
      mode: this.#options.settings.mode,
      state: guard.state,
      arm: guard.arm,
      epoch: guard.epoch,
      why: guard.why(this.#nowMs),
      standsAside: guard.standsAside,
      risked: guard.risked,
      fallbacks: guard.fallbacks,
      arms: { static: guard.record('static'), learned: guard.record('learned') },
      gap: guard.gap,
      tailGap: guard.tailGap,
      tokenTailGap: guard.tokenTailGap,
      measure: guard.measure,
      goodput: goodputOf(guard),
      goodputGap: guard.goodputGap,
      fit: this.model.fit,
      alarms: this.model.alarms,
      returnOdds: this.#evictions.odds,
      coefficients: this.#coefficients,
      classes: this.model.classes,
      tierPrices: this.#options.tiers === undefined ? undefined : this.model.tiers.prices,
      shares: this.#shares,
      inactive: this.#inactive,
      projection:
        this.#projection === undefined
          ? undefined
          : { weights: this.#projection.weights, samples: this.#projection.samples },
      rules: this.#ruleReport,
      agreement: this.#agreement,
      samples: { learned: this.#learned, ignored: this.#ignored, lost: this.#options.samples.lost },
      endpoints: [...this.model.endpoints].map(([slot, { reliability }]) => ({
        slot,
        speed: this.model.speedOf(slot),
        reliability,
      })),
    };
  }

  /** Updates the rate of samples per millisecond over the last RATE_MS, or since the start. */
  #noteRate(count: number, passedMs: number): void {
    if (!(passedMs > 0)) return;
    this.#ratedMs = Math.min(RATE_MS, this.#ratedMs + passedMs);
    this.#rate += (count / passedMs - this.#rate) * Math.min(1, passedMs / this.#ratedMs);
  }

  #noteArm(): void {
    const { arm, epoch } = this.#guard;
    this.#arms.set(epoch, arm);
    for (const number of this.#arms.keys()) {
      if (this.#arms.size <= EPOCHS_MAX) break;
      this.#arms.delete(number);
    }
  }

  #chooseRule(): void {
    if (this.#rules === undefined) return;
    this.#rule = this.#guard.arm === 'learned' ? this.#rules.choose() : 0;
    this.#ruleOf.set(this.#guard.epoch, this.#rule);
    for (const number of this.#ruleOf.keys()) {
      if (this.#ruleOf.size <= EPOCHS_MAX) break;
      this.#ruleOf.delete(number);
    }
  }

  get #ruleReport(): AdapterReport['rules'] {
    const names = this.#options.rules ?? [];
    if (this.#rules === undefined) return undefined;
    return {
      current: names[this.#rule]!,
      records: this.#rules.records.map((record, i) => ({ name: names[i]!, ...record })),
    };
  }

  #take(sample: TrainingSample): void {
    const { settings } = this.#options;
    const known = this.model.learn(sample, this.#pricesOf(this.#arms.get(sample.tag) ?? 'static'));
    if (known) this.#learned++;
    else this.#ignored++;
    // A cancelled request or a client error is no evidence about the quality of the samples, and neither is an answer
    // that says nothing because it waited for memory.
    const isSilent = !known && (sample.outputTokens ?? 0) > 0 && hasWaitedForMemory(sample);
    if ((sample.outcome === 'completed' && !isSilent) || sample.outcome === 'diverted') this.#noteUsable(known);
    if (sample.outcome === 'completed') this.#durations.add(sample.durationMs);
    if (sample.firstOutputMs !== undefined) this.#firstOutputs.add(sample.firstOutputMs);
    if (sample.wouldPick !== undefined) this.#noteAgreement(sample.wouldPick === sample.slot);
    const cost = requestCost(sample, settings.model);
    if (cost !== undefined) this.#guard.note(sample.tag, sample.timeMs, cost, this.#every);
  }

  /** Prices of blocks below the GPU that hold while an arm decides. */
  #pricesOf(arm: Arm): TierPrices {
    return arm === 'learned' ? this.model.tiers.prices : this.model.tiers.configured;
  }

  #noteUsable(known: boolean): void {
    this.#finished++;
    this.#usable += (Number(known) - this.#usable) / Math.min(this.#finished, USABLE_MEMORY);
  }

  #noteAgreement(same: boolean): void {
    this.#agreement ??= Number(same);
    this.#agreement += (Number(same) - this.#agreement) / AGREEMENT_MEMORY;
  }

  /** Resets coefficients and endpoints to the assumed values. */
  #forgetAll(): void {
    for (const [slot, { generation }] of this.model.endpoints) {
      this.#options.coefficients.writeEndpoint(slot, generation, 1, 1, undefined);
    }
    this.model.reset();
    this.#learnsSinceMs = this.#nowMs;
    this.#projection?.reset();
    this.#evidence = undefined;
  }

  #watchOverload(): void {
    if (!this.#options.overloaded()) this.#overloadedSinceMs = undefined;
    else this.#overloadedSinceMs ??= this.#nowMs;
  }

  /** Sorting the windows costs more than the rest of a tick, so it is done every EVIDENCE_EVERY_MS. */
  #freshEvidence(): Evidence {
    if (this.#evidence === undefined || this.#nowMs - this.#gatheredMs >= EVIDENCE_EVERY_MS) {
      this.#evidence = this.#gather();
      this.#gatheredMs = this.#nowMs;
    }
    return this.#evidence;
  }

  #gather(): Evidence {
    const { samples, correlation, bias } = this.model.fit;
    return {
      samples,
      learningMs: this.#nowMs - this.#learnsSinceMs,
      correlation,
      bias,
      sampledShare: this.#finished < USABLE_MEMORY ? undefined : this.#usable,
      sound: isSound(this.model.coefficients) && this.model.classes.every((each) => isSound(each.coefficients)),
      overloadedMs: this.#overloadedSinceMs === undefined ? 0 : this.#nowMs - this.#overloadedSinceMs,
      durationMs: this.#durations.quantile(0.9),
      firstOutputMs: this.#firstOutputs.quantile(0.9),
      sampleRate: this.#rate,
    };
  }

  get #coefficients(): Coefficients {
    return { ...this.model.coefficients, evictionPrice: this.#evictions.price };
  }

  /** A write that meets the lock of a dead thread is repeated at the next tick. */
  #write(): void {
    const { coefficients, tiers } = this.#options;
    this.#evictions.note(this.#options.computed(), this.#nowMs);
    const current = this.#coefficients;
    if (isSound(current)) coefficients.write(current);
    for (const [slot, { generation, reliability }] of this.model.endpoints) {
      const { speed, own } = this.model.costsOf(slot);
      if (own === undefined || isSound(own)) coefficients.writeEndpoint(slot, generation, speed, reliability, own);
    }
    tiers?.set(this.#pricesOf(this.#guard.arm));
    this.#noteShares(coefficients.shares());
    const seconds = Number.isFinite(this.#wroteMs) ? (this.#nowMs - this.#wroteMs) / 1000 : 0;
    this.#projection?.update(coefficients.projection(), seconds);
    this.#wroteMs = this.#nowMs;
  }

  #noteShares(now: TermShares): void {
    const before = this.#sharesBefore;
    this.#sharesBefore = now;
    const samples = before === undefined ? now.samples : now.samples - before.samples;
    if (samples <= 0) return;
    for (const term of costTerms) {
      const share = (now.sums[term] - (before?.sums[term] ?? 0)) / samples;
      this.#shares ??= { context: share, queue: share, waiting: share, decode: share, capacity: share };
      this.#shares[term] += (share - this.#shares[term]) * SHARE_RATE;
      if (this.#shares[term] >= INACTIVE_BELOW) this.#quietSinceMs.delete(term);
      else if (!this.#quietSinceMs.has(term)) this.#quietSinceMs.set(term, this.#nowMs);
    }
  }

  get #inactive() {
    return costTerms.filter((term) => {
      const since = this.#quietSinceMs.get(term);
      return since !== undefined && this.#nowMs - since >= INACTIVE_AFTER_MS;
    });
  }
}

function goodputOf(guard: Guard): AdapterReport['goodput'] {
  const [configured, learned] = [guard.goodputOf('static'), guard.goodputOf('learned')];
  return {
    ...(configured === undefined ? {} : { static: configured }),
    ...(learned === undefined ? {} : { learned }),
  };
}

function isSound(coefficients: HardwareCoefficients): boolean {
  const { baseMs, waitingMs, ...positive } = coefficients;
  return (
    [baseMs, waitingMs].every((value) => value >= 0 && Number.isFinite(value)) &&
    Object.values(positive).every((value) => value > 0 && Number.isFinite(value))
  );
}
