import type { RefusedBy } from '../contract/refusing-bound.js';
import type { QueueOutcome } from './queue-contract.js';

/** Outcome of a waiting request, for the debug page. */
export interface FlowEvent {
  readonly timeMs: number;
  readonly outcome: QueueOutcome;
  readonly priority: number;
  readonly flow: string;
  readonly waitedMs: number;
  /** Whether it was a turn that was held for room of its session. */
  readonly held: boolean;
  /** The bound that refused the request; undefined when it was not refused. */
  readonly cause: RefusedBy | undefined;
}

/** Bound on the events kept for the debug page. */
const EVENTS_KEPT = 64;

/** Outcomes of the last requests that waited. */
export class FlowEvents {
  readonly #kept: FlowEvent[] = [];

  note(event: FlowEvent): void {
    this.#kept.push(event);
    if (this.#kept.length > EVENTS_KEPT) this.#kept.shift();
  }

  /** Newest first. */
  get newest(): readonly FlowEvent[] {
    return this.#kept.toReversed();
  }
}
