import { boundNumber, type RefusingBound } from '../contract/refusing-bound.js';
import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';
import { SessionLedger } from './session-ledger.js';

/** The rule by which an endpoint has room (assembly/gate/conditions.ts). */
export type GateSettings =
  | { readonly mode: 'off' }
  /** Learned window, limit and cache size. */
  | { readonly mode: 'learned' }
  | {
      readonly mode: 'utilization';
      readonly queueThreshold: number;
      readonly usageThreshold: number;
      readonly stalenessMs: number;
    }
  | {
      readonly mode: 'requests' | 'tokens' | 'hybrid';
      readonly maxRequests: number;
      readonly maxTokens: number;
    }
  /** Saturation of the fullest stage, by the strictest of several detectors' limits. */
  | { readonly mode: 'worst'; readonly prefill: StageLimits; readonly decode: StageLimits };

/** Limits of a stage; Infinity = none. */
export interface StageLimits {
  /** Waiting requests. */
  readonly queue: number;
  /** Share of the KV cache. */
  readonly usage: number;
  /** Age in milliseconds from which both are unknown. */
  readonly stalenessMs: number;
  /** In flight from here and from replicas. */
  readonly requests: number;
  readonly tokens: number;
  /** Requests that run or wait on the engine. */
  readonly scraped: number;
  readonly scrapedStalenessMs: number;
}

/** A waiting request as the control thread reads it. */
export interface WaitingRequest {
  readonly thread: number;
  readonly slot: number;
  readonly priority: number;
  readonly promptTokens: number;
  readonly uncachedTokens: number;
  readonly maxOutputTokens: number;
  readonly bodyBytes: number;
  readonly sinceMs: number;
  /** NaN = the configured time to live. */
  readonly ttlMs: number;
  /** NaN = no objective. */
  readonly firstTokenDueMs: number;
  readonly flow: string;
  /** Endpoint slots that may serve the request; undefined = all, also later ones. */
  readonly candidates: Uint32Array | undefined;
  /** Endpoint slot that holds the request's prefix and is worth a short wait; -1 = none. */
  readonly prefixSlot: number;
  /** Whether the request waits for that slot although another endpoint is open. */
  readonly aside: boolean;
  /** Whether it is a turn of a session for which no endpoint has room. */
  readonly held: boolean;
  /** Whether it goes on from a turn of a known session. */
  readonly known: boolean;
  /** Endpoint slot of its protected session, for which it waits; -1 = none. */
  readonly home: number;
  /** Whether the request was dispatched before, under this handle, and could not use the endpoint. */
  readonly again: boolean;
  readonly handle: number;
  readonly wantsPosition: boolean;
}

/** The end of a wait without an endpoint. */
export interface WaitRejection {
  /** Number that the shard understands. */
  readonly outcome: number;
  readonly retryAfterSeconds: number;
  readonly bound: RefusingBound;
}

/** Result of a dispatch. */
export type DispatchAnswer = 'done' | 'closed' | 'gone' | 'busy' | 'nowhere' | 'sticks' | 'held';

/** A running request that is to be evicted for one of a higher band. */
export interface Evicted {
  /** Thread number of the request's shard. */
  readonly thread: number;
  readonly ticket: number;
  readonly ticketGeneration: number;
  readonly priority: number;
}

/** Load of all other pickers on an endpoint. Whole numbers. */
export interface RemoteLoad {
  /** Requests in flight. */
  readonly requests: number;
  /** Prompt tokens still to be computed, of requests without a first token. */
  readonly pendingTokens: number;
  readonly pendingRequests: number;
  /** Tokens in the KV cache, of all requests. */
  readonly cacheTokens: number;
}

