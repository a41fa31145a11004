import type { DecideSettings } from '../contract/decide-settings.js';
import type { RetentionHint } from '../contract/queue-settings.js';
import { plainBound } from '../contract/refusing-bound.js';
import type { Decision, DecisionRequest, FilterNote, ShadowPick } from '../core/decision-data.js';
import type { DecisionTap } from '../core/decision-tap.js';
import { type ChargeOptions, LedgerCharge, type LedgerTicket, StagedCharge } from './charges.js';
import type { Charge, HookColumnFiller, PickedEndpoint, Rejection, ScheduleInput } from './decision.js';
import type { LatencyPrediction } from './latency-outlook.js';
import { NO_ENDPOINTS, NO_ROOM, noPick, steadyFilter, WAITS } from './no-pick.js';
import type { PickWork, ProfilePick, ProfileRuns } from './profile-handler.js';
import type { ProfileFilter } from './program.js';
import { NOTHING_WANTED, type WantedTimes } from './wanted-times.js';

export interface RunOptions extends ChargeOptions {
  readonly decide: DecideSettings;
  /** Whether latency is predicted. Placements then contain the prediction beside the request's objectives. */
  readonly predicts?: boolean | undefined;
  readonly hookColumns?: HookColumnFiller | undefined;
  /** Told before and after each decision, for a recording. */
  readonly tap?: Pick<DecisionTap, 'before' | 'after'> | undefined;
  /** Called when a shadow program has run beside the one that placed the request. */
  readonly shadowed?: ((input: ScheduleInput, picked: number, shadow: ShadowPick) => void) | undefined;
  /** Called when a filter that does not judge load has left no endpoint. */
  readonly filteredOut?: ((filter: string) => void) | undefined;
  /** Called with what a counted filter has decided about a request that does not wait. */
  readonly filtered?: ((filter: ProfileFilter, note: FilterNote) => void) | undefined;
  /**
   * Called when a prompt was placed on a slot that held its first `from` blocks and will probably hold all of them.
   * Only for a prefix index in which this assumption expires (PrefixSettings.knownBy). The hashes are in the thread's
   * HASHES area.
   */
  readonly speculated?: ((slot: number, generation: number, from: number, blocks: number) => void) | undefined;
}

/** Input of the core for the runs of one request. */
export interface RunRequest extends DecisionRequest {
  profile: number;
  outputTokens: number;
  further: boolean;
  earlier: number | undefined;
}

/** Of requests without a pick; never written. */
const NO_PICKS: ChargedPick[] = [];

/** A pick with its charge. */
interface ChargedPick extends ProfilePick {
  readonly number: number;
  readonly work: PickWork;
  readonly held: LedgerTicket;
  readonly charge: LedgerCharge;
  readonly prediction: LatencyPrediction | undefined;
  readonly scores: ReadonlyMap<string, number> | undefined;
}

/**
 * The profiles of one request, each decided and charged by one call into the core. New blocks are not stored before
 * `place`, so that a request that fails in a later profile leaves no trace.
 */
export class ChargedRuns implements ProfileRuns {
  readonly input: ScheduleInput;
  readonly #options: RunOptions;
  readonly #request: RunRequest;
  /** Estimated output of the request; only the answering endpoint generates it. */
  readonly #outputTokens: number;
  #picks: ChargedPick[] = NO_PICKS;
  #decisions = 0;
  #retention: RetentionHint | undefined;
  #waiting = false;

  /** @param request input of the core, of these runs alone: each run writes what is its own */
  constructor(options: RunOptions, input: ScheduleInput, request: RunRequest) {
    this.#options = options;
    this.#request = request;
    this.#outputTokens = request.outputTokens;
    this.input = input;
  }

  get profiles(): readonly string[] {
    return this.#options.settings.current.profiles;
  }

  get promptTokens(): number {
    return this.#request.promptTokens;
  }

  /** Whether the request waits. All other charges of the request are released then. */
  get waiting(): boolean {
    return this.#waiting;
  }

