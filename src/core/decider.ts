import { CORE } from './core-names.js';
import {
  type Decision,
  type DecisionRequest,
  decisionStatuses,
  type FilterNote,
  filterOutcomes,
  type GateRequest,
  type RequestResult,
  resultNumbers,
  type ShadowPick,
} from './decision-data.js';
import { hashKey, splitMix } from './label-hash.js';
import type { CoreInstance } from './memory.js';
import { type Measures, OUTCOMES, UNKNOWN_COUNT } from './training-sample.js';

/** One thread's access to `decide` and to its charges. */
export class Decider {
  readonly #core: CoreInstance;
  readonly #request: number;
  readonly #subset: number;
  readonly #offset: ReturnType<typeof offsets>;
  readonly #decision: Decision = {
    status: 'decided',
    slots: [],
    ticket: 0,
    ticketGeneration: 0,
    matchedBlocks: 0,
    totalBlocks: 0,
    candidates: 0,
    score: 0,
    uncachedTokens: 0,
    record: undefined,
    wouldPick: undefined,
    filter: undefined,
    predictedTtftMs: Number.NaN,
    predictedTpotMs: Number.NaN,
    shadow: { state: 'unasked', slot: -1, cost: Number.NaN, pickCost: Number.NaN },
  };
  #adapter = '';
  #session: string | undefined;
  readonly #keys: (string | undefined)[] = [];

  /** @param seed 64-bit seed of the thread's random generator; equal seeds give equal picks */
  constructor(core: CoreInstance, seed: bigint) {
    this.#core = core;
    this.#request = core.call.requestAddress() >>> 0;
    this.#subset = core.call.subsetAddress() >>> 0;
    this.#offset = offsets(this.#request);
    core.view.setBigUint64(this.#request + CORE.REQUEST_RANDOM, splitMix(seed), true);
    const second = this.#request + CORE.REQUEST_RANDOM_SECOND;
    core.view.setBigUint64(second, splitMix(seed + 0x9e3779b97f4a7c15n), true);
    this.#writeAdapter('');
  }

  decide(request: DecisionRequest): Decision {
    const { u32, i32, f32, view, call } = this.#core;
    const at = this.#offset;
    let flags = request.tail ? CORE.DECIDE_TAIL : 0;
    if (!request.charged) flags |= CORE.DECIDE_UNCHARGED;
    if (request.explained) flags |= CORE.DECIDE_EXPLAIN;
    if (request.subset !== undefined) {
      flags |= CORE.DECIDE_SUBSET;
      this.#writeSubset(request.subset);
    }
    if (request.gate !== undefined) flags |= this.#writeGate(request.gate);
    this.#core.asserts?.index('profile', request.profile, CORE.PROFILES_MAX);
    this.#core.asserts?.index('blocks', request.blocks, this.#core.sizes.chainBlocks + 1);
    u32[at.profile] = request.profile;
    u32[at.flags] = flags;
    u32[at.blocks] = request.blocks;
    u32[at.promptTokens] = request.promptTokens;
    u32[at.outputTokens] = request.outputTokens;
    i32[at.priority] = request.priority;
    u32[at.blockTokens] = request.blockTokens;
    f32[at.wantedTtft] = request.wantedTtftMs ?? 0;
    f32[at.wantedTpot] = request.wantedTpotMs ?? 0;
    view.setFloat64(at.now, request.nowMs, true);
    if (request.baseModel === true) u32[at.flags]! |= CORE.DECIDE_BASE_MODEL;
    if (request.unstored === true) u32[at.flags]! |= CORE.DECIDE_UNSTORED;
    if (request.further === true) u32[at.flags]! |= CORE.DECIDE_FURTHER;
    if (request.earlier !== undefined) this.#core.asserts?.slot(request.earlier);
    u32[at.earlier] = request.earlier === undefined ? 0 : request.earlier + 1;
    if (request.sessionEnds === true) u32[at.flags]! |= CORE.DECIDE_SESSION_ENDS;
    if (request.session !== this.#session) this.#writeSession(request.session);
    if (request.keys !== undefined) this.#writeKeys(request.keys);
    if (request.adapter !== this.#adapter) this.#writeAdapter(request.adapter);
    return this.#read(call.decide());
  }

  #read(status: number): Decision {
    const { u32, f32 } = this.#core;
    const at = this.#offset;
    const decision = this.#decision;
    const count = u32[at.count]!;
    decision.status = decisionStatuses[status]!;
    // Setting the length to what it is already costs as much as a tenth of a decision.
    if (decision.slots.length > count) decision.slots.length = count;
    for (let i = 0; i < count; i++) decision.slots[i] = u32[at.picks + i]!;
    decision.ticket = u32[at.ticket]!;
    decision.ticketGeneration = u32[at.ticketGeneration]!;
    decision.matchedBlocks = u32[at.matched]!;
    decision.totalBlocks = u32[at.total]!;
    decision.candidates = u32[at.candidates]!;
    decision.score = f32[at.score]!;
    decision.uncachedTokens = u32[at.uncachedTokens]!;
    const record = u32[at.record]!;
    decision.record = record === 0 ? undefined : record - 1;
    const wouldPick = u32[at.wouldPick]!;
    decision.wouldPick = wouldPick === 0 ? undefined : wouldPick - 1;
    const filter = u32[at.filter]!;
    decision.filter = filter === 0 ? undefined : filter - 1;
    decision.predictedTtftMs = f32[at.predictedTtft]!;
    decision.predictedTpotMs = f32[at.predictedTpot]!;
    this.#readShadow(decision.shadow);
    return decision;
  }

  #readShadow(shadow: ShadowPick): void {
    const { u32, f32 } = this.#core;
    const at = this.#offset;
    const found = u32[at.shadow]!;
    if (found === 0) {
      shadow.state = 'unasked';
      return;
    }
    shadow.state = found === 0xffff_ffff ? 'none' : 'picked';
    shadow.slot = found === 0xffff_ffff ? -1 : found - 1;
    shadow.cost = f32[at.shadowCost]!;
    shadow.pickCost = f32[at.pickCost]!;
  }

  /** Runs shadow programs for one request of this thread in `every`; 0 = for none. */
  shadowEvery(every: number): void {
    this.#core.call.shadowEvery(every);
  }

  /** Seconds until the waiting requests before one of this priority have probably left; undefined = unknown. */
  drainSeconds(priority: number): number | undefined {
    const seconds = this.#core.call.gateDrainsIn(priority);
    return seconds > 0 ? seconds : undefined;
  }

  /** Writes the gate input of a decision. @returns its flags */
  #writeGate({ waitSlots, held, blind, queued }: GateRequest): number {
    const { u32 } = this.#core;
    const at = this.#offset;
    if (waitSlots >= 0) this.#core.asserts?.waitSlot(this.#core.thread, waitSlots, [CORE.WAIT_SLOT_FREE]);
    u32[at.waitSlots] = waitSlots + 1;
    u32[at.held] = held?.ticket ?? 0;
    u32[at.heldGeneration] = held?.ticketGeneration ?? 0;
    const flags = CORE.DECIDE_GATED | (blind ? CORE.DECIDE_BLIND : 0);
    return queued === true ? flags | CORE.DECIDE_QUEUED : flags;
  }

  #writeSubset(slots: readonly number[]): void {
    const { bytes, sizes } = this.#core;
    bytes.fill(0, this.#subset, this.#subset + (sizes.endpoints >> 3));
    for (const slot of slots) {
      this.#core.asserts?.slot(slot);
      bytes[this.#subset + (slot >> 3)]! |= 1 << (slot & 7);
    }
  }

  #writeKeys(keys: readonly (string | undefined)[]): void {
    for (const [i, text] of keys.slice(0, CORE.KEYS_MAX).entries()) {
      if (text !== this.#keys[i]) hashKey(this.#core, text, this.#request + CORE.REQUEST_KEYS + i * 8);
      this.#keys[i] = text;
    }
  }

  #writeSession(name: string | undefined): void {
    hashKey(this.#core, name, this.#request + CORE.REQUEST_SESSION);
    this.#session = name;
  }

  #writeAdapter(name: string): void {
    const { bytes, call } = this.#core;
    const input = call.inputAddress() >>> 0;
    const { written } = encoder.encodeInto(name.slice(0, 1024), scratch);
    bytes.set(scratch.subarray(0, written), input);
    call.hashBytesTo(input, written, this.#request + CORE.REQUEST_ADAPTER);
    this.#adapter = name;
  }

  /** Whether the last decision of this thread was about a turn of a session. */
  get wasTurn(): boolean {
    return this.#core.call.sessionFound() !== 0;
  }

  /** Weighted score of a slot in the last decision of this thread. */
  scoreOf(slot: number): number {
    return this.#core.call.scoreOf(slot);
  }

  /** Whether the slot passed the filters of the last decision and was not picked before its last pick. */
  isCandidate(slot: number): boolean {
    return this.#core.call.isCandidate(slot) === 1;
  }

  /**
   * Score of one scorer operation for a slot in the last decision, before its weight. The decision must be `explained`.
   */
  explainedOf(operation: number, slot: number): number {
    const { call, f32, sizes } = this.#core;
    return f32[((call.explainAddress() >>> 0) >>> 2) + operation * sizes.endpoints + slot]!;
  }

  /** Calls `take` with what each counted filter of the last decision decided, in the order of the program. */
  filterNotes(take: (note: FilterNote) => void): void {
    const { u32, call } = this.#core;
    const area = call.requestAddress() >>> 0;
    const count = u32[(area + CORE.ANSWER_NOTES) >>> 2]!;
    for (let i = 0; i < count; i++) {
      const at = area + CORE.ANSWER_FILTER_NOTES + i * CORE.FILTER_NOTE_BYTES;
      take({
        filter: u32[(at + CORE.FILTER_NOTE_FILTER) >>> 2]! - 1,
        outcome: filterOutcomes[u32[(at + CORE.FILTER_NOTE_OUTCOME) >>> 2]!]!,
        candidates: u32[(at + CORE.FILTER_NOTE_CANDIDATES) >>> 2]!,
        unknown: u32[(at + CORE.FILTER_NOTE_UNKNOWN) >>> 2]!,
      });
    }
  }

  /** Looks up the holders of a prompt from its written hashes, without a decision; `matchedOf` returns the result. */
  matchAhead(blocks: number, tail: boolean): void {
    this.#core.call.matchAhead(blocks, tail ? 1 : 0);
  }

  /** Blocks of the last decision's prompt that the slot holds. */
  matchedOf(slot: number): number {
    return this.#core.u32[((this.#core.call.matchAddress() >>> 0) >>> 2) + slot]!;
  }

  /** Stores the new blocks of a pick of an `unstored` decision. Its request must be the last one decided. */
  storePick(profile: number, slot: number, ticket: number, generation: number): void {
    this.#core.call.storePick(profile, slot, ticket, generation);
  }

  /** Releases a charge. @returns false when a lock was not free in time: call again */
  release(ticket: number, generation: number): boolean {
    return this.#core.call.release(ticket, generation) !== 2;
  }

  /**
   * Takes the prompt's tokens off the load at the first output.
   * @param keep leaves the in-flight tokens charged until the release, because they contain estimated output
   */
  prefillDone(ticket: number, generation: number, nowMs: number, keep = false): void {
    this.#core.call.prefillDone(ticket, generation, keep ? 1 : 0, nowMs);
  }

  /** Takes the prompt off the gate's pending tokens of this endpoint, because another endpoint computes it. */
  prefillElsewhere(ticket: number, generation: number): void {
    this.#core.call.prefillElsewhere(ticket, generation);
  }

  /**
   * Writes the training sample of a request into this thread's ring (SampleReader), before its charge is released; once
   * per ticket.
   * @returns false when the ticket is not held any more; nothing is written then
   */
  noteSample(ticket: number, generation: number, measures: Measures): boolean {
    const { call } = this.#core;
    return (
      call.sampleWrite(
        ticket,
        generation,
        OUTCOMES[measures.outcome],
        measures.firstOutputMs ?? Number.NaN,
        measures.perTokenMs ?? Number.NaN,
        measures.durationMs,
        measures.outputTokens ?? UNKNOWN_COUNT,
        measures.promptTokens ?? UNKNOWN_COUNT,
        measures.cachedTokens ?? UNKNOWN_COUNT,
        measures.staged === true ? 1 : 0,
        targetsOf(measures.targetsMet),
      ) === 0
    );
  }

  /** Updates the output of a request: `tokens` tokens, which fill `blocks` blocks. */
  grow(ticket: number, generation: number, blocks: number, tokens: number): void {
    this.#core.call.grow(ticket, generation, blocks, tokens);
  }

  /** Records a piece of output that came `ms` milliseconds after the previous one, per token. */
  stepped(slot: number, ms: number): void {
    this.#core.call.gateStep(slot, ms);
  }

  /** Records the complete answer with its `tokens` tokens; `release` follows. */
  complete(ticket: number, generation: number, tokens: number, nowMs: number): void {
    this.#core.call.complete(ticket, generation, tokens, nowMs);
  }

  /**
   * Charges a ticket to the endpoint that has answered in place of the picked one.
   * @returns whether it is charged there now
   */
  moveCharge(ticket: number, generation: number, slot: number, slotGeneration: number): boolean {
    return this.#core.call.moveCharge(ticket, generation, slot, slotGeneration) === 0;
  }

  /** Records the result of a request for the endpoint that it was sent to. @returns CORE.NOTED_* bits */
  noteOutcome(slot: number, slotGeneration: number, result: RequestResult, nowMs: number): number {
    return this.#core.call.noteOutcome(slot, slotGeneration, resultNumbers[result], nowMs);
  }
}

