import type { Endpoint, PoolRules, PoolUpdate, SlotAssignment, SlotUpdate } from '../../contract/endpoint.js';
import { endpointLabels } from '../../contract/endpoint-labels.js';
import type { EndpointSignals, EndpointTable } from '../../core/endpoint-table.js';
import type { SlotChanges, SlotTable } from '../../pool/slots.js';
import { LOCK_RETRY_MS, LockRetry } from '../../runtime/lock-retry.js';
import { writeLabels } from '../../scheduling/label-columns.js';
import type { LabelSpecification, MaskSpecification, PrefixSettings } from '../../scheduling/program.js';
import type { RulesMessage, ToPool } from '../messages.js';
import { EngineRefusals } from './engine-refusals.js';
import { type HeldBackReport, HeldBackReports } from './held-back-reports.js';

/** Label filters and where their masks are. */
export interface MaskSet {
  readonly masks: readonly MaskSpecification[];
  /** Number of the first mask in the core. */
  readonly firstMask: number;
}

/** The part of the configuration that decides the columns of the control thread. */
export interface PoolSettings extends MaskSet {
  readonly prefix: PrefixSettings | undefined;
}

export interface PoolControllerOptions {
  readonly table: EndpointTable;
  readonly slots: SlotTable;
  readonly settings: PoolSettings;
  /** Content of the label columns; equal for every configuration that is applied without a restart. */
  readonly labels: readonly LabelSpecification[];
  readonly broadcast: (message: ToPool) => void;
  /** Whether every shard has applied this version. */
  readonly applied: (version: number) => boolean;
  /** Called when slots have changed. */
  readonly changed: (update: SlotUpdate) => void;
  readonly report: (problem: string) => void;
  /** Called when an engine has fallen asleep, or is awake again. */
  readonly slept?: (endpoint: Endpoint, asleep: boolean) => void;
  /** Called when an engine refuses requests because its queue is full; at most once a minute. */
  readonly refusing?: (endpoint: Endpoint, perSecond: number) => void;
  /** Called when a filter has held an endpoint back for long, and when it no longer does. */
  readonly heldBack?: (endpoint: Endpoint, report: HeldBackReport) => void;
  /** Called when an engine that tells of its blocks has ended, or has another process than before. */
  readonly restarted?: (slot: number, generation: number, sign: 'ended' | 'started') => void;
}

/** Least difference of two start times of which the second one is a restart, in seconds. */
const START_SECONDS_MIN = 2;
/** What ends the lack of slots. */
const FULL_REMEDY = ': raise --max-endpoints (maxEndpoints of a pool of --pools)';
/** Bound on the names of past endpoints. */
const NAMES_MAX = 4096;

/**
 * Writes the result of discovery to shared memory. Every slot that can be picked is known to every shard: a new
 * endpoint is announced first and becomes live when all shards have applied it; a removed one stops being picked before
 * its slot is freed. An update that replaces all endpoints leaves no gap: removed ones take requests until a new one is
 * live.
 */
export class PoolController {
  readonly #options: PoolControllerOptions;
  readonly #assignments = new Map<number, SlotAssignment>();
  /** Slots that are live. */
  readonly #serving = new Set<number>();
  /** Slots of removed endpoints that stay live until a new endpoint is. */
  readonly #retiring = new Set<number>();
  readonly #capacities = new Map<number, number>();
  readonly #heldBack: HeldBackReports;
  /** Start of the engine's process by slot, in seconds of its clock. */
  readonly #starts = new Map<number, number>();
  /** Slots whose engines sleep. */
  readonly #asleep = new Set<number>();
  readonly refusals = new EngineRefusals((slot, perSecond) =>
    this.#options.refusing?.(this.#assignments.get(slot)!.endpoint, perSecond),
  );
  #restarts = 0;
  #rules: RulesMessage = { objectives: [], rewrites: [], models: [] };
  /** Names of past and present endpoints by slot and generation, oldest first. */
  readonly #names = new Map<string, string>();
  #labelOf = endpointLabels([]);
  #version = 0;
  #settings: PoolSettings;
  /** Masks of the programs that decide in shadow. */
  #shadow: MaskSet = { masks: [], firstMask: 0 };
  /** Writes to the table, in order: a slot must not be freed after its next endpoint has been written. */
  readonly #writes: LockRetry;
  #waiting: { version: number; added: readonly SlotAssignment[] }[] = [];

