import type { SessionSettings } from '../contract/queue-settings.js';
import type { RefusalCause } from '../contract/refusing-bound.js';
import type { CapacityGate, GateSettings } from '../core/capacity-gate.js';
import type { EvictionOptions } from './evictions.js';
import type { FlowTimers } from './flow-timers.js';
import type { Ceilings } from './policies/usage-limits.js';
import type { QueueOutcome, Queues } from './queue-contract.js';

/** Parts and callbacks of the flow controller. */
export interface FlowControllerOptions {
  readonly gate: CapacityGate;
  readonly queues: Queues;
  /** Thread numbers of the shards. */
  readonly shards: readonly number[];
  /** Milliseconds of the pool clock. */
  readonly nowMs: () => number;
  /** Milliseconds since 1970, by which replicas take turns in letting held turns go on. */
  readonly wallMs: () => number;
  /** Callbacks for running requests that are to be evicted. */
  readonly evictions: Pick<EvictionOptions, 'tell' | 'issued' | 'ended'>;
  /** Saturation of the pool for the ceilings, 1 = full; undefined without endpoints. */
  readonly saturation: () => number | undefined;
  readonly counts: FlowCounts;
  readonly blockTokens: number;
  /** Absent = those of this thread. */
  readonly timers?: FlowTimers;
}

/** Rules of the capacity gate and the shares of its room. */
export interface RoomSettings {
  readonly gate: GateSettings;
  readonly ceilings: Ceilings;
  /** Share of every endpoint that this picker may fill, above 0 and at most 1. */
  readonly share: number;
  /** Priorities that share the room before a request of them has come. */
  readonly standing: readonly number[];
  readonly sessions: SessionSettings;
}

/** Counters of flow control. */
export interface FlowCounts {
  /** Counts a dispatch with its duration in seconds. */
  dispatched(seconds: number): void;
  /**
   * Counts a new request.
   * @param outcome undefined = it waits
   * @param seconds from the decision to enqueue it until now
   */
  arrived(flow: string, priority: number, outcome: QueueOutcome | undefined, seconds: number): void;
  /** Counts a refused request. */
  refused(cause: RefusalCause, priority: number): void;
  /** Counts a turn that is held no more, with the seconds for which it waited. */
  held(seconds: number): void;
}