  run(profile: string, work: PickWork, earlier?: ProfilePick): ProfilePick | Rejection {
    if (this.#waiting) return NO_ROOM;
    const number = this.profiles.indexOf(profile);
    if (number < 0) throw new RangeError(`there is no profile "${profile}"`);
    this.#options.hookColumns?.(this.input, profile);
    const request = this.#request;
    request.profile = number;
    request.outputTokens = work === 'answer' ? this.#outputTokens : 0;
    request.further = this.#decisions++ > 0;
    request.earlier = earlier?.endpoints[0]?.slot;
    this.#options.tap?.before();
    const decision = this.#options.decider.decide(request);
    this.#options.tap?.after(request, decision);
    if (!request.further) this.#retention = this.#retentionOf();
    if (decision.status === 'waiting') {
      this.#waiting = true;
      return WAITS;
    }
    if (decision.status === 'no-wait-slot') return this.#leftWaiting();
    const { settings, filteredOut } = this.#options;
    const filters = settings.current.filters?.[number];
    if (filters !== undefined && filters.length > 0) this.#countFilters(decision.status, filters);
    if (decision.status === 'decided') return this.#charged(number, work, decision);
    const filter = steadyFilter(filters, decision.filter);
    if (filter !== undefined) filteredOut?.(filter);
    return noPick(decision.status, filter);
  }

  /** Turns of sessions alone are to be kept. */
  #retentionOf(): RetentionHint | undefined {
    const { decider, settings } = this.#options;
    const { retention } = settings.current;
    return retention !== undefined && decider.wasTurn ? retention : undefined;
  }

  /** How the engine of the request is asked to keep its blocks; undefined = it is not asked. */
  get retention(): RetentionHint | undefined {
    return this.#retention;
  }