  constructor(options: PoolControllerOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#heldBack = new HeldBackReports(options.table, (endpoint, report) => options.heldBack?.(endpoint, report));
    this.#writes = new LockRetry({
      pauseMsMax: LOCK_RETRY_MS,
      stalled: () => options.report('the endpoint table cannot be written: it stays locked'),
    });
  }

  /** Writes the columns by other settings. Masks with other numbers leave the old ones in place. */
  configure(settings: PoolSettings): void {
    this.#settings = settings;
    this.#capacities.clear();
    this.#updateMasks(settings);
    if (settings.prefix === undefined) return;
    for (const slot of this.#assignments.keys()) this.#options.table.setCapacity(slot, settings.prefix.capacityBlocks);
  }

  /** Keeps the masks of programs that decide in shadow, too. */
  configureShadow(settings: MaskSet): void {
    this.#shadow = settings;
    this.#updateMasks(settings);
  }

  get version(): number {
    return this.#version;
  }

  /** Endpoints of the pool. */
  get assignments(): readonly SlotAssignment[] {
    return this.#retiring.size === 0 ? this.known : this.known.filter(({ slot }) => !this.#retiring.has(slot));
  }

  /** Endpoints that can be picked now or soon: those of the pool, and removed ones that are live. */
  get known(): readonly SlotAssignment[] {
    return [...this.#assignments.values()];
  }

  /** Endpoints that are left out because the pool is full. */
  get leftOut(): number {
    return this.#options.slots.waiting;
  }

  /** Engines that had a later start time than before, at the same address. */
  get restarts(): number {
    return this.#restarts;
  }

  get rules(): RulesMessage {
    return this.#rules;
  }

  endpointOf(slot: number): Endpoint | undefined {
    return this.#assignments.get(slot)?.endpoint;
  }

  /** Name of a slot's endpoint as a label of metrics. */
  labelOf(slot: number): string | undefined {
    const endpoint = this.endpointOf(slot);
    return endpoint && this.#labelOf(endpoint);
  }

  /** Name of the endpoint that has or had a slot; undefined generation = the present one. */
  nameOf(slot: number, generation: number | undefined): string {
    const now = this.#assignments.get(slot);
    if (now !== undefined && (generation === undefined || now.generation === generation)) return now.endpoint.id;
    return this.#names.get(`${slot}.${generation}`) ?? `slot ${slot}`;
  }

  apply(update: PoolUpdate): void {
    const { slots, report } = this.#options;
    const whole = 'endpoints' in update;
    const change = whole ? slots.apply(update.endpoints) : slots.applyChanges(update);
    for (const { endpoint, reason } of change.refused)
      report(`endpoint ${endpoint.id} is left out: ${reason}${reason === 'pool full' ? FULL_REMEDY : ''}`);
    const rules = whole ? update : update.rules;
    if (rules !== undefined) this.#applyRules(rules);
    if (whole || change.added.length + change.removed.length + change.changed.length > 0) this.#applySlots(change);
  }

  #applyRules({ objectives, rewrites, models = new Map() }: PoolRules): void {
    this.#rules = { objectives: [...objectives], rewrites, models: [...models] };
    this.#options.broadcast({ kind: 'rules', ...this.#rules });
  }

  #applySlots({ added, removed, changed }: Omit<SlotChanges, 'refused'>): void {
    const { table, labels, broadcast } = this.#options;
    for (const assignment of changed) this.#change(assignment);
    const gone = this.#takeOut(removed, added);
    for (const assignment of added) this.#add(assignment);
    this.#labelOf = endpointLabels(this.known.map(({ endpoint }) => endpoint));
    this.#version++;
    const set = [...added, ...changed];
    this.#markMasks(set);
    writeLabels(table, labels, set);
    const slots = gone.map(({ slot }) => slot);
    broadcast({ kind: 'endpoints', version: this.#version, added: set, removed: slots });
    this.#waiting.push({ version: this.#version, added });
    this.#options.changed({ set, removed: gone });
    this.acknowledged();
  }

  /**
   * Takes removed endpoints out of the picks. They stay while no other endpoint is live and an added one waits for the
   * shards. A slot that is given out again in a full table is freed all the same.
   * @returns the endpoints whose slots are free
   */
  #takeOut(removed: readonly SlotAssignment[], added: readonly SlotAssignment[]): SlotAssignment[] {
    for (const { slot } of removed) this.#retiring.add(slot);
    const reused = new Set(added.map(({ slot }) => slot));
    const stay = (added.length > 0 || this.#awaitsLive()) && this.#servesRetiringOnly();
    const gone = [...this.#retiring].filter((slot) => !stay || !this.#serving.has(slot) || reused.has(slot));
    if (gone.length === 0) return [];
    const restarted = new Set([...added, ...this.assignments].map(({ endpoint }) => endpoint.id));
    return gone.map((slot) => this.#remove(slot, restarted));
  }

  #servesRetiringOnly(): boolean {
    for (const slot of this.#serving) if (!this.#retiring.has(slot)) return false;
    return true;
  }

  /** Whether an endpoint waits for the shards and will be live then. */
  #awaitsLive(): boolean {
    return this.#waiting.some(({ added }) =>
      added.some(({ slot, generation }) => {
        const now = this.#assignments.get(slot);
        return now?.generation === generation && now.endpoint.draining !== true;
      }),
    );
  }

  /** Makes endpoints live that all shards know. Called when a shard has applied a version. */
  acknowledged(): void {
    const { applied } = this.#options;
    this.#waiting = this.#waiting.filter(({ version, added }) => {
      if (!applied(version)) return true;
      for (const { slot, generation } of added) {
        const now = this.#assignments.get(slot);
        // The slot may have gone to another endpoint meanwhile, which waits for a version of its own.
        if (now?.generation === generation) this.#writeState(now);
      }
      return false;
    });
    const stay = this.#awaitsLive() && this.#servesRetiringOnly();
    if (this.#retiring.size > 0 && !stay) this.#applySlots({ added: [], removed: [], changed: [] });
  }

  /**
   * Takes the same server in another state. A slot that shards do not know yet becomes live or draining once all of
   * them do.
   */
  #change(assignment: SlotAssignment): void {
    const { slot, generation } = assignment;
    const before = this.#assignments.get(slot);
    this.#assignments.set(slot, assignment);
    if (before?.endpoint.draining === assignment.endpoint.draining) return;
    const isNew = ({ added }: { added: readonly SlotAssignment[] }) =>
      added.some((one) => one.slot === slot && one.generation === generation);
    if (!this.#waiting.some(isNew)) this.#writeState(assignment);
  }

  #writeState({ slot, endpoint }: SlotAssignment): void {
    const state = endpoint.draining === true || this.#asleep.has(slot) ? 'draining' : 'live';
    if (state === 'live') this.#serving.add(slot);
    else this.#serving.delete(slot);
    this.#writes.run(() => this.#options.table.setState(slot, state));
  }

  #add(assignment: SlotAssignment): void {
    const { table } = this.#options;
    const { prefix } = this.#settings;
    this.#assignments.set(assignment.slot, assignment);
    this.#rememberName(assignment);
    this.#capacities.delete(assignment.slot);
    this.#writes.run(() => table.open(assignment.slot, assignment.generation));
    if (prefix !== undefined) table.setCapacity(assignment.slot, prefix.capacityBlocks);
  }

  #rememberName({ slot, generation, endpoint }: SlotAssignment): void {
    this.#names.set(`${slot}.${generation}`, endpoint.id);
    if (this.#names.size > NAMES_MAX) this.#names.delete(this.#names.keys().next().value!);
  }

  /** @param restarted ids that the pool still has, with another server */
  #remove(slot: number, restarted: ReadonlySet<string>): SlotAssignment {
    const { table } = this.#options;
    const assignment = this.#assignments.get(slot)!;
    this.#assignments.delete(slot);
    this.#serving.delete(slot);
    this.#retiring.delete(slot);
    this.#starts.delete(slot);
    this.#asleep.delete(slot);
    this.refusals.forget(slot);
    this.#heldBack.forget(slot);
    const lost = restarted.has(assignment.endpoint.id) ? 'engine-restarted' : 'endpoint-gone';
    this.#writes.run(() => table.setState(slot, 'free'));
    this.#writes.run(() => table.forget(slot, lost));
    return assignment;
  }

  /**
   * Writes the signals of a scrape and follows the engine's cache size. Requests that the engine refused of late count
   * as waiting.
   * @param agesFromMs time from which on the signals age (SignalSink)
   * @returns false when they could not be written now
   */
  publish(slot: number, generation: number, signals: EndpointSignals, nowMs: number, agesFromMs = nowMs): boolean {
    if (this.#assignments.get(slot)?.generation !== generation) return true;
    this.#followCapacity(slot, signals);
    this.#followStart(slot, generation, signals.startSeconds);
    this.#followSleep(slot, signals.asleep);
    const refused = this.refusals.note(slot, signals.figures, nowMs);
    this.#heldBack.look(this.#assignments.values(), nowMs);
    const { waiting } = signals;
    const told = refused === 0 || waiting === undefined ? signals : { ...signals, waiting: waiting + refused, refused };
    return this.#options.table.publish(slot, told, agesFromMs);
  }

  /** The block sizes of the index and of the engine differ; both capacities are the same number of tokens. */
  #followCapacity(slot: number, { blockTokens, blockCount }: EndpointSignals): void {
    const { table } = this.#options;
    const { prefix } = this.#settings;
    if (prefix?.autoTune !== true || blockTokens === undefined || blockCount === undefined) return;
    const capacity = Math.max(1, Math.floor((blockTokens * blockCount) / prefix.blockTokens));
    if (this.#capacities.get(slot) === capacity) return;
    this.#capacities.set(slot, capacity);
    table.setCapacity(slot, capacity);
  }

  /**
   * A process that started later has an empty cache. Start times that a clock correction moves differ by less than
   * START_SECONDS_MIN.
   */
  #followStart(slot: number, generation: number, startSeconds: number | undefined): void {
    if (startSeconds === undefined) return;
    const before = this.#starts.get(slot);
    this.#starts.set(slot, startSeconds);
    if (before === undefined || startSeconds - before < START_SECONDS_MIN) return;
    this.#restarts++;
    const { prefix } = this.#settings;
    if (prefix === undefined) return;
    if ((prefix.knownBy ?? 'decisions') !== 'decisions') this.#options.restarted?.(slot, generation, 'started');
    else this.#writes.run(() => this.#options.table.clearPrefix(slot, 'engine-restarted'));
  }

  /** Whether the engine of a slot sleeps. */
  isAsleep(slot: number): boolean {
    return this.#asleep.has(slot);
  }

  /** A sleeping engine has dropped its cache, and answers nothing until it is woken, so it gets no requests. */
  #followSleep(slot: number, asleep = false): void {
    if (this.#asleep.has(slot) === asleep) return;
    if (asleep) this.#asleep.add(slot);
    else this.#asleep.delete(slot);
    const assignment = this.#assignments.get(slot)!;
    this.#options.slept?.(assignment.endpoint, asleep);
    const isAnnounced = ({ added }: { added: readonly SlotAssignment[] }) => added.some((one) => one.slot === slot);
    if (!this.#waiting.some(isAnnounced)) this.#writeState(assignment);
    const { prefix } = this.#settings;
    if (!asleep || prefix === undefined || (prefix.knownBy ?? 'decisions') !== 'decisions') return;
    this.#writes.run(() => this.#options.table.clearPrefix(slot, 'cache-cleared'));
  }

  /**
   * Drops the prompts of an endpoint that has died: its process is gone, and its cache with it. An engine with events
   * that is only silent may still hold its blocks.
   */
  forgetPrompts({ slot, generation }: SlotAssignment, isGone: boolean): void {
    const { prefix } = this.#settings;
    const tells = (prefix?.knownBy ?? 'decisions') !== 'decisions';
    if (prefix === undefined || (!isGone && tells)) return;
    if (this.#assignments.get(slot)?.generation !== generation) return;
    this.#writes.run(() => this.#options.table.clearPrefix(slot, isGone ? 'engine-restarted' : 'endpoint-gone'));
    if (tells) this.#options.restarted?.(slot, generation, 'ended');
  }

  /** Writes named values by their column; undefined = unknown. @returns false when they could not be written now */
  publishAttributes(slot: number, generation: number, values: ReadonlyMap<number, number | undefined>): boolean {
    if (this.#assignments.get(slot)?.generation !== generation) return true;
    return [...values].every(([attribute, value]) => this.#options.table.setAttribute(slot, attribute, value));
  }

  /** @returns false when the mark could not be written now */
  stale(slot: number, generation: number): boolean {
    if (this.#assignments.get(slot)?.generation !== generation) return true;
    return this.#options.table.markStale(slot);
  }

  #updateMasks({ masks, firstMask }: MaskSet): void {
    for (const [mask, { accepts }] of masks.entries()) {
      const slots = this.known.filter(({ endpoint }) => accepts(endpoint.labels)).map(({ slot }) => slot);
      this.#options.table.setMask(firstMask + mask, slots);
    }
  }

  /** Writes the bits of these endpoints. A free slot keeps its bits until the next endpoint has it. */
  #markMasks(set: readonly SlotAssignment[]): void {
    for (const { masks, firstMask } of [this.#settings, this.#shadow]) {
      for (const [mask, { accepts }] of masks.entries()) {
        for (const { slot, endpoint } of set) {
          this.#options.table.markMask(firstMask + mask, slot, accepts(endpoint.labels));
        }
      }
    }
  }
}