/** Learned state of the gate about an endpoint. */
export interface Room {
  /** Bound on the pending uncached tokens. */
  readonly window: number;
  readonly pendingTokens: number;
  readonly pendingRequests: number;
  /** Limit of the requests in flight; infinity until it is first lowered. */
  readonly limit: number;
  /**
   * Whether all engines of the pool queue requests of other senders. The endpoint gets nothing more until one of them
   * does not.
   */
  readonly foreignQueue: boolean;
  /** Tokens that the KV cache holds; 0 = unknown. */
  readonly capacity: number;
  readonly stepMs: number;
  readonly tokenMs: number;
  readonly overdue: number;
  /** Requests in flight of other pickers, as reported by them. */
  readonly remoteRequests: number;
}

const answers: Readonly<Record<number, DispatchAnswer>> = {
  [CORE.DISPATCH_DONE]: 'done',
  [CORE.DISPATCH_CLOSED]: 'closed',
  [CORE.DISPATCH_GONE]: 'gone',
  [CORE.DISPATCH_BUSY]: 'busy',
  [CORE.DISPATCH_NOWHERE]: 'nowhere',
  [CORE.DISPATCH_STICKS]: 'sticks',
  [CORE.DISPATCH_HELD]: 'held',
};

/**
 * The control thread's access to the capacity gate. A write returns false when the lock was not free; the caller
 * repeats it.
 */
export class CapacityGate {
  readonly sessions: SessionLedger;
  readonly #core: CoreInstance;
  readonly #subset: number;

  constructor(core: CoreInstance) {
    core.asserts?.control();
    this.#core = core;
    this.sessions = new SessionLedger(core);
    this.#subset = core.call.subsetAddress() >>> 0;
  }

