import type { FlowControlSettings } from '../../../src/contract/queue-settings.js';
import type { ReplicaPlace } from '../../../src/contract/replica-place.js';
import type { SaturationSettings } from '../../../src/contract/saturation-settings.js';
import { CapacityGate } from '../../../src/core/capacity-gate.js';
import type { GateRequest } from '../../../src/core/decision-data.js';
import type { CoreInstance } from '../../../src/core/memory.js';
import type { SessionCounts } from '../../../src/core/session-ledger.js';
import { type Return, WaitSlots } from '../../../src/core/wait-slots.js';
import { FlowController } from '../../../src/flow-control/flow-controller.js';
import type { FlowTimers } from '../../../src/flow-control/flow-timers.js';
import { gateSettings } from '../../../src/flow-control/gate-settings.js';
import { Ceilings, standingPriorities } from '../../../src/flow-control/policies/usage-limits.js';
import { QueueMachine } from '../../../src/flow-control/queue-machine.js';
import type { EventQueue } from './events.js';

/** The dispatch with which a request comes back from the queues. */
export type Dispatched = Extract<Return, { kind: 'dispatched' }>;

/** A request that waits in the queues. */
export interface Waiter {
  /** Called once at the end of the wait; undefined = it was turned away. */
  returned(dispatch: Dispatched | undefined): void;
}

/** What the queues are told of a request. */
export interface WaitingTurn {
  readonly tenant: string;
  readonly sinceMs: number;
  readonly maxOutputTokens: number;
  /** Handle of an earlier dispatch that could not be used. */
  readonly handle: number | undefined;
}

export interface FlowOptions {
  /** Core of the thread that stands for the control thread, and of the one that stands for a shard. */
  readonly control: CoreInstance;
  readonly shard: CoreInstance;
  readonly settings: FlowControlSettings;
  readonly detector: SaturationSettings | undefined;
  readonly blockTokens: number;
  /** Share of every endpoint that this picker may fill. */
  readonly share: number;
  readonly slots: readonly number[];
  readonly events: EventQueue;
  /** Absent = it does not know other pickers. */
  readonly place?: ReplicaPlace | undefined;
  /** Milliseconds by which its clock is ahead. */
  readonly aheadMs?: number | undefined;
}

/** Flow control of a simulated picker: the picker's own controller, queues and gate in simulated time. */
export class SimulatedFlow {
  readonly #options: FlowOptions;
  readonly #controller: FlowController;
  readonly #gate: CapacityGate;
  readonly #waitSlots: WaitSlots;
  readonly #waiters = new Map<number, Waiter>();
  readonly #queues: QueueMachine;
  readonly #bell: number;
  #rung = 0;
  #scheduled = false;

  /** @throws Error when the configuration asks for evictions, which the simulation lacks */
  constructor(options: FlowOptions) {
    const { control, shard, settings, detector, blockTokens, share, slots, events, place, aheadMs = 0 } = options;
    refuseUnsimulatedFlow(settings);
    this.#options = options;
    this.#gate = new CapacityGate(control);
    this.#waitSlots = new WaitSlots(shard);
    this.#bell = (control.call.bellAddress(0) >>> 0) >>> 2;
    const nowMs = () => events.nowMs;
    this.#queues = new QueueMachine(settings, nowMs());
    this.#queues.buckets.factor = share * settings.replicas;
    this.#controller = new FlowController({
      gate: this.#gate,
      queues: this.#queues,
      shards: [shard.thread],
      nowMs,
      wallMs: () => events.nowMs + aheadMs,
      evictions: { tell: () => undefined, issued: () => undefined, ended: () => undefined },
      saturation: () => this.#gate.saturation(slots, nowMs()),
      counts: {
        dispatched: () => undefined,
        arrived: () => undefined,
        refused: () => undefined,
        held: () => undefined,
      },
      blockTokens,
      timers: this.#timers(),
    });
    const standing = standingPriorities(settings, []);
    const { usageLimit, sessions } = settings;
    const room = { gate: gateSettings(detector), ceilings: new Ceilings(usageLimit), share, standing, sessions };
    if (!this.#controller.configure(room)) throw new Error('the gate of a simulated picker stays locked');
    if (place !== undefined) this.#controller.setPlace(place);
  }

  /** Sessions as they are counted; undefined = they are not. */
  get sessions(): SessionCounts | undefined {
    const { sessions } = this.#gate;
    return sessions.isOn ? sessions.counts() : undefined;
  }

  /** What a decision is told of the gate. */
  gateRequest(tenant: string, held: Dispatched | undefined): GateRequest {
    return { waitSlots: this.#waitSlots.next, held, blind: false, queued: this.#queues.limitsTenant(tenant) };
  }

  /** Puts the request of the last decision, which waits, into the queues. @returns what `leave` takes */
  join({ tenant, sinceMs, maxOutputTokens, handle }: WaitingTurn, waiter: Waiter): number {
    const slot = this.#waitSlots.enqueue({
      flow: tenant,
      sinceMs,
      ttlMs: undefined,
      firstTokenDueMs: undefined,
      maxOutputTokens,
      bodyBytes: 0,
      handle,
      wantsPosition: false,
    });
    this.#waiters.set(slot, waiter);
    this.look();
    return slot;
  }

  /** Ends the wait of a request whose client has left. */
  leave(slot: number): void {
    if (this.#waiters.delete(slot)) this.#waitSlots.cancel(slot);
    this.look();
  }

  /** @param gone endpoints that leave */
  endpointsChanged(gone: readonly number[]): void {
    this.#controller.endpointsGone(gone);
    this.collect();
  }

  ended(handle: number, outputTokens: number): void {
    this.#controller.report({ ended: [handle, outputTokens], progressed: [], refunded: [] });
  }

  progressed(handle: number, outputTokens: number): void {
    this.#controller.report({ ended: [], progressed: [handle, outputTokens], refunded: [] });
  }

  /** Simulated time; what a timer has dispatched is handed over at once. */
  #timers(): FlowTimers {
    const { events } = this.#options;
    const later = (run: () => void, ms: number) => {
      let wanted = true;
      events.after(ms, () => {
        if (!wanted) return;
        run();
        this.collect();
      });
      return () => {
        wanted = false;
      };
    };
    return { after: later, soon: (run) => void later(run, 0) };
  }

  /** Wakes the controller if the core has rung its bell: behind what happens at this time. */
  look(): void {
    const { control, events } = this.#options;
    if (this.#scheduled || Atomics.load(control.u32, this.#bell) === this.#rung) return;
    this.#scheduled = true;
    events.after(0, () => {
      this.#scheduled = false;
      this.#rung = Atomics.load(control.u32, this.#bell);
      this.#controller.wake();
      this.collect();
    });
  }

  /** Hands the requests that come back to their waiters. */
  collect(): void {
    this.#waitSlots.takeReturns((slot, result) => {
      const waiter = this.#waiters.get(slot);
      this.#waiters.delete(slot);
      if (waiter !== undefined) waiter.returned(result.kind === 'dispatched' ? result : undefined);
    });
    this.look();
  }
}

/**
 * Refuses settings that simulated flow control ignores.
 * @throws Error one line that names the field and the remedy
 */
export function refuseUnsimulatedFlow({ enableEviction }: FlowControlSettings): void {
  if (!enableEviction) return;
  throw new Error(
    'flowControl.enableEviction cannot be simulated: a simulated client has no answer to it; leave it out',
  );
}
