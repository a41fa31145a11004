import type { PickedEndpoint, Rejection, ScheduleInput } from './decision.js';

/**
 * Work of a profile's pick for the request. `answer`: serves it, charged to its end. `prefill`: computes the prompt for
 * another endpoint, charged until the first token. `encode`: encodes media for another endpoint, charged until the
 * first token; it will not hold the prompt.
 */
export type PickWork = 'answer' | 'prefill' | 'encode';

/** Pick of one profile for a request. */
export interface ProfilePick {
  readonly kind: 'picked';
  readonly profile: string;
  /** In order of preference, at least one; the first is charged. */
  readonly endpoints: readonly PickedEndpoint[];
  /** Blocks of the prompt that the first endpoint holds. */
  readonly matchedBlocks: number;
  readonly totalBlocks: number;
  readonly matchedTokens: number;
}

/** The profiles of one request for a handler. */
export interface ProfileRuns {
  readonly input: ScheduleInput;
  /** Known tokens of the prompt. */
  readonly promptTokens: number;
  /** Names of all profiles, in the order of the configuration. */
  readonly profiles: readonly string[];
  /**
   * Runs a profile. @returns its pick or a rejection. A handler runs a profile at most once, and no further one after a
   * rejection with another reason than a lack of endpoints.
   * @param earlier pick of an earlier profile, with which topology plugins compare
   */
  run(profile: string, work: PickWork, earlier?: ProfilePick): ProfilePick | Rejection;
  /** Releases what the profiles that have run hold on their endpoints, because others take their place. */
  abandon(): void;
}

/** Result of a handler for a request. */
export interface HandledRequest {
  readonly kind: 'handled';
  /** The pick that the proxy sends the request to. */
  readonly primary: ProfilePick;
  /** Port for the proxy in place of that of the endpoints; undefined = their own. */
  readonly port?: number | undefined;
  /** Request headers to set; undefined = remove the client's. Names in lower case. */
  readonly headers?: ReadonlyMap<string, string | undefined> | undefined;
  /** Stages that took part, as counted by `disagg_decision_total`. */
  readonly stages?: StagesUsed | undefined;
}

/** Stages of a request: prefill and encoding besides decode. */
export type StagesUsed =
  | 'decode-only'
  | 'prefill-decode'
  | 'encode-decode'
  | 'encode-prefill-decode'
  | 'aggregated-fallback';

/** Chooses the profiles that a request runs, and the pick that serves it. One instance per shard. */
export interface ProfileHandler {
  handle(runs: ProfileRuns): HandledRequest | Rejection;
}

/** Input of a decider about a stage. */
export interface DeciderInput {
  readonly runs: ProfileRuns;
  /** The decode pick; undefined before it is made. */
  readonly decode: ProfilePick | undefined;
}

/** Whether a separate stage is worthwhile for a request. */
export type StageDecider = (input: DeciderInput) => boolean;

/** Input for making a profile handler. */
export interface HandlerContext {
  /** Configured name of the handler. */
  readonly name: string;
  /** The decider with a configured name; references are checked when the configuration is loaded. */
  decider(name: string): StageDecider;
}

/** Rejection when no profile could run; status and text are llm-d-router's, without its request id. */
export function noProfile(why: string): Rejection {
  return {
    kind: 'rejected',
    code: 'ResourceExhausted',
    message: `failed to find target endpoint: ${why}`,
    reason: undefined,
  };
}
