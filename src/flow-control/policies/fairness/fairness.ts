/**
 * Order in which the lanes of one band take turns. A policy keeps the lanes of each candidate set apart, because the
 * sets with an open endpoint change from one dispatch to the next. The accounts of flows, which it sorts by, cover all
 * sets.
 */
export interface Fairness {
  /** Whether one lane holds the requests of all flows of a candidate set, so that only the band's order counts. */
  readonly oneLane: boolean;
  /** Called when a flow without waiting requests gets one, which will wait in this candidate set. */
  wake(flow: number, candidateSet: number): void;
  /** Called when a lane has its first request. */
  add(lane: number): void;
  /** Called when a lane has lost its last request. */
  remove(lane: number): void;
  /** Called when the head of a lane has changed. */
  headChanged(lane: number): void;
  /** The next lane among the candidate sets of two words, each of which has a lane. */
  choose(low: number, high: number): number;
  /** Called after the dispatch of a lane's head with its estimated cost in tokens; the head is still in its lane. */
  dispatched(lane: number, flow: number, tokens: number): void;
  /** Charges tokens that a running request of the flow uses beyond its payment. */
  used(flow: number, tokens: number): void;
  /** Returns tokens of a request that used less than its payment or was not placed. */
  unused(flow: number, tokens: number): void;
  /** Called when a dispatched request of the flow was not placed and no longer runs. */
  notPlaced(flow: number): void;
  /** Called at the end of a request of the flow, while it still counts as running. */
  served(flow: number, promptTokens: number, outputTokens: number, nowMs: number): void;
  /** Called when a number of a candidate set means other candidates. */
  newSet(candidateSet: number): void;
  /** Sets the time; called before `choose`. */
  at(nowMs: number): void;
}