  /** @param share share of every endpoint that this replica may fill, above 0 and at most 1 */
  configure(settings: GateSettings, blockTokens: number, share: number, nowMs: number): boolean {
    const { call } = this.#core;
    if (settings.mode === 'worst' && !this.#writeLimits(settings)) return false;
    const codes = {
      off: CORE.GATE_OFF,
      learned: CORE.GATE_LEARNED,
      utilization: CORE.GATE_UTILIZATION,
      requests: CORE.GATE_CONCURRENCY_REQUESTS,
      tokens: CORE.GATE_CONCURRENCY_TOKENS,
      hybrid: CORE.GATE_CONCURRENCY_HYBRID,
      worst: CORE.GATE_WORST,
    };
    const used = { queueThreshold: 1, usageThreshold: 1, stalenessMs: 0, maxRequests: 1, maxTokens: 1, ...settings };
    const { queueThreshold, usageThreshold, stalenessMs, maxRequests, maxTokens } = used;
    const mode = codes[settings.mode]!;
    const refused = call.gateConfigure(
      mode,
      blockTokens,
      share,
      queueThreshold,
      usageThreshold,
      stalenessMs,
      maxRequests,
      maxTokens,
      nowMs,
    );
    return refused === 0;
  }

  #writeLimits(settings: { readonly prefill: StageLimits; readonly decode: StageLimits }): boolean {
    return [settings.prefill, settings.decode].every(
      ({ queue, usage, stalenessMs, requests, tokens, scraped, scrapedStalenessMs }, stage) =>
        this.#core.call.gateStageLimits(
          stage,
          queue,
          usage,
          stalenessMs,
          requests,
          tokens,
          scraped,
          scrapedStalenessMs,
        ) !== 0,
    );
  }

  /** Notes the stages that an endpoint takes part in, for several detectors. */
  setStages(slot: number, { prefill, decode }: { readonly prefill: boolean; readonly decode: boolean }): boolean {
    const bits = (prefill ? CORE.IN_PREFILL : 0) | (decode ? CORE.IN_DECODE : 0);
    return this.#core.call.gateStagesOf(slot, bits) !== 0;
  }

  /** Sets the share of every endpoint that a band may fill, 0 to 1. */
  setCeiling(priority: number, ceiling: number): boolean {
    return this.#core.call.gateCeiling(priority, ceiling) === 1;
  }

  /** Makes the bands of these priorities, or keeps them as if each had had a request now. */
  keepBands(priorities: Iterable<number>, nowMs: number): boolean {
    for (const priority of priorities) if (this.#core.call.gateBand(priority, nowMs) < 0) return false;
    return true;
  }

  /**
   * Drops bands without a waiting request and without a new request for `idleMs`. The highest remaining band becomes
   * the highest one.
   * @returns the number of dropped bands
   */
  forgetBands(idleMs: number, nowMs: number): number {
    return this.#core.call.gateBandsForget(Math.max(0, Math.floor((nowMs - idleMs) / 1_000))) >>> 0;
  }

  /** Tells the shards the drain time of a band. @param seconds 0 = unknown */
  setDrain(priority: number, seconds: number): boolean {
    return this.#core.call.gateDrains(priority, seconds) === 1;
  }

  /**
   * Replaces the load of other pickers on an endpoint. This picker's share is then 1, or the rest beside pickers that
   * report no load. The value is dropped with the endpoint.
   */
  setRemoteLoad(slot: number, { requests, pendingTokens, pendingRequests, cacheTokens }: RemoteLoad): boolean {
    return this.#core.call.gateRemote(slot, requests, pendingTokens, pendingRequests, cacheTokens) === 1;
  }

  /** Endpoints that can be picked now. */
  get live(): number {
    const { u32 } = this.#core;
    return u32[(CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_LIVE) >>> 2]!;
  }

  /** Waiting requests by priority of their band, highest first. */
  waiting(): { readonly priority: number; readonly requests: number }[] {
    const { call, view } = this.#core;
    const at = call.gateAddress() >>> 0;
    return Array.from({ length: call.gateRanks() }, (_, rank) => ({
      priority: view.getInt32(at + CORE.GATE_PRIORITIES + rank * 4, true),
      requests: view.getUint32(at + CORE.GATE_WAITING + rank * 4, true),
    }));
  }

  /** Takes all requests and cancellations from a shard's ring. */
  takeEnqueued(thread: number, waiting: (slot: number) => void, cancelled: (slot: number) => void): void {
    const { call } = this.#core;
    for (let number = call.waitSlotEnqueued(thread); number >= 0; number = call.waitSlotEnqueued(thread)) {
      if ((number & CORE.RING_CANCEL) !== 0) cancelled(number & ~CORE.RING_CANCEL);
      else waiting(number);
    }
  }

  read(thread: number, slot: number): WaitingRequest {
    const { call, view, bytes, sizes } = this.#core;
    const at = call.waitSlotAddress(thread, slot) >>> 0;
    const number = (offset: number) => view.getUint32(at + offset, true);
    const time = (offset: number) => view.getFloat64(at + offset, true);
    const flags = number(CORE.WAIT_SLOT_FLAGS);
    const name = at + CORE.WAIT_SLOT_FLOW;
    const anywhere = (flags & CORE.WAIT_FLAG_ANYWHERE) !== 0;
    const mask = call.waitSlotMaskAddress(thread, slot) >>> 0;
    return {
      thread,
      slot,
      priority: view.getInt32(at + CORE.WAIT_SLOT_PRIORITY, true),
      promptTokens: number(CORE.WAIT_SLOT_PROMPT),
      uncachedTokens: number(CORE.WAIT_SLOT_UNCACHED),
      maxOutputTokens: number(CORE.WAIT_SLOT_OUTPUT_MAX),
      bodyBytes: number(CORE.WAIT_SLOT_BODY),
      sinceMs: time(CORE.WAIT_SLOT_SINCE),
      ttlMs: time(CORE.WAIT_SLOT_TTL),
      firstTokenDueMs: time(CORE.WAIT_SLOT_DEADLINE),
      // A copy: TextDecoder refuses shared memory.
      flow: decoder.decode(bytes.slice(name, name + number(CORE.WAIT_SLOT_FLOW_LENGTH))),
      candidates: anywhere ? undefined : this.#core.u32.slice(mask >>> 2, (mask + (sizes.endpoints >> 3)) >>> 2),
      prefixSlot: (flags & CORE.WAIT_FLAG_TURN) === 0 ? view.getInt32(at + CORE.WAIT_SLOT_STICKY, true) : -1,
      held: (flags & CORE.WAIT_FLAG_HELD) !== 0,
      known: view.getBigUint64(at + CORE.WAIT_SLOT_SESSION, true) !== 0n,
      home: (flags & CORE.WAIT_FLAG_HOME) === 0 ? -1 : view.getInt32(at + CORE.WAIT_SLOT_STICKY, true),
      aside: (flags & CORE.WAIT_FLAG_ASIDE) !== 0,
      again: (flags & CORE.WAIT_FLAG_BEFORE) !== 0,
      handle: number(CORE.WAIT_SLOT_HANDLE),
      wantsPosition: (flags & CORE.WAIT_FLAG_ASKS) !== 0,
    };
  }

  /** Least tokens that an endpoint must have room for, of a waiting turn. */
  needOf(thread: number, slot: number): number {
    this.#core.asserts?.waitSlot(thread, slot, IN_QUEUES);
    return this.#core.call.waitSlotNeed(thread, slot) >>> 0;
  }

  /** Writes the queues' handle of a waiting request for its shard. */
  setHandle(thread: number, slot: number, handle: number): void {
    const { call, view } = this.#core;
    this.#core.asserts?.waitSlot(thread, slot, IN_QUEUES);
    view.setUint32((call.waitSlotAddress(thread, slot) >>> 0) + CORE.WAIT_SLOT_HANDLE, handle, true);
  }

  /** Writes the position of a waiting or refused request for its client. @param expectedWaitMs undefined = unknown */
  setPosition(thread: number, slot: number, ahead: number, expectedWaitMs: number | undefined): void {
    const { call, view } = this.#core;
    this.#core.asserts?.waitSlot(thread, slot, IN_QUEUES);
    const at = call.waitSlotAddress(thread, slot) >>> 0;
    view.setUint32(at + CORE.WAIT_SLOT_POSITION, ahead, true);
    view.setFloat32(at + CORE.WAIT_SLOT_EXPECTED, expectedWaitMs ?? Number.NaN, true);
  }

  /** Count of the bell of the control thread. It rises with whatever may give a waiting request room. */
  get rung(): number {
    const { call, i32 } = this.#core;
    return Atomics.load(i32, (call.bellAddress(0) >>> 0) >>> 2);
  }

  /** Charges a waiting request to an open endpoint and returns it to its shard. @param only endpoint slot, -1 = any */
  dispatch(thread: number, slot: number, only: number, nowMs: number): DispatchAnswer {
    return answers[this.#core.call.waitSlotDispatch(thread, slot, only, nowMs)]!;
  }

  /** Rejects a waiting request. */
  reject(thread: number, slot: number, { outcome, retryAfterSeconds, bound }: WaitRejection): DispatchAnswer {
    const { call, view } = this.#core;
    this.#core.asserts?.waitSlot(thread, slot, IN_QUEUES);
    const at = call.waitSlotAddress(thread, slot) >>> 0;
    view.setUint32(at + CORE.WAIT_SLOT_OUTCOME, outcome, true);
    view.setFloat32(at + CORE.WAIT_SLOT_RETRY, retryAfterSeconds, true);
    view.setUint32(at + CORE.WAIT_SLOT_BOUND, boundNumber(bound), true);
    view.setFloat32(at + CORE.WAIT_SLOT_BOUND_USED, bound.used, true);
    view.setFloat32(at + CORE.WAIT_SLOT_BOUND_LIMIT, bound.limit, true);
    return answers[call.waitSlotReject(thread, slot)]!;
  }

  /** Returns the wait slot of a cancelled request. */
  forgotten(thread: number, slot: number): void {
    this.#core.call.waitSlotForget(thread, slot);
  }

  /**
   * Chooses a running request whose end makes room for a waiting one that no endpoint takes
   * (assembly/gate/eviction.ts). The caller has to tell its shard. A request is chosen once only. Undefined = none
   * exists, its end would not help, or the lock was not free.
   */
  evictRequest(thread: number, slot: number, nowMs: number): Evicted | undefined {
    const { call } = this.#core;
    const ticket = call.evictRequest(thread, slot, nowMs) >>> 0;
    if (ticket === 0) return undefined;
    const ticketGeneration = call.evictedGeneration() >>> 0;
    return { thread: call.evictedThread(), ticket, ticketGeneration, priority: call.evictedPriority() };
  }

  /** Whether a request still holds its charge. */
  isHeld({ ticket, ticketGeneration }: Evicted): boolean {
    return this.#core.call.isHeld(ticket, ticketGeneration) === 1;
  }

  /** Removes the expected room of a request that was to end and has not ended in time. */
  evictionLost({ ticket, ticketGeneration }: Evicted): boolean {
    return this.#core.call.evictionLost(ticket, ticketGeneration) === 0;
  }

  /** Updates the conditions that close endpoints; called every 50 ms while requests wait. */
  updateConditions(nowMs: number, passedMs: number): boolean {
    return this.#core.call.gateUpdate(nowMs, passedMs) === 0;
  }

  /** Time of the next useful `releaseUnseen`, as of the last update; Infinity = never. */
  get nextUnseenMs(): number {
    return this.#core.call.gateNextUnseen();
  }

  /**
   * Ends the prefill charge of requests whose first token cannot be seen and is overdue.
   * @returns time of the next call in milliseconds of the pool clock; Infinity = no such request is pending
   */
  releaseUnseen(nowMs: number): number {
    return this.#core.call.gateUnseen(nowMs);
  }

  /** Mean saturation of the endpoints in `slots`, 1 or more = full; undefined without endpoints. */
  saturation(slots: Iterable<number>, nowMs: number): number | undefined {
    const { bytes, sizes, call } = this.#core;
    bytes.fill(0, this.#subset, this.#subset + (sizes.endpoints >> 3));
    for (const slot of slots) {
      this.#core.asserts?.slot(slot);
      bytes[this.#subset + (slot >> 3)]! |= 1 << (slot & 7);
    }
    const value = call.gateSaturation(nowMs);
    return value < 0 ? undefined : value;
  }

  room(slot: number): Room {
    const { call, u32, f32 } = this.#core;
    this.#core.asserts?.slot(slot);
    const cell = (column: number) => (call.room(column, slot) >>> 0) >>> 2;
    const lowest = Math.max(0, call.gateRanks() - 1) * this.#core.sizes.endpoints;
    return {
      window: f32[cell(CORE.ROOM_WINDOW)]!,
      pendingTokens: u32[cell(CORE.ROOM_PENDING) + lowest]!,
      pendingRequests: u32[cell(CORE.ROOM_PENDING_COUNT) + lowest]!,
      limit: f32[cell(CORE.ROOM_LEARNED_LIMIT)]!,
      foreignQueue: f32[cell(CORE.ROOM_LIMIT)] === 0,
      capacity: f32[cell(CORE.ROOM_CAPACITY)]!,
      stepMs: f32[cell(CORE.ROOM_STEP)]!,
      tokenMs: f32[cell(CORE.ROOM_TOKEN_MS)]!,
      overdue: u32[cell(CORE.ROOM_OVERDUE)]!,
      remoteRequests: u32[cell(CORE.ROOM_REMOTE_REQUESTS)]!,
    };
  }
}

/** States of a wait slot that the control thread holds: the shard may cancel meanwhile. */
const IN_QUEUES = [CORE.WAIT_SLOT_WAITING, CORE.WAIT_SLOT_CANCELLED];
const decoder = new TextDecoder();
