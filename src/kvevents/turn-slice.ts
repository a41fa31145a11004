import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Work on messages of one turn of the event loop: the control thread has health checks and scrapes to serve as well.
 */
const SLICE_MS = 4;

/** Lets many readers share a thread with everything else: together they work for a few milliseconds of each turn. */
export class TurnSlice {
  #startedAt = 0;
  #turn: Promise<void> | undefined;

  /** Waits for the next turn when the share of this one is used up. Called before each piece of work. */
  async share(): Promise<void> {
    if (this.#turn === undefined) {
      this.#startedAt = performance.now();
      this.#turn = nextTurn().then(() => {
        this.#turn = undefined;
      });
    } else if (performance.now() - this.#startedAt > SLICE_MS) {
      await this.#turn;
    }
  }
}
