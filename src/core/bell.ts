import type { CoreInstance } from './memory.js';

/**
 * Wakes a thread's event loop when another thread has left it something, without a message and without a tick.
 *
 * Before it sleeps the thread says so and looks at the bell once more; whoever rings counts the bell first and then looks
 * whether somebody sleeps. So one of the two always sees the other (assembly/gate/rings.ts).
 */
export class Bell {
  readonly #core: CoreInstance;
  readonly #index: number;
  readonly #look: () => void;
  #stopped = false;

  /** @param look takes everything that has been left; it may be called without need */
  constructor(core: CoreInstance, look: () => void) {
    this.#core = core;
    this.#index = (core.call.bellAddress(core.thread) >>> 0) >>> 2;
    this.#look = look;
  }

  start(): void {
    this.#listen();
  }

  /** Not called again after this. */
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
      this.#look();
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
