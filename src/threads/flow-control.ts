import { Ceilings } from '../admission/flow/ceilings.js';
import type { QueueSnapshot } from '../admission/flow/queue-contract.js';
import { QueueMachine } from '../admission/flow/queue-machine.js';
import type { FlowControlSettings, QueueLimits } from '../admission/flow/settings.js';
import { FlowController } from '../admission/flow-controller.js';
import type { LoadedConfiguration } from '../config/load.js';
import { Bell } from '../core/bell.js';
import { GateControl, type GateSettings, type Revoked } from '../core/gate.js';
import type { CoreInstance } from '../core/memory.js';
import { FLOWS_SHOWN, flowReport } from './flow-report.js';
import { poolClockMs } from './pool-clock.js';
import { RevocationCounts, type RevocationDemand } from './revocation-counts.js';

/** How long until a write is tried again that met the lock of a dead thread. */
const AGAIN_MS = 5;

/** Before the end of a drain: for the answers to those that still wait. */
const FAREWELL_MS = 500;

/** Tokens of a block when nothing produces prefix matches. */
const BLOCK_TOKENS = 64;

export interface FlowControlOptions {
  readonly core: CoreInstance;
  readonly configuration: LoadedConfiguration;
  readonly shards: number;
  /** Endpoint slots that take requests now. */
  readonly slots: () => readonly number[];
  /** Tell its shard to end a request. */
  readonly revoke: (revoked: Revoked) => void;
}

/** Flow control of a picker: the queues, the gate in the core, and the bell that wakes them. Control thread only. */
export class FlowControl {
  readonly controller: FlowController;
  readonly gate: GateControl;
  readonly queues: QueueMachine;
  readonly revocations = new RevocationCounts();
  readonly #core: CoreInstance;
  readonly #bell: Bell;
  readonly #slots: () => readonly number[];
  #settings: FlowControlSettings;
  #mode: string;
  /** Hears how long each dispatch took, in seconds. */
  dispatched: (seconds: number) => void = () => undefined;
  #closing: NodeJS.Timeout | undefined;

  /** @throws Error when the gate cannot be opened: nobody else has the memory yet */
  constructor({ core, configuration, shards, slots, revoke }: FlowControlOptions) {
    const settings = configuration.flowControl!;
    this.#settings = settings;
    this.#core = core;
    this.#slots = slots;
    this.#mode = gateSettings(configuration).mode;
    this.gate = new GateControl(core);
    this.queues = new QueueMachine(settings, poolClockMs());
    this.controller = new FlowController({
      gate: this.gate,
      queues: this.queues,
      shards: Array.from({ length: shards }, (_, index) => index + 1),
      slots,
      nowMs: poolClockMs,
      dispatched: (seconds) => this.dispatched(seconds),
      revocations: {
        tell: revoke,
        issued: (priority) => this.revocations.issued(priority, this.#demandOf(priority)),
        ended: (how, seconds) => this.revocations.ended(how, seconds),
      },
      blockTokens: configuration.scheduling.prefix?.blockTokens ?? BLOCK_TOKENS,
      share: 1,
    });
    this.controller.revokes = settings.enableEviction;
    const ceilings = new Ceilings(settings.usageLimit);
    if (!this.controller.configure(gateSettings(configuration), ceilings)) throw new Error('the gate stays locked');
    this.#bell = new Bell(core, () => this.controller.wake());
    this.#bell.start();
  }

  #demandOf(priority: number): RevocationDemand {
    const ceiling = this.controller.ceilings.get(priority) ?? 1;
    return { saturation: this.saturation() ?? 1, ceiling, inflight: this.#core.call.ledgerUsed!() };
  }

  get limits(): QueueLimits {
    return this.#settings.limits;
  }

  /** Mean over the endpoints, 1 = full; undefined without endpoints. */
  saturation(): number | undefined {
    return this.gate.saturation(this.#slots(), poolClockMs());
  }

  /** @param flows most flows to tell of each band */
  snapshot(flows: number): QueueSnapshot {
    return this.queues.snapshot(poolClockMs(), flows);
  }

  /** What the debug page shows. @param describe name and requests in flight of a slot */
  report(describe: (slot: number) => { readonly endpoint: string; readonly inflight: number }): object {
    const now = poolClockMs();
    return flowReport({
      mode: this.#mode,
      snapshot: this.snapshot(FLOWS_SHOWN),
      ceilings: this.controller.ceilings,
      saturation: this.saturation(),
      endpoints: this.#slots().map((slot) => ({
        ...describe(slot),
        ...this.gate.room(slot),
        saturation: this.gate.saturation([slot], now),
      })),
      events: this.controller.events,
    });
  }

  /**
   * Follow a new configuration. What waits keeps its place.
   * @throws RangeError when it has more bands than there may be, with those in use; nothing has changed then
   */
  configure(configuration: LoadedConfiguration): void {
    const settings = configuration.flowControl!;
    if (!this.queues.configure(settings, poolClockMs())) {
      throw new RangeError('flowControl.priorityBands: too many bands, with those that are in use: restart');
    }
    this.#settings = settings;
    this.#mode = gateSettings(configuration).mode;
    this.#writeGate(gateSettings(configuration), settings);
  }

  #writeGate(gate: GateSettings, settings: FlowControlSettings): void {
    this.controller.revokes = settings.enableEviction;
    const written = this.controller.configure(gate, new Ceilings(settings.usageLimit));
    if (written) this.controller.wake();
    else setTimeout(() => this.#writeGate(gate, settings), AGAIN_MS);
  }

  /** The picker ends in `drainMs`: what waits is served on, and what is left shortly before the end is told so. */
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

/** When an endpoint has room, by the configured saturation detector; learned without one of the incumbent's. */
function gateSettings({ saturationDetector }: LoadedConfiguration): GateSettings {
  if (saturationDetector === undefined) return { mode: 'learned' };
  if (saturationDetector.type === 'concurrency-detector') {
    const { mode, maxConcurrency, maxTokenConcurrency } = saturationDetector;
    return { mode, maxRequests: maxConcurrency, maxTokens: maxTokenConcurrency };
  }
  const { queueDepthThreshold, kvCacheUtilThreshold, metricsStalenessMs } = saturationDetector;
  return {
    mode: 'utilization',
    queueThreshold: queueDepthThreshold,
    usageThreshold: kvCacheUtilThreshold,
    stalenessMs: metricsStalenessMs,
  };
}
