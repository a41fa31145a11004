import type { WantedTimes } from '../../../src/scheduling/wanted-times.js';

/** Charge of one request in one picker's ledger. */
export interface SimulatedCharge {
  readonly slot: number;
  readonly ticket: number;
  readonly generation: number;
  /** Prompt tokens that the picker believed to be cached there. */
  readonly matchedTokens: number;
  readonly uncachedTokens: number;
  /** The queues' handle of a request that waited there; undefined = it did not. */
  readonly handle?: number | undefined;
  /** The turn of a session that an admission rule counts; undefined = it counts none. */
  readonly turn?: CountedTurn | undefined;
}

/** A turn as an admission rule knows it. */
interface CountedTurn {
  readonly session: number;
  readonly last: boolean;
}

/** A request as a picker sees it. */
export interface PickerRequest {
  readonly promptTokens: number;
  readonly chain: Int32Array;
  /** Stands for the values of all headers that the profile looks at. */
  readonly session: number;
  readonly outputTokens: number;
  readonly priority?: number;
  readonly tenant?: string;
  /** Latency targets of its headers; absent = it names none. */
  readonly targets?: WantedTimes | undefined;
  /** Endpoints that may be picked; absent = all. */
  readonly endpoints?: readonly number[] | undefined;
  /** Whether its client names its session in no header. */
  readonly anonymous?: boolean;
  /** Whether it is the last turn of its session. */
  readonly last?: boolean;
}

export type PickOutcome = SimulatedCharge | 'rejected' | 'unavailable';

/** A pick that has to wait: `leave` ends the wait of a client that hangs up. */
export interface Wait {
  readonly leave: () => void;
}

/** Called when a request that waited has an outcome, or waits again. */
export type Picked = (outcome: PickOutcome | Wait) => void;

export function isWait(outcome: PickOutcome | Wait): outcome is Wait {
  return typeof outcome === 'object' && 'leave' in outcome;
}
