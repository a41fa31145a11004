/** A turn of a session that its client names in a header. */
export interface NamedTurn {
  /** Stands for the session. */
  readonly session: number;
  readonly promptTokens: number;
}

/** Called once with the endpoints that a turn may go to; the profile picks among them. */
export type Placed = (slots: readonly number[]) => void;

/**
 * A rule of another router that holds turns of named sessions, for comparisons. A session has one turn at a time.
 * It has no clock but the one that it is given.
 */
export interface AdmissionRule {
  /** A turn asks for a place. `placed` is called at once, or later: then it is held. */
  ask(turn: NamedTurn, placed: Placed): void;
  /** The client of a held turn has left. */
  leave(session: number): void;
  /** A turn was sent to an endpoint. */
  sent(session: number, slot: number): void;
  /** Its answer has `outputTokens` tokens by now. */
  grown(session: number, outputTokens: number): void;
  /** Its answer has ended. @param last whether the client is known to have no further turn */
  ended(session: number, outputTokens: number, last: boolean): void;
  /** Tokens in use on an endpoint, as its metrics say. */
  sampled(slot: number, usedTokens: number): void;
  endpointsChanged(live: ReadonlySet<number>): void;
}

/** What a rule is made of. */
export interface AdmissionRuleContext {
  /** Tokens of each endpoint's cache, by slot. */
  readonly capacities: readonly number[];
  readonly clock: { readonly nowMs: number; after(delayMs: number, action: () => void): void };
}

export type MakeAdmissionRule = (context: AdmissionRuleContext) => AdmissionRule;