  #countFilters(status: Decision['status'], filters: readonly ProfileFilter[]): void {
    const { decider, filtered } = this.#options;
    if (filtered === undefined || (status !== 'decided' && status !== 'filtered')) return;
    if (!filters.some(({ counted }) => counted !== undefined)) return;
    decider.filterNotes((note) => filtered(filters[note.filter]!, note));
  }

  /** Rejects because no wait slot is free. Retry-After is the drain time of the band, as for a full queue. */
  #leftWaiting(): Rejection {
    const seconds = this.#options.decider.drainSeconds(this.#request.priority);
    const retryAfterSeconds = Math.min(60, Math.max(1, Math.ceil(seconds ?? 1)));
    return { ...NO_ROOM, retryAfterSeconds, leftWaiting: true, bound: plainBound('no-wait-slot') };
  }

  #charged(number: number, work: PickWork, decision: Decision): ProfilePick | Rejection {
    const { directory, decide } = this.#options;
    const { blockTokens } = this.#request;
    const first = directory.at(decision.slots[0]!);
    const endpoints = this.#endpointsOf(decision.slots);
    if (decision.shadow.state !== 'unasked') this.#options.shadowed?.(this.input, decision.slots[0]!, decision.shadow);
    const { ticket, ticketGeneration: generation, matchedBlocks, totalBlocks, record } = decision;
    const held = { slot: first?.slot ?? -1, slotGeneration: first?.generation ?? 0, ticket, generation, record };
    const charge = new LedgerCharge(this.#options, held, blockTokens, this.#request.nowMs, wantedBy(this.#request));
    if (endpoints.length === 0) {
      charge.releaseUnsampled();
      return NO_ENDPOINTS;
    }
    const pick: ChargedPick = {
      kind: 'picked',
      profile: this.profiles[number]!,
      endpoints,
      matchedBlocks,
      totalBlocks,
      matchedTokens: Math.min(matchedBlocks * blockTokens, this.promptTokens),
      number,
      work,
      held,
      charge,
      prediction: this.#options.predicts ? predictionOf(decision, this.#request) : undefined,
      // The columns of the core are those of the last decision.
      scores: decide.emitScores && work === 'answer' ? this.#scores(decision.slots) : undefined,
    };
    // An array that grows takes room for 17 picks.
    if (this.#picks.length === 0) this.#picks = [pick];
    else this.#picks.push(pick);
    return pick;
  }

  #endpointsOf(slots: readonly number[]): readonly PickedEndpoint[] {
    const alone = slots.length === 1 ? this.#options.directory.alone(slots[0]!) : undefined;
    if (alone !== undefined) return alone;
    const endpoints: PickedEndpoint[] = [];
    for (const slot of slots) {
      const entry = this.#options.directory.at(slot);
      if (entry !== undefined) endpoints.push(entry);
    }
    return endpoints;
  }

  /** Scores of the candidates that passed the filters; the picks were candidates too. */
  #scores(picks: readonly number[]): ReadonlyMap<string, number> {
    const { decider, directory } = this.#options;
    const scores = new Map<string, number>();
    for (const { slot, address } of directory.entries()) {
      if (decider.isCandidate(slot) || picks.includes(slot)) scores.set(address, decider.scoreOf(slot));
    }
    return scores;
  }

  /** Releases a dispatch that no stage has used. */
  releaseDispatch(): void {
    const held = this.input.gate?.held;
    if (held === undefined) return;
    const { decider, later } = this.#options;
    const release = () => decider.release(held.ticket, held.ticketGeneration);
    if (!release()) later(release);
  }

  /** Releases all charges of the runs. */
  abandon(): void {
    for (const { charge, held } of this.#picks) {
      charge.releaseUnsampled();
      if (held.record !== undefined) this.#options.trail?.abandoned(held.record);
    }
    this.#picks = NO_PICKS;
  }

  /** Picks of every profile that ran, by the profile's name. */
  get picked(): ReadonlyMap<string, readonly PickedEndpoint[]> {
    const [first] = this.#picks;
    if (first !== undefined && this.#picks.length === 1 && first.endpoints.length === 1) {
      const sole = this.#options.directory.solePicks(first.held.slot, first.profile);
      if (sole !== undefined) return sole;
    }
    const picked = new Map<string, readonly PickedEndpoint[]>();
    for (const { profile, endpoints } of this.#picks) picked.set(profile, endpoints);
    return picked;
  }

  /** Prediction for the endpoint of `primary`; undefined when nothing predicts. */
  predictionOf(primary: ProfilePick): LatencyPrediction | undefined {
    return this.#picks.find((pick) => pick === primary)?.prediction;
  }

  /** Weighted scores of the profile of `primary`; undefined unless scores are emitted. */
  scoresOf(primary: ProfilePick): ReadonlyMap<string, number> | undefined {
    return this.#picks.find((pick) => pick === primary)?.scores;
  }

  /** Places the request on its endpoints and stores its blocks for them. @returns its charges */
  place(primary: ProfilePick): Charge {
    const { decider } = this.#options;
    const before: LedgerCharge[] = [];
    let answer: LedgerCharge | undefined;
    for (const pick of this.#picks) {
      const { number, work, held, charge } = pick;
      if (work !== 'encode') {
        decider.storePick(number, held.slot, held.ticket, held.generation);
        this.#speculate(pick);
      }
      if (pick === primary) answer = charge;
      else before.push(charge);
    }
    if (answer === undefined) throw new RangeError('the primary pick is none of the request');
    if (before.length > 0 && this.#picks.some((pick) => pick !== primary && pick.work === 'prefill')) {
      this.#prefilledElsewhere(primary);
    }
    return before.length === 0 ? answer : new StagedCharge(answer, before);
  }

  #prefilledElsewhere(primary: ProfilePick): void {
    const { ticket, generation } = this.#picks.find((pick) => pick === primary)!.held;
    if (ticket !== 0) this.#options.decider.prefillElsewhere(ticket, generation);
  }

  #speculate({ held, matchedBlocks }: ChargedPick): void {
    const { blocks } = this.#request;
    const { settings, speculated } = this.#options;
    if (settings.current.prefix?.knownBy !== 'events and decisions') return;
    if (matchedBlocks < blocks && held.slot >= 0) {
      speculated?.(held.slot, held.slotGeneration, matchedBlocks, blocks);
    }
  }
}

function wantedBy({ wantedTtftMs = 0, wantedTpotMs = 0 }: DecisionRequest): WantedTimes {
  return wantedTtftMs > 0 || wantedTpotMs > 0 ? { ttftMs: wantedTtftMs, tpotMs: wantedTpotMs } : NOTHING_WANTED;
}

/** Prediction for the first pick, and the objectives of the request. */
function predictionOf(decision: Decision, { wantedTtftMs = 0, wantedTpotMs = 0 }: DecisionRequest): LatencyPrediction {
  const { predictedTtftMs, predictedTpotMs } = decision;
  return {
    ttftMs: Number.isNaN(predictedTtftMs) ? undefined : predictedTtftMs,
    tpotMs: Number.isNaN(predictedTpotMs) ? undefined : predictedTpotMs,
    wantedTtftMs,
    wantedTpotMs,
  };
}
