import type { EngineFigures } from '../contract/engine-figures.js';
import { TOLD_LOSSES, type ToldLoss } from './cache-loss.js';
import { CORE } from './core-names.js';
import { hashKey } from './label-hash.js';
import type { CoreInstance } from './memory.js';

/** Values of one scrape; undefined = unknown. */
export interface EndpointSignals {
  readonly waiting?: number | undefined;
  readonly running?: number | undefined;
  readonly kvUsage?: number | undefined;
  /** Name of the model as the engine's metrics carry it. */
  readonly model?: string | undefined;
  /** Tokens at which a hit of the engine's cache can end, and how many such blocks the cache holds. */
  readonly blockTokens?: number | undefined;
  readonly blockCount?: number | undefined;
  /** Requests that the engine refused of late: a part of the waiting ones. */
  readonly refused?: number | undefined;
  /** Whether the engine sleeps: it takes no requests until it is woken. Undefined = the engine does not report it. */
  readonly asleep?: boolean | undefined;
  /** Figures beside the signals; no decision reads them. Undefined = the engine tells none. */
  readonly figures?: EngineFigures | undefined;
  /** Start of the engine's process, in seconds of its clock. */
  readonly startSeconds?: number | undefined;
  /** Named values in the order of the configuration; undefined = unknown, null = written by another source. */
  readonly attributes?: readonly (number | undefined | null)[] | undefined;
  readonly adapters?:
    | { readonly running: readonly string[]; readonly waiting: readonly string[]; readonly max: number }
    | undefined;
  /** Adapters that are loaded, in slots of the GPU and in host memory; undefined = the engine does not tell. */
  readonly residency?:
    | {
        readonly gpu: readonly string[];
        readonly cpu: readonly string[];
        /** Of those on the GPU, the ones that stay there. */
        readonly pinned: readonly string[];
        /** Adapters in slots of the GPU, and these slots, where the engine counts them. */
        readonly onGpu: number | undefined;
        readonly slots: number | undefined;
      }
    | undefined;
}

/** The columns of a slot as plain data. */
export interface EndpointReading {
  readonly state: number;
  readonly generation: number;
  readonly waiting: number | undefined;
  readonly running: number | undefined;
  readonly kvUsage: number | undefined;
  readonly blockTokens: number;
  readonly blockCount: number;
  readonly inflight: number;
  readonly inflightTokens: number;
  readonly activeBlocks: number;
  readonly outputBlocks: number;
  /** Requests in flight above those at the last scrape; below 0 = so many fewer. */
  readonly sinceScrape: number;
  /** 0 in, 1 out, 2 under probe. */
  readonly ejection: number;
  /** 0 alive, 1 in doubt, 2 dead: it takes no connections. */
  readonly death: number;
  /** Failed requests in a row. */
  readonly failures: number;
  /** Whether its requests in flight get no byte. */
  readonly silent: boolean;
  readonly signalTimeMs: number;
  readonly prefixBlocks: number;
  /** Parts of `inflight`, `inflightTokens` and `outputBlocks` from other replicas. */
  readonly peerRequests: number;
  readonly peerTokens: number;
  readonly peerOutputBlocks: number;
}

/** Decisions from which on nothing is known of the present: filters note endpoints only when requests come. */
const HELD_BACK_SECONDS = 30;

/** Filters that hold an endpoint back, as of the decisions of the last 30 s. */
export interface HeldBack {
  /** Undefined = overload-filter did not veto it in the last decision. */
  readonly veto:
    | {
        /** Time over which every decision vetoed it. */
        readonly seconds: number;
        readonly limit: 'waiting' | 'kv-cache';
        /** The limit: waiting requests, or a share of the KV cache. */
        readonly at: number;
      }
    | undefined;
  /** Undefined = warm-up-filter does not take its cache for cold. */
  readonly warming:
    | {
        readonly seconds: number;
        /** Its share of the mean requests in flight of the others. */
        readonly share: number;
      }
    | undefined;
}