const encoder = new TextEncoder();
const scratch = new Uint8Array(4096);

function offsets(request: number) {
  const word = (offset: number) => (request + offset) >>> 2;
  return {
    profile: word(CORE.REQUEST_PROFILE),
    flags: word(CORE.REQUEST_FLAGS),
    blocks: word(CORE.REQUEST_BLOCKS),
    promptTokens: word(CORE.REQUEST_PROMPT_TOKENS),
    outputTokens: word(CORE.REQUEST_OUTPUT_TOKENS),
    priority: word(CORE.REQUEST_PRIORITY),
    blockTokens: word(CORE.REQUEST_BLOCK_TOKENS),
    earlier: word(CORE.REQUEST_EARLIER),
    now: request + CORE.REQUEST_NOW,
    waitSlots: word(CORE.REQUEST_WAIT_SLOT),
    held: word(CORE.REQUEST_HELD),
    heldGeneration: word(CORE.REQUEST_HELD_GENERATION),
    record: word(CORE.ANSWER_RECORD),
    wouldPick: word(CORE.ANSWER_WOULD_PICK),
    filter: word(CORE.ANSWER_FILTER),
    shadow: word(CORE.ANSWER_SHADOW),
    shadowCost: word(CORE.ANSWER_SHADOW_COST),
    pickCost: word(CORE.ANSWER_PICK_COST),
    count: word(CORE.ANSWER_COUNT),
    ticket: word(CORE.ANSWER_TICKET),
    ticketGeneration: word(CORE.ANSWER_TICKET_GENERATION),
    matched: word(CORE.ANSWER_MATCHED),
    total: word(CORE.ANSWER_TOTAL),
    candidates: word(CORE.ANSWER_CANDIDATES),
    score: word(CORE.ANSWER_SCORE),
    uncachedTokens: word(CORE.ANSWER_UNCACHED_TOKENS),
    wantedTtft: word(CORE.REQUEST_WANTED_TTFT),
    wantedTpot: word(CORE.REQUEST_WANTED_TPOT),
    predictedTtft: word(CORE.ANSWER_TTFT),
    predictedTpot: word(CORE.ANSWER_TPOT),
    picks: word(CORE.ANSWER_PICKS),
  };
}

function targetsOf(met: boolean | undefined): number {
  if (met === undefined) return 0;
  return met ? CORE.TARGETS_MET : CORE.TARGETS_MISSED;
}
