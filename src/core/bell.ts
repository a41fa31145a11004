import type { CoreInstance } from './memory.js';

/**
 * Wakes a thread's event loop when another thread has left work for it, without a message and without polling.
 *
 * A thread that goes to sleep sets its sleeping word and then reads the bell once more. A thread that rings counts the
 * bell up and then reads the sleeping word. So at least one of the two sees the other (assembly/gate/rings.ts).
 */
export class Bell {
  readonly #core: CoreInstance;
  readonly #index: number;
  readonly #rung: () => void;
  #stopped = false;

  /** @param rung takes all work that has been left; a needless call does no harm */
  constructor(core: CoreInstance, rung: () => void) {
    this.#core = core;
    this.#index = (core.call.bellAddress(core.thread) >>> 0) >>> 2;
    this.#rung = rung;
  }

  start(): void {
    this.#listen();
  }

  /** Ends the calls of `rung`. */
  stop(): void {
    this.#stopped = true;
    Atomics.add(this.#core.i32, this.#index, 1);
    Atomics.notify(this.#core.i32, this.#index);
  }

  #listen(): void {
    const { call, i32, thread } = this.#core;
    while (!this.#stopped) {
      if (thread === 0) call.controlWakes();
      else call.shardWakes();
      const seen = Atomics.load(i32, this.#index);
      this.#rung();
      if (thread === 0) call.controlDozes();
      else call.shardDozes();
      const waiting = Atomics.waitAsync(i32, this.#index, seen);
      if (waiting.async) {
        void waiting.value.then(() => this.#listen());
        return;
      }
    }
  }
}
