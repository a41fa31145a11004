/**
 * A part of a picker with a lifetime. Parts start one after another; all of them drain in the same order, and stop in the
 * reverse order. A part that fails to start stops the whole picker.
 */
export interface Part {
  /** Opens what the part serves or follows. */
  start?(): Promise<void> | void;
  /** Lets what is under way finish, at most `timeoutMs`. A second call may shorten the time. */
  drain?(timeoutMs: number): Promise<void> | void;
  /** Ends the part, also one that was not started or failed to. */
  stop?(): Promise<void> | void;
}
