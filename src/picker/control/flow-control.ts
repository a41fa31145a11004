import { endpointSaturation } from '../../admission/shedding.js';
import type { LoadedConfiguration } from '../../config/load.js';
import type { FlowControlSettings, QueueLimits } from '../../contract/queue-settings.js';
import type { SaturationSettings, SingleSettings, Stage } from '../../contract/saturation-settings.js';
import { Bell } from '../../core/bell.js';
import { CapacityGate, type Evicted, type GateSettings } from '../../core/capacity-gate.js';
import type { EndpointReading } from '../../core/endpoint-table.js';
import type { CoreInstance } from '../../core/memory.js';
import type { Pauses, SessionCounts, SessionTally } from '../../core/session-ledger.js';
import type { RoomSettings } from '../../flow-control/controller-options.js';
import { FlowController } from '../../flow-control/flow-controller.js';
import { gateSettings } from '../../flow-control/gate-settings.js';
import { Ceilings, standingPriorities } from '../../flow-control/policies/usage-limits.js';
import type { QueueSnapshot } from '../../flow-control/queue-contract.js';
import { QueueMachine } from '../../flow-control/queue-machine.js';
import { EvictionCounts, type EvictionDemand } from '../../operations/metrics/eviction-counts.js';
import { EnqueueRecorder } from '../../operations/telemetry/enqueue-recorder.js';
import type { VouchedNames } from '../../operations/telemetry/shown-names.js';
import type { HeardPeers } from '../../replication/replicated-pool.js';
import { LOCK_RETRY_MS, LockRetry } from '../../runtime/lock-retry.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import { type PoolSlot, poolStages } from '../../scheduling/filters/role-label.js';
import { PLAIN_BLOCK_TOKENS } from '../../scheduling/prompt-sizes.js';
import { FLOWS_SHOWN, flowReport } from './flow-report.js';
import type { SessionFigures } from './session-page.js';

/** Time before the end of a drain in which the remaining requests are answered. */
const FAREWELL_MS = 500;

/** Age in milliseconds up to which sums over all sessions are told again. */
const TALLY_MS = 200;

export interface FlowControlOptions {
  readonly core: CoreInstance;
  readonly configuration: LoadedConfiguration;
  readonly shards: number;
  /** Endpoints that take requests at present. */
  readonly pool: () => readonly PoolSlot[];
  /** Last signals of an endpoint. */
  readonly signals: (slot: number) => Signals;
  /** Bound on the fairness ids that metrics show; undefined = none of its own. */
  readonly fairnessIds?: number | undefined;
  /** Tells the shard of a request to end it. */
  readonly evictRequest: (evicted: Evicted) => void;
}

/**
 * Saturation of the pool (1 = full) for the prefill and the decode half of a request. The capacity gate uses the larger
 * one.
 */
export interface StageSaturation {
  /** Undefined when no endpoint takes part in this half. */
  readonly prefill: number | undefined;
  readonly decode: number | undefined;
  /** Undefined without endpoints. */
  readonly effective: number | undefined;
}

type Signals = Pick<
  EndpointReading,
  'waiting' | 'running' | 'kvUsage' | 'signalTimeMs' | 'inflight' | 'inflightTokens'
>;

/** What one of several detectors says of a stage: 1 = full. */
export interface DetectorSaturation {
  readonly detector: string;
  readonly stage: Stage;
  readonly value: number;
}

/** Largest age of signals that the learned limit uses (assembly/gate/learn.ts). */
const FRESH_MS = 1_000;

/**
 * Flow control of a picker: the queues, the capacity gate in the core, and the bell that wakes them. Control thread
 * only.
 */
