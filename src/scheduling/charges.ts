import type { CurrentSettings } from '../contract/current-settings.js';
import type { RetentionHint } from '../contract/queue-settings.js';
import { CORE } from '../core/core-names.js';
import type { Decider } from '../core/decider.js';
import type { RequestResult } from '../core/decision-data.js';
import type { DecisionTrail } from '../core/decision-trail.js';
import type { Hearings } from '../core/hearings.js';
import type { Measures } from '../core/training-sample.js';
import type { AnswerSign } from '../core/types.js';
import type { AnswerMeasures, Charge, PickedEndpoint, Ticket } from './decision.js';
import type { EndpointDirectory } from './endpoint-directory.js';
import type { EstimatedOutput, PrefixSettings, ProfileFilter } from './program.js';
import { metTargets, NOTHING_WANTED, type ObjectiveTimes, type WantedTimes } from './wanted-times.js';

/** Settings of decisions that a reload of the configuration can change. */
export interface DecisionSettings {
  /** Names of the profiles; the position is the number in the core. */
  readonly profiles: readonly string[];
  /** Filters of each profile, in the same order; absent = they are not named in rejections. */
  readonly filters?: readonly (readonly ProfileFilter[])[] | undefined;
  readonly prefix: PrefixSettings | undefined;
  /** Undefined = output does not count as in-flight tokens. */
  readonly estimateOutput: EstimatedOutput | undefined;
  /** Attribute that names the session of a request; undefined = its prompt tells. */
  readonly sessionAttribute?: string | undefined;
  /** How engines are asked to keep the blocks of sessions; absent = they are not asked. */
  readonly retention?: RetentionHint | undefined;
  /** Latency objectives by objective name; absent = only the request's own headers count. */
  readonly objectiveTimes?: ObjectiveTimes | undefined;
}

export interface ChargeOptions {
  readonly settings: CurrentSettings<DecisionSettings>;
  readonly decider: Decider;
  readonly directory: EndpointDirectory;
  /** Takes the times of output; absent = endpoints are not judged by their silence. */
  readonly hearings?: Hearings | undefined;
  readonly nowMs: () => number;
  /** Takes the outcome of requests; absent = it is not logged. */
  readonly trail?: DecisionTrail | undefined;
  /** Repeats a release later that met the lock of a dead thread. */
  readonly later: (again: () => boolean) => void;
  /** Reports an ejected endpoint. */
  readonly ejected: (endpoint: PickedEndpoint) => void;
  /** Reports an endpoint that is in doubt: a request to it got no answer of its own. */
  readonly doubted?: ((slot: number, generation: number) => void) | undefined;
}

/** An entry of the ledger: its slot and its ticket. */
export interface LedgerTicket extends Ticket {
  readonly slot: number;
  readonly slotGeneration: number;
  /** 0 = no charge. */
  readonly ticket: number;
  /** Record of the decision in the log; undefined = none. */
  readonly record?: number | undefined;
}

/** The charge of one pick in the ledger. */
export class LedgerCharge implements Charge {
  readonly #options: ChargeOptions;
  readonly #blockTokens: number;
  readonly #decidedAtMs: number;
  readonly #wanted: WantedTimes;
  #held: LedgerTicket;
  #ticket: number;
  #firstOutputAtMs: number | undefined;
  #outputEvents = 0;
  #answer: AnswerMeasures | undefined;
  #grownBlocks = 0;
  #prefilled = false;
  #reported = false;
  #staged = false;
  #released = false;

  constructor(
    options: ChargeOptions,
    held: LedgerTicket,
    blockTokens: number,
    decidedAtMs: number,
    wanted: WantedTimes = NOTHING_WANTED,
  ) {
    this.#options = options;
    this.#held = held;
    this.#ticket = held.ticket;
    this.#blockTokens = blockTokens;
    this.#decidedAtMs = decidedAtMs;
    this.#wanted = wanted;
  }

  get tickets(): readonly Ticket[] {
    return this.#ticket === 0 ? [] : [this.#held];
  }

  /** Marks the training sample: other endpoints work for the request before this one. */
  comesAfterOthers(): void {
    this.#staged = true;
  }