/**
 * The control thread's access to the endpoint columns. Every write returns false when the lock is not free, because its
 * owner has just died; the caller repeats it.
 */
export class EndpointTable {
  readonly #core: CoreInstance;
  readonly #columns: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#columns = core.call.regionAddress(CORE.REGION_ENDPOINTS) >>> 0;
  }

  #cell(column: number, slot: number): number {
    return this.#columns + ((column * this.#core.sizes.endpoints + slot) << 2);
  }

  #u32(column: number, slot: number): number {
    return this.#core.u32[this.#cell(column, slot) >>> 2]!;
  }

  #f32(column: number, slot: number): number {
    return this.#core.f32[this.#cell(column, slot) >>> 2]!;
  }

  /** Assigns a free slot to an endpoint. It is not picked before `setState(slot, 'live')`. */
  open(slot: number, generation: number): boolean {
    this.#core.asserts?.control();
    this.#core.asserts?.slot(slot);
    this.#core.asserts?.that(generation > 0, () => `generation ${generation} is above 0`);
    return this.#core.call.endpointOpen(slot, generation) === 0;
  }

  setState(slot: number, state: keyof typeof STATES): boolean {
    this.#core.asserts?.move(slot, STATES[state]);
    return this.#core.call.endpointState(slot, STATES[state]) === 0;
  }

  /** Removes a removed endpoint's blocks from the prefix index. */
  forget(slot: number, lost: ToldLoss): boolean {
    return this.#core.call.endpointForget(slot, TOLD_LOSSES[lost]) === 0;
  }

  /** Removes an endpoint's blocks from the prefix index; the endpoint stays. */
  clearPrefix(slot: number, lost: ToldLoss): boolean {
    return this.#core.call.prefixClear(slot, TOLD_LOSSES[lost]) !== CORE.PREFIX_BUSY;
  }

  /** Whether what is sent to an endpoint counts as held by it, because its engine sends no events of its blocks. */
  setUntold(slot: number, untold: boolean): void {
    this.#core.asserts?.control();
    this.#core.asserts?.slot(slot);
    this.#core.call.endpointUntold(slot, untold ? 1 : 0);
  }

  /** Requests in flight on the endpoint of a slot, those of other replicas too. */
  inflight(slot: number): number {
    return this.#u32(CORE.COLUMN_INFLIGHT, slot);
  }

  /** @param agesFromMs time from which on the signals age, of the pool clock */
  publish(slot: number, signals: EndpointSignals, agesFromMs: number): boolean {
    this.#core.asserts?.control();
    this.#core.asserts?.slot(slot);
    const { SIGNAL_WAITING, SIGNAL_RUNNING, SIGNAL_KV_USAGE, SIGNAL_ADAPTERS } = CORE;
    let known = 0;
    if (signals.waiting !== undefined) known |= SIGNAL_WAITING;
    if (signals.running !== undefined) known |= SIGNAL_RUNNING;
    if (signals.kvUsage !== undefined) known |= SIGNAL_KV_USAGE;
    if (signals.adapters !== undefined) {
      known |= SIGNAL_ADAPTERS;
      this.#writeAdapters(slot, signals.adapters);
    }
    for (const [attribute, value] of (signals.attributes ?? []).entries()) {
      if (value !== null && !this.setAttribute(slot, attribute, value)) return false;
    }
    this.#core.call.endpointRefused(slot, signals.refused ?? 0);
    const busy = this.#core.call.endpointSignals(
      slot,
      known,
      signals.waiting ?? 0,
      signals.running ?? 0,
      signals.kvUsage ?? 0,
      signals.blockTokens ?? 0,
      signals.blockCount ?? 0,
      agesFromMs,
    );
    return busy === 0;
  }

  #writeAdapters(slot: number, adapters: NonNullable<EndpointSignals['adapters']>): void {
    const { call, bytes } = this.#core;
    const adaptersMax = CORE.ADAPTERS_PER_ENDPOINT;
    const region = call.regionAddress(CORE.REGION_ADAPTERS) >>> 0;
    const input = call.inputAddress() >>> 0;
    const names = [...adapters.running, ...adapters.waiting].slice(0, adaptersMax);
    for (const [i, name] of names.entries()) {
      const { written } = encoder.encodeInto(name.slice(0, 1024), scratch);
      bytes.set(scratch.subarray(0, written), input);
      call.hashBytesTo(input, written, region + (slot * adaptersMax + i) * 8);
    }
    call.endpointAdapters(
      slot,
      Math.min(adapters.running.length, adaptersMax),
      Math.min(adapters.waiting.length, adaptersMax - Math.min(adapters.running.length, adaptersMax)),
      adapters.max,
    );
  }

  /** Notes that an engine has shown a model as a LoRA adapter: requests for it prefer endpoints with that adapter. */
  showAdapter(name: string): void {
    const { call, bytes } = this.#core;
    const input = call.inputAddress() >>> 0;
    const { written } = encoder.encodeInto(name.slice(0, 1024), scratch);
    const hash = input + scratch.length;
    bytes.set(scratch.subarray(0, written), input);
    call.hashBytesTo(input, written, hash);
    call.adapterShown(hash);
  }

  /** Marks the signals as unknown because they are too old. */
  markStale(slot: number): boolean {
    this.#core.asserts?.slot(slot);
    return this.#core.call.endpointStale(slot) === 0;
  }

  /** Sets the bound on the blocks that the prefix index attributes to the endpoint. */
  setCapacity(slot: number, blocks: number): void {
    this.#core.asserts?.slot(slot);
    this.#core.call.prefixSetCapacity(slot, blocks);
  }

  /**
   * Sets the recent prefill rate of all endpoints to 0, for experiments that decide without it. Uses plain stores, so
   * no other thread may use the memory.
   */
  forgetPrefillRates(): void {
    const first = this.#cell(CORE.COLUMN_PREFILL_RATE, 0) >>> 2;
    this.#core.f32.fill(0, first, first + this.#core.sizes.endpoints);
  }

  read(slot: number): EndpointReading {
    const known = this.#u32(CORE.COLUMN_KNOWN, slot);
    const { SIGNAL_WAITING, SIGNAL_RUNNING, SIGNAL_KV_USAGE, COLUMN_SIGNAL_TIME } = CORE;
    const signal = (bit: number, column: number) => ((known & bit) === 0 ? undefined : this.#f32(column, slot));
    const time = this.#columns + COLUMN_SIGNAL_TIME * this.#core.sizes.endpoints * 4 + slot * 8;
    return {
      state: this.#u32(CORE.COLUMN_STATE, slot),
      generation: this.#u32(CORE.COLUMN_GENERATION, slot),
      waiting: signal(SIGNAL_WAITING, CORE.COLUMN_WAITING),
      running: signal(SIGNAL_RUNNING, CORE.COLUMN_RUNNING),
      kvUsage: signal(SIGNAL_KV_USAGE, CORE.COLUMN_KV_USAGE),
      blockTokens: this.#u32(CORE.COLUMN_BLOCK_TOKENS, slot),
      blockCount: this.#u32(CORE.COLUMN_BLOCK_COUNT, slot),
      inflight: this.#u32(CORE.COLUMN_INFLIGHT, slot),
      inflightTokens: this.#u32(CORE.COLUMN_INFLIGHT_TOKENS, slot),
      activeBlocks: this.#u32(CORE.COLUMN_ACTIVE_BLOCKS, slot),
      outputBlocks: this.#u32(CORE.COLUMN_OUTPUT_BLOCKS, slot),
      sinceScrape: (this.#u32(CORE.COLUMN_INFLIGHT, slot) - this.#u32(CORE.COLUMN_INFLIGHT_SCRAPED, slot)) | 0,
      ejection: this.#u32(CORE.COLUMN_EJECTION, slot),
      death: this.#u32(CORE.COLUMN_DEATH, slot),
      failures: this.#u32(CORE.COLUMN_FAILURES, slot),
      silent: this.#u32(CORE.COLUMN_SILENT, slot) !== 0,
      signalTimeMs: this.#core.view.getFloat64(time, true),
      prefixBlocks: this.#u32(CORE.COLUMN_PREFIX_BLOCKS, slot),
      peerRequests: this.#u32(CORE.COLUMN_PEER_REQUESTS, slot),
      peerTokens: this.#u32(CORE.COLUMN_PEER_TOKENS, slot),
      peerOutputBlocks: this.#u32(CORE.COLUMN_PEER_OUTPUT, slot),
    };
  }

  /** Filters that hold an endpoint back. */
  heldBack(slot: number, nowMs: number): HeldBack {
    const lasted = (sinceColumn: number, lastColumn: number) => {
      const [since, last] = [this.#u32(sinceColumn, slot), this.#u32(lastColumn, slot)];
      return since === 0 || nowMs / 1000 - last > HELD_BACK_SECONDS ? undefined : Math.max(0, last - since);
    };
    const vetoed = lasted(CORE.COLUMN_VETO_SINCE, CORE.COLUMN_VETO_LAST);
    const warming = lasted(CORE.COLUMN_WARMING_SINCE, CORE.COLUMN_WARMING_LAST);
    const rounded = (column: number) => Math.round(this.#f32(column, slot) * 1e4) / 1e4;
    const over = rounded(CORE.COLUMN_VETO_LIMIT);
    const limit = over > 0 ? 'waiting' : 'kv-cache';
    return {
      veto: vetoed === undefined ? undefined : { seconds: vetoed, limit, at: Math.abs(over) },
      warming: warming === undefined ? undefined : { seconds: warming, share: rounded(CORE.COLUMN_WARMING_SHARE) },
    };
  }

  /** Replaces one mask of the filters; bit = slot. */
  setMask(mask: number, slots: Iterable<number>): void {
    const { call, sizes, bytes } = this.#core;
    if (mask >= CORE.MASK_COUNT) throw new RangeError(`at most ${CORE.MASK_COUNT} label filters`);
    const words = (call.regionAddress(CORE.REGION_MASKS) >>> 0) + mask * (sizes.endpoints >> 3);
    const next = new Uint8Array(sizes.endpoints >> 3);
    this.#core.asserts?.control();
    for (const slot of slots) {
      this.#core.asserts?.slot(slot);
      next[slot >> 3]! |= 1 << (slot & 7);
    }
    bytes.set(next, words);
  }

  /** Sets or clears the bit of one slot in a mask. */
  markMask(mask: number, slot: number, isSet: boolean): void {
    const { call, sizes, bytes } = this.#core;
    if (mask >= CORE.MASK_COUNT) throw new RangeError(`at most ${CORE.MASK_COUNT} label filters`);
    const byte = (call.regionAddress(CORE.REGION_MASKS) >>> 0) + mask * (sizes.endpoints >> 3) + (slot >> 3);
    const bit = 1 << (slot & 7);
    bytes[byte] = isSet ? bytes[byte]! | bit : bytes[byte]! & ~bit;
  }

  /** Sets a label of a slot as a text, which is compared by its hash; undefined = absent. */
  setLabelText(column: number, slot: number, text: string | undefined): void {
    const at = this.#core.call.inputAddress() >>> 0;
    // The hash is written after its text, then split over the two columns.
    const to = at + CORE.THREAD_INPUT_BYTES - BigUint64Array.BYTES_PER_ELEMENT;
    hashKey(this.#core, text, to);
    const hash = this.#core.view.getBigUint64(to, true);
    this.#setLabel(column, slot, Number(hash & 0xffff_ffffn), Number(hash >> 32n));
  }

  /** Sets a label of a slot as a range; undefined = absent, `bad` = the label is no range. */
  setLabelRange(column: number, slot: number, range: { min: number; max: number } | 'bad' | undefined): void {
    const none = { min: range === 'bad' ? CORE.RANGE_BAD : CORE.RANGE_ABSENT, max: 0 };
    const { min, max } = range === undefined || range === 'bad' ? none : range;
    bits.setFloat32(0, min, true);
    bits.setFloat32(4, max, true);
    this.#setLabel(column, slot, bits.getUint32(0, true), bits.getUint32(4, true));
  }

  #setLabel(column: number, slot: number, first: number, second: number): void {
    const { call, u32, sizes } = this.#core;
    if (column >= CORE.LABEL_COLUMNS) throw new RangeError(`at most ${CORE.LABEL_COLUMNS} labels`);
    this.#core.asserts?.control();
    this.#core.asserts?.slot(slot);
    const at = ((call.labelAddress(column) >>> 0) >>> 2) + slot;
    u32[at] = first;
    u32[at + sizes.endpoints] = second;
  }

  /** Sets a named value of a slot; undefined = unknown. @returns false when the value could not be written now */
  setAttribute(slot: number, attribute: number, value: number | undefined): boolean {
    const { call } = this.#core;
    if (attribute >= CORE.ATTRIBUTE_COLUMNS) throw new RangeError(`at most ${CORE.ATTRIBUTE_COLUMNS} attributes`);
    this.#core.asserts?.slot(slot);
    return call.endpointAttribute(slot, attribute, value ?? Number.NaN) === 0;
  }

  /** Endpoints that are out because they failed. */
  get ejected(): number {
    return this.#core.u32[(CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_EJECTED) >>> 2]!;
  }

  /**
   * Says whether an ejected endpoint takes connections: its probe waits while it does not, and is due at once when it
   * does again.
   * @returns false when it could not be written now
   */
  setReachable(slot: number, generation: number, reachable: boolean, nowMs: number): boolean {
    return this.#core.call.endpointReachable(slot, generation, reachable ? 1 : 0, nowMs) === 0;
  }

  /** Live endpoints that are in doubt or dead. */
  get dead(): number {
    return this.#core.call.deadEndpoints() >>> 0;
  }

  /** Lets failed requests put their endpoint in doubt until `setAlive` or `setDead`. */
  watchDoubts(): void {
    this.#core.u32[(CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_WATCHED) >>> 2] = 1;
  }

  /** Notes that an endpoint takes connections. @returns as setDead; `changed` = it was dead */
  setAlive(slot: number, generation: number, nowMs: number): DeathWrite {
    return DEATH_WRITES[this.#core.call.endpointAlive(slot, generation, nowMs)]!;
  }

  /**
   * Notes that an endpoint takes no connections.
   * @returns whether this is news; `locked` = it could not be written now
   */
  setDead(slot: number, generation: number, nowMs: number): DeathWrite {
    return DEATH_WRITES[this.#core.call.endpointDead(slot, generation, nowMs)]!;
  }

  /** Keeps failing endpoints among the candidates (`--disable-endpoint-ejection`). */
  disableEjection(): void {
    const { u32 } = this.#core;
    u32[(CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_EJECTION_OFF) >>> 2] = 1;
  }
}

/** Result of `setDead` and `setAlive`. */
export type DeathWrite = 'same' | 'changed' | 'locked';

const DEATH_WRITES: readonly DeathWrite[] = ['same', 'changed', 'locked'];
const STATES = { free: CORE.STATE_FREE, live: CORE.STATE_LIVE, draining: CORE.STATE_DRAINING } as const;
const encoder = new TextEncoder();
const bits = new DataView(new ArrayBuffer(8));
const scratch = new Uint8Array(4096);