export class FlowControl {
  readonly controller: FlowController;
  readonly gate: CapacityGate;
  readonly queues: QueueMachine;
  readonly evictions = new EvictionCounts();
  readonly #core: CoreInstance;
  readonly #bell: Bell;
  readonly #pool: () => readonly PoolSlot[];
  readonly #signals: (slot: number) => Signals;
  /** Retries for gate settings whose write met the lock of a dead thread. */
  readonly #writes = new LockRetry({ pauseMsMax: LOCK_RETRY_MS });
  #settings: FlowControlSettings;
  #gate: GateSettings;
  /** Undefined = room is learned. */
  #detector: SaturationSettings | undefined;
  /** Reports the duration of each dispatch, in seconds. */
  dispatched: (seconds: number) => void = () => undefined;
  /** Reports how long a turn was held, in seconds. */
  held: (seconds: number) => void = () => undefined;
  /** Replaces the names that are always label values. */
  readonly vouch: (names: VouchedNames) => void;
  #closing: NodeJS.Timeout | undefined;
  #tally: { readonly atMs: number; readonly sums: SessionTally } | undefined;
  /** Priorities of the objectives. */
  #objectives: readonly number[] = [];
  /** Live peers, and the pickers of the pool that are assumed, this one included. */
  #peers = { live: 0, expected: 1 };

