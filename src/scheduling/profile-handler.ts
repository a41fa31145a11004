import type { PickedEndpoint, Rejection, ScheduleInput } from './decision.js';

/**
 * What the pick of a profile does for the request. `answer`: serves it, charged to its end. `prefill`: reads the prompt for
 * another endpoint, charged until the first token. `encode`: reads media for another endpoint, charged until the first
 * token; it will not hold the prompt.
 */
export type PickWork = 'answer' | 'prefill' | 'encode';

/** What one profile picked for a request. */
export interface ProfilePick {
  readonly kind: 'picked';
  readonly profile: string;
  /** In order of preference, at least one; the first is charged. */
  readonly endpoints: readonly PickedEndpoint[];
  /** Of the prompt, what the first endpoint holds already. */
  readonly matchedBlocks: number;
  readonly totalBlocks: number;
  readonly matchedTokens: number;
}

/** The profiles of one request, as a handler runs them. */
export interface ProfileRuns {
  readonly input: ScheduleInput;
  /** Tokens of the prompt as far as known. */
  readonly promptTokens: number;
  /** Names of all profiles, in the order of the configuration. */
  readonly profiles: readonly string[];
  /**
   * Run a profile: its pick, or why there is none. A handler runs a profile at most once, and no further one after a
   * rejection that is not for want of endpoints.
   * @param peer pick of an earlier profile, with which topology plugins compare
   */
  run(profile: string, work: PickWork, peer?: ProfilePick): ProfilePick | Rejection;
}

/** What a handler made of a request. */
export interface HandledRequest {
  readonly kind: 'handled';
  /** The pick that the proxy sends the request to. */
  readonly primary: ProfilePick;
  /** Port that the proxy is told in the place of that of the endpoints; undefined = their own. */
  readonly port?: number | undefined;
  /** Request headers to set; undefined = take out what the client sent. Names in lower case. */
  readonly headers?: ReadonlyMap<string, string | undefined> | undefined;
  /** Which stages took part, as `disagg_decision_total` counts them. */
  readonly stages?: StagesUsed | undefined;
}

/** How a request went through prefill and encoding. */
export type StagesUsed = 'decode-only' | 'prefill-decode' | 'encode-decode' | 'encode-prefill-decode';

/** Chooses the profiles that a request runs, and which of their picks serves it. One for each shard. */
export interface ProfileHandler {
  handle(runs: ProfileRuns): HandledRequest | Rejection;
}

/** What is known when a decider is asked about a stage. */
export interface DeciderInput {
  readonly runs: ProfileRuns;
  /** The decode pick; undefined when it is not made yet. */
  readonly decode: ProfilePick | undefined;
}

/** Says whether a stage of its own is worth while for a request. */
export type StageDecider = (input: DeciderInput) => boolean;

/** What a profile handler is made with. */
export interface HandlerContext {
  /** Configured name of the handler. */
  readonly name: string;
  /** The decider of a configured name; references are checked when the configuration is loaded. */
  decider(name: string): StageDecider;
}

/** No profile could be run at all; status and text as the incumbent answers, but for its request id. */
export function noProfile(why: string): Rejection {
  return {
    kind: 'rejected',
    code: 'ResourceExhausted',
    message: `failed to find target endpoint: ${why}`,
    reason: undefined,
  };
}