  prefillDone(): void {
    if (this.#prefilled || this.#ticket === 0) return;
    this.#prefilled = true;
    const { decider, settings, nowMs } = this.#options;
    this.#firstOutputAtMs = nowMs();
    // With output counted, the estimate stays until the end (inflight-load-producer).
    const keep = settings.current.estimateOutput !== undefined;
    decider.prefillDone(this.#ticket, this.#held.generation, this.#firstOutputAtMs, keep);
  }

  expects(sign: AnswerSign, limit: number | undefined): void {
    if (this.#ticket === 0) return;
    // The work of other endpoints before it is not seen.
    this.#options.hearings?.expect(this.#ticket, this.#staged && sign === 'stream' ? 'later' : sign, limit);
  }

  heard(): void {
    const { hearings, nowMs } = this.#options;
    if (this.#ticket === 0) return;
    hearings?.heard(this.#ticket, this.#held.slot, this.#held.slotGeneration, nowMs());
  }

  grow(tokens: number): void {
    this.#outputEvents = tokens;
    const blocks = Math.floor(tokens / this.#blockTokens);
    if (blocks <= this.#grownBlocks || this.#ticket === 0) return;
    this.#grownBlocks = blocks;
    this.#options.decider.grow(this.#ticket, this.#held.generation, blocks, tokens);
  }

  stepped(ms: number): void {
    if (this.#ticket !== 0) this.#options.decider.stepped(this.#held.slot, ms);
  }

  answered(answer: AnswerMeasures): void {
    this.#answer ??= answer;
  }

  release(): void {
    const { decider, trail } = this.#options;
    const { record } = this.#held;
    if (this.#released || (this.#ticket === 0 && record === undefined)) return;
    this.#released = true;
    const now = this.#options.nowMs();
    const measures = this.#measures(now);
    if (record !== undefined) trail?.ended(record, measures);
    if (this.#ticket === 0) return;
    decider.noteSample(this.#ticket, this.#held.generation, measures);
    if (measures.outcome === 'completed') this.heard();
    if (measures.outcome !== 'aborted') {
      const tokens = measures.outputTokens ?? 0;
      decider.complete(this.#ticket, this.#held.generation, tokens, now);
    }
    this.releaseUnsampled();
  }

  /** Releases without a training sample, because the endpoint did not answer the request. Idempotent. */
  releaseUnsampled(): void {
    const ticket = this.#ticket;
    if (ticket === 0) return;
    this.#ticket = 0;
    const { generation } = this.#held;
    const { decider, later } = this.#options;
    if (!decider.release(ticket, generation)) later(() => decider.release(ticket, generation));
  }

  /**
   * Measurements for the training sample. An answer in one piece has no first token time; the events of a stream count
   * as tokens.
   */
  #measures(now: number): Measures {
    const answer = this.#answer;
    const first = answer?.streamed === false ? undefined : this.#firstOutputAtMs;
    const outputTokens = answer?.outputTokens ?? (this.#outputEvents > 0 ? this.#outputEvents : undefined);
    const steps = (outputTokens ?? 0) - 1;
    const measures: Measures = {
      outcome: answer?.outcome ?? 'aborted',
      firstOutputMs: first === undefined ? undefined : first - this.#decidedAtMs,
      perTokenMs: first === undefined || steps < 1 ? undefined : (now - first) / steps,
      durationMs: now - this.#decidedAtMs,
      outputTokens,
      promptTokens: answer?.promptTokens,
      cachedTokens: answer?.cachedTokens,
      staged: this.#staged,
    };
    return this.#wanted === NOTHING_WANTED ? measures : { ...measures, targetsMet: metTargets(this.#wanted, measures) };
  }

  outcome(result: RequestResult): void {
    const { slot, slotGeneration } = this.#held;
    if (this.#reported || slot < 0) return;
    this.#reported = true;
    this.#note(slot, slotGeneration, result);
  }

  servedBy(served: string, picks: readonly PickedEndpoint[], result: RequestResult): void {
    const { directory } = this.#options;
    const { slot, slotGeneration } = this.#held;
    const other = directory.byAddress(served);
    if (this.#reported || slot < 0 || other === undefined) return;
    this.#reported = true;
    this.#note(slot, slotGeneration, 'unanswered');
    const place = picks.findIndex(({ address }) => address === served);
    for (const pick of picks.slice(1, Math.max(1, place))) {
      const entry = directory.at(pick.slot);
      if (entry === pick) this.#note(entry.slot, entry.generation, 'unanswered');
    }
    this.#note(other.slot, other.generation, result);
    this.#moveTo(other.slot, other.generation);
  }

  #note(slot: number, slotGeneration: number, result: RequestResult): void {
    const { decider, nowMs, directory, ejected, doubted } = this.#options;
    const noted = decider.noteOutcome(slot, slotGeneration, result, nowMs());
    if (noted === 0) return;
    if ((noted & CORE.NOTED_DOUBTED) !== 0) doubted?.(slot, slotGeneration);
    const endpoint = (noted & CORE.NOTED_EJECTED) === 0 ? undefined : directory.at(slot);
    if (endpoint !== undefined) ejected(endpoint);
  }

  /** Moves the charge. One that cannot move stays until its release. */
  #moveTo(slot: number, slotGeneration: number): void {
    if (this.#ticket === 0) return;
    const moved = this.#options.decider.moveCharge(this.#ticket, this.#held.generation, slot, slotGeneration);
    if (moved) this.#held = { ...this.#held, slot, slotGeneration };
  }
}

/**
 * The charges of a request with several picks. The answering endpoint is charged to the end, endpoints of earlier
 * stages until the first token.
 */
export class StagedCharge implements Charge {
  readonly #answer: LedgerCharge;
  readonly #before: readonly LedgerCharge[];

  constructor(answer: LedgerCharge, before: readonly LedgerCharge[]) {
    this.#answer = answer;
    this.#before = before;
    answer.comesAfterOthers();
  }

  get tickets(): readonly Ticket[] {
    return [this.#answer, ...this.#before].flatMap(({ tickets }) => tickets);
  }

  prefillDone(): void {
    for (const charge of this.#before) charge.releaseUnsampled();
    this.#answer.prefillDone();
  }

  grow(tokens: number): void {
    this.#answer.grow(tokens);
  }

  /** Output of earlier stages is not seen, and the answering endpoint sends none before their end. */
  expects(sign: AnswerSign, limit: number | undefined): void {
    this.#answer.expects(sign === 'stream' ? sign : 'nothing', limit);
  }

  heard(): void {
    this.#answer.heard();
  }

  stepped(ms: number): void {
    this.#answer.stepped(ms);
  }

  release(): void {
    for (const charge of this.#before) charge.releaseUnsampled();
    this.#answer.release();
  }

  answered(answer: AnswerMeasures): void {
    this.#answer.answered(answer);
  }

  /** Takes the result of the answering endpoint; it is no evidence about the others. */
  outcome(result: RequestResult): void {
    this.#answer.outcome(result);
  }

  servedBy(served: string, picks: readonly PickedEndpoint[], result: RequestResult): void {
    this.#answer.servedBy(served, picks, result);
  }
}