  /** @throws Error when the gate cannot be opened, which needs a memory without other users */
  constructor({ core, configuration, shards, pool, signals, evictRequest, fairnessIds }: FlowControlOptions) {
    const settings = configuration.flowControl!;
    const counts = new EnqueueRecorder(core, fairnessIds);
    this.vouch = (names) => counts.vouch(names);
    this.#settings = settings;
    this.#core = core;
    this.#pool = pool;
    this.#signals = signals;
    this.#gate = gateSettings(configuration.saturationDetector);
    this.#detector = configuration.saturationDetector;
    this.gate = new CapacityGate(core);
    this.queues = new QueueMachine(settings, poolClockMs());
    this.controller = new FlowController({
      gate: this.gate,
      queues: this.queues,
      shards: Array.from({ length: shards }, (_, index) => index + 1),
      saturation: () => this.saturation().effective,
      nowMs: poolClockMs,
      wallMs: Date.now,
      counts: {
        dispatched: (seconds) => this.dispatched(seconds),
        arrived: (flow, priority, outcome, seconds) => counts.arrived(flow, priority, outcome, seconds),
        refused: (cause, priority) => counts.refused(cause, priority),
        held: (seconds) => this.held(seconds),
      },
      evictions: {
        tell: evictRequest,
        issued: (priority) => this.evictions.issued(priority, this.#demandOf(priority)),
        ended: (how, seconds) => this.evictions.ended(how, seconds),
      },
      blockTokens: configuration.scheduling.prefix?.blockTokens ?? PLAIN_BLOCK_TOKENS,
    });
    this.controller.evicts = settings.enableEviction;
    if (!this.controller.configure(this.#room)) throw new Error('the gate stays locked');
    this.#bell = new Bell(core, () => this.controller.wake());
    this.#bell.start();
  }

  #demandOf(priority: number): EvictionDemand {
    const ceiling = this.controller.ceilings.get(priority) ?? 1;
    return { saturation: this.saturation().effective ?? 1, ceiling, inflight: this.#core.call.ledgerUsed() };
  }

  get limits(): QueueLimits {
    return this.#settings.limits;
  }

  /**
   * Means over the endpoints. Without endpoints for a half of requests, `effective` is the mean over the whole pool.
   */
  saturation(): StageSaturation {
    const now = poolClockMs();
    const pool = this.#pool();
    const stages = poolStages(pool);
    const prefill = this.gate.saturation(stages.prefill, now);
    const decode = this.gate.saturation(stages.decode, now);
    const fuller = Math.max(prefill ?? 0, decode ?? 0);
    if (prefill !== undefined || decode !== undefined) return { prefill, decode, effective: fuller };
    const slots = pool.map(({ slot }) => slot);
    return { prefill, decode, effective: this.gate.saturation(slots, now) };
  }

  /**
   * Saturation by each of several detectors, by its stages: the mean over the endpoints of a stage. Empty for a
   * detector alone.
   */
  detectorSaturations(): readonly DetectorSaturation[] {
    if (this.#detector?.type !== 'max-saturation-detector') return [];
    const now = poolClockMs();
    const stages = poolStages(this.#pool());
    return this.#detector.detectors.flatMap(({ name, settings, stages: scope }) =>
      scope
        .filter((stage) => stages[stage].length > 0)
        .map((stage) => ({ detector: name, stage, value: this.#meanOf(stages[stage], settings, now) })),
    );
  }

  #meanOf(slots: readonly number[], settings: SingleSettings, nowMs: number): number {
    const sum = slots.reduce((total, slot) => {
      const { signalTimeMs, ...load } = this.#signals(slot);
      return total + endpointSaturation({ ...load, ageMs: nowMs - signalTimeMs }, settings);
    }, 0);
    return sum / slots.length;
  }

  /** Tells the gate which stages the endpoints of these slots take part in. */
  endpointsChanged(slots: readonly number[]): void {
    if (slots.length === 0) return;
    this.#writes.run(() => {
      const { prefill, decode } = poolStages(this.#pool());
      return slots.every((slot) =>
        this.gate.setStages(slot, { prefill: prefill.includes(slot), decode: decode.includes(slot) }),
      );
    });
  }

  /** Endpoints whose signals are missing or too old for the detector; undefined when the detector uses none. */
  staleEndpoints(): { readonly detector: string; readonly endpoints: number } | undefined {
    const { mode } = this.#gate;
    if (mode !== 'utilization' && mode !== 'learned') return undefined;
    const detector = mode === 'utilization' ? 'utilization-detector' : 'learned-limit-detector';
    const oldest = poolClockMs() - (mode === 'utilization' ? this.#gate.stalenessMs : FRESH_MS);
    const stale = this.#pool().filter(({ slot }) => {
      const { waiting, kvUsage, signalTimeMs } = this.#signals(slot);
      return waiting === undefined || kvUsage === undefined || signalTimeMs < oldest;
    });
    return { detector, endpoints: stale.length };
  }

  /** @param flows bound on the flows listed per band */
  snapshot(flows: number): QueueSnapshot {
    return this.queues.snapshot(poolClockMs(), flows);
  }

  sessionCounts(): SessionCounts | undefined {
    return this.gate.sessions.isOn ? this.gate.sessions.counts() : undefined;
  }

  /** Turns that are held; undefined while sessions are not counted. */
  heldTurns(): number | undefined {
    return this.gate.sessions.isOn ? this.queues.held : undefined;
  }

  keptSeconds(): readonly number[] {
    return this.gate.sessions.isOn ? this.gate.sessions.keptSeconds() : [];
  }

  longestHoldSeconds(): number | undefined {
    const { mode, maxWaitMs } = this.#settings.sessions;
    return mode === 'on' && Number.isFinite(maxWaitMs) ? maxWaitMs / 1_000 : undefined;
  }

  /** What the page shows of sessions; undefined while they are not counted. */
  sessionFigures(): SessionFigures | undefined {
    const tally = this.sessionTally();
    const { mode } = this.#settings.sessions;
    if (tally === undefined || mode === 'off') return undefined;
    const { sessions } = this.gate;
    const held = { count: this.queues.held, longest: this.controller.heldTurns };
    return { mode, tally, held, lastMinute: sessions.lastMinute, refillMs: sessions.refillMs };
  }

  sessionPauses(): Pauses | undefined {
    return this.gate.sessions.isOn ? this.gate.sessions.pauses() : undefined;
  }

  sessionTally(): SessionTally | undefined {
    if (!this.gate.sessions.isOn) return undefined;
    const now = poolClockMs();
    // One metrics page asks several times.
    if (this.#tally === undefined || now - this.#tally.atMs > TALLY_MS) {
      const { capacityTokens = 0 } = this.#settings.sessions;
      const endpoints = this.#pool().map(({ slot }) => {
        return { slot, capacity: this.gate.room(slot).capacity || capacityTokens };
      });
      this.#tally = { atMs: now, sums: this.gate.sessions.tally(endpoints, now) };
    }
    return this.#tally.sums;
  }

  /** Content of the debug page. @param describe name and requests in flight of a slot */
  report(describe: (slot: number) => { readonly endpoint: string; readonly inflight: number }): object {
    const now = poolClockMs();
    return flowReport({
      mode: this.#gate.mode,
      snapshot: this.snapshot(FLOWS_SHOWN),
      ceilings: this.controller.ceilings,
      saturation: this.saturation().effective,
      share: this.#share,
      endpoints: this.#pool().map(({ slot }) => ({
        ...describe(slot),
        ...this.gate.room(slot),
        sessionTokens: this.gate.sessions.isOn ? this.gate.sessions.usedTokens(slot) : undefined,
        saturation: this.gate.saturation([slot], now),
      })),
      events: this.controller.events,
      sessions: this.sessionCounts(),
      held: { count: this.queues.held, longest: this.controller.heldTurns },
    });
  }

  /**
   * Applies a new configuration. Waiting requests keep their places.
   * @throws RangeError when its bands and those in use exceed the bound; nothing has changed then
   */
  configure(configuration: LoadedConfiguration): void {
    const settings = configuration.flowControl!;
    if (!this.queues.configure(settings, poolClockMs())) {
      throw new RangeError('flowControl.priorityBands: too many bands, with those that are in use: restart');
    }
    this.#settings = settings;
    this.queues.buckets.factor = this.#share * settings.replicas;
    this.#gate = gateSettings(configuration.saturationDetector);
    this.#detector = configuration.saturationDetector;
    this.#writeGate();
  }

  /** Share of every endpoint that this picker and its live peers fill; pickers whose load is unknown have the rest. */
  get #share(): number {
    const telling = 1 + this.#peers.live;
    return telling / Math.max(telling, this.#settings.replicas, this.#peers.expected);
  }

  /**
   * Sets the number of peers whose load is known, and the place among them. While peers cannot be heard, the room is
   * shared as if those heard last went on.
   */
  setPeers({ live, connected, ...place }: HeardPeers): void {
    this.#peers = { live, expected: connected ? 1 + live : Math.max(1 + live, this.#peers.expected) };
    this.queues.buckets.factor = this.#share * this.#settings.replicas;
    this.#writeGate();
    this.controller.setPlace(place);
  }

  /**
   * Tokens since the start of each tenant with a bucket that has used some since the last call.
   * @param again also of tenants whose bucket is not full
   */
  takeSpent(tenantsMax: number, again: boolean): readonly { readonly tenant: string; readonly tokens: number }[] {
    return this.queues.buckets.takeNews(tenantsMax, again ? poolClockMs() : undefined);
  }

  /**
   * Charges tokens that tenants have used at other pickers.
   * @param isSigned whether the report is signed; else a bucket loses no more than it holds, and is left with no larger
   * debt
   */
  spentElsewhere(spent: readonly { readonly tenant: string; readonly tokens: number }[], isSigned: boolean): void {
    const now = poolClockMs();
    for (const { tenant, tokens } of spent) this.queues.buckets.takeElsewhere(tenant, tokens, now, isSigned);
  }

  /** Tokens that are missing in the buckets of tenants, most first. */
  missingTokens(tenantsMax: number): readonly { readonly tenant: string; readonly tokens: number }[] {
    return this.queues.buckets.missing(tenantsMax, poolClockMs());
  }

  /** Takes tokens that were missing in the buckets of tenants `ageMs` ago. */
  restoreMissing(missing: readonly { readonly tenant: string; readonly tokens: number }[], ageMs: number): void {
    const now = poolClockMs();
    for (const { tenant, tokens } of missing) this.queues.buckets.restore(tenant, tokens, ageMs, now);
  }

  get #room(): RoomSettings {
    const standing = standingPriorities(this.#settings, this.#objectives);
    const { usageLimit, sessions } = this.#settings;
    return { gate: this.#gate, ceilings: new Ceilings(usageLimit), share: this.#share, standing, sessions };
  }

  /** Sets the priorities that the objectives of the pool give. */
  setObjectives(priorities: Iterable<number>): void {
    const known = [...new Set(priorities)].sort((a, b) => b - a);
    if (known.join() === this.#objectives.join()) return;
    this.#objectives = known;
    if (this.#settings.usageLimit.kind !== 'static') this.#writeGate();
  }

  #writeGate(): void {
    this.controller.evicts = this.#settings.enableEviction;
    this.#writes.run(() => {
      if (!this.controller.configure(this.#room)) return false;
      this.controller.wake();
      return true;
    });
  }

  /**
   * Ends the queues within `drainMs`. Waiting requests are dispatched until shortly before the end; the rest is
   * answered then.
   */
  drain(drainMs: number): void {
    clearTimeout(this.#closing);
    this.#closing = setTimeout(
      () => this.controller.close(),
      Math.max(0, drainMs - Math.min(FAREWELL_MS, drainMs / 2)),
    );
  }

  stop(): void {
    clearTimeout(this.#closing);
    this.controller.stop();
    this.#bell.stop();
  }
}
