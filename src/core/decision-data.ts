import { CORE } from './core-names.js';

/** Input of a decision. The chain hashes are in the thread's HASHES area already (RequestScanner.chain). */
export interface DecisionRequest {
  readonly profile: number;
  /** Whole blocks in HASHES, and whether the hash of the partial last block follows. */
  readonly blocks: number;
  readonly tail: boolean;
  readonly blockTokens: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly priority: number;
  /** Model name to compare with the endpoints' adapters. */
  readonly adapter: string;
  readonly nowMs: number;
  /** Slots that may be picked; undefined = all. */
  readonly subset: readonly number[] | undefined;
  readonly charged: boolean;
  readonly explained: boolean;
  /** Values of the headers that the programs read, in their order; undefined = absent. */
  readonly keys?: readonly (string | undefined)[] | undefined;
  /**
   * Objectives of the request for time to first token and time per output token, in milliseconds; undefined or 0 =
   * none.
   */
  readonly wantedTtftMs?: number | undefined;
  readonly wantedTpotMs?: number | undefined;
  /** Whether the model is a base model, not an adapter. */
  readonly baseModel?: boolean | undefined;
  /** Restricts the pick to endpoints with room; undefined = no restriction. Without effect while the gate is off. */
  readonly gate?: GateRequest | undefined;
  /**
   * Charges without storing the pick's new blocks before `storePick`, because another profile may still fail the
   * request.
   */
  readonly unstored?: boolean | undefined;
  /** Marks a further profile for the request of the last decision, whose match remains valid. */
  readonly further?: boolean | undefined;
  /** Name that the headers give the request's session; undefined or empty = none: its prompt tells. */
  readonly session?: string | undefined;
  /** Whether it is the last turn of its session. */
  readonly sessionEnds?: boolean | undefined;
  /** Slot picked by an earlier profile of the request, for topology operations. */
  readonly earlier?: number | undefined;
}

export type FilterOutcome =
  | 'not_applicable'
  | 'sticky'
  | 'no_match'
  | 'load_override'
  | 'exploration'
  | 'listed'
  | 'unlisted'
  | 'fallback'
  | 'empty';

/** What a counted filter decided. */
export interface FilterNote {
  /** Number among the filters of the profile, from 0. */
  readonly filter: number;
  readonly outcome: FilterOutcome;
  readonly candidates: number;
  /** Of the candidates, those about which the filter knows nothing. */
  readonly unknown: number;
}

/** Input of a gated decision that enqueues its request when there is no room. */
export interface GateRequest {
  /** Free wait slot; -1 = none. */
  readonly waitSlots: number;
  /** Dispatch with which the request came back. Its charge is released for the charge of the decision. */
  readonly held: { readonly ticket: number; readonly ticketGeneration: number } | undefined;
  /** Whether the first token of the answer cannot be seen. */
  readonly blind: boolean;
  /** Whether the request must go through the queues even when there is room. */
  readonly queued?: boolean | undefined;
}

/**
 * Result of a request for its endpoint. answered: an answer came, of this endpoint or, after an untold retry, of
 * another one · answered-itself: the proxy tells that this endpoint answered
 */
export type RequestResult = 'answered' | 'answered-itself' | 'failed' | 'unanswered';

/** `waiting`: the request waits in the wait slot. `no-wait-slot`: it should wait, but no slot is free. */
export type DecisionStatus =
  | 'decided'
  | 'no-candidates'
  | 'filtered'
  | 'busy'
  | 'no-program'
  | 'denied'
  | 'waiting'
  | 'no-wait-slot';

/** Pick of the shadow program. `none`: no endpoint, `unasked`: the program did not run. */
export interface ShadowPick {
  state: 'unasked' | 'picked' | 'none';
  /** -1 without a pick. */
  slot: number;
  /** Predicted cost of its pick and of the decision's first pick, in targets; NaN without a pick. */
  cost: number;
  pickCost: number;
}

/** Result of a decision. The object belongs to the Decider and is overwritten by the next decision. */
export interface Decision {
  status: DecisionStatus;
  readonly slots: number[];
  /** 0 = not charged, because the ledger is full or no charge was asked for. */
  ticket: number;
  ticketGeneration: number;
  matchedBlocks: number;
  totalBlocks: number;
  candidates: number;
  score: number;
  uncachedTokens: number;
  /** Number of the decision's record in the log of its thread; undefined = none was made. */
  record: number | undefined;
  /** Slot that marginal cost would have picked; undefined when the program does not compute it. */
  wouldPick: number | undefined;
  /** With `filtered`: position of the filter that left no endpoint among the filters of the profile; else undefined. */
  filter: number | undefined;
  /** Predicted latencies of the first pick in milliseconds; NaN = no prediction. */
  predictedTtftMs: number;
  predictedTpotMs: number;
  readonly shadow: ShadowPick;
}

/** Outcomes of filters that are counted, by their FILTER_* number. */
export const filterOutcomes: Readonly<Record<number, FilterOutcome>> = {
  [CORE.FILTER_NOT_APPLICABLE]: 'not_applicable',
  [CORE.FILTER_STICKY]: 'sticky',
  [CORE.FILTER_NO_MATCH]: 'no_match',
  [CORE.FILTER_LOAD_OVERRIDE]: 'load_override',
  [CORE.FILTER_EXPLORATION]: 'exploration',
  [CORE.FILTER_LISTED]: 'listed',
  [CORE.FILTER_UNLISTED]: 'unlisted',
  [CORE.FILTER_FALLBACK]: 'fallback',
  [CORE.FILTER_EMPTY]: 'empty',
};

/** Statuses by their numbers in the core. */
export const decisionStatuses: Readonly<Record<number, DecisionStatus>> = {
  [CORE.DECIDED]: 'decided',
  [CORE.DECIDE_NO_CANDIDATES]: 'no-candidates',
  [CORE.DECIDE_FILTERED]: 'filtered',
  [CORE.DECIDE_BUSY]: 'busy',
  [CORE.DECIDE_NO_PROGRAM]: 'no-program',
  [CORE.DECIDE_DENIED]: 'denied',
  [CORE.DECIDE_WAITS]: 'waiting',
  [CORE.DECIDE_NO_WAIT_SLOT]: 'no-wait-slot',
};

/** Numbers of results in the core. */
export const resultNumbers: Readonly<Record<RequestResult, number>> = {
  answered: CORE.RESULT_ANSWERED,
  failed: CORE.RESULT_FAILED,
  unanswered: CORE.RESULT_UNANSWERED,
  'answered-itself': CORE.RESULT_ANSWERED_ITSELF,
};
