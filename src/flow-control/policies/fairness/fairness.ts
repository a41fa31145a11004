/**
 * How the lanes of one band take turns. A policy keeps the lanes of each class apart, since which classes have an open
 * endpoint changes from one dispatch to the next; the accounts of flows, which it sorts by, go through all classes.
 */
export interface Fairness {
  /** One lane holds the requests of all flows of a class: the band's order alone decides. */
  readonly oneLane: boolean;
  /** A flow that has nothing waiting gets a request, which will stand in this class. */
  wake(flow: number, classOf: number): void;
  /** A lane has its first request. */
  add(lane: number): void;
  /** A lane has lost its last request. */
  remove(lane: number): void;
  /** Another request is the lane's head. */
  headChanged(lane: number): void;
  /** The lane that goes next among the classes of two words, each of which has a lane. */
  choose(low: number, high: number): number;
  /** The head of a lane was dispatched and will cost about so many tokens. */
  dispatched(lane: number, flow: number, tokens: number): void;
  /** A running request of the flow uses more than was paid for. */
  used(flow: number, tokens: number): void;
  /** A request of the flow has used less than was paid for, or was not placed after all. */
  unused(flow: number, tokens: number): void;
  /** A request of the flow is over. */
  served(flow: number, promptTokens: number, outputTokens: number, nowMs: number): void;
  /** A number of a class means other candidates from now on. */
  newClass(classOf: number): void;
  /** Time goes on: called before `choose`. */
  at(nowMs: number): void;
}
