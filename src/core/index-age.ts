import type { CoreInstance } from './memory.js';

/** Changes of the index up to a time. */
interface TickSample {
  /** Wraps around. */
  readonly tick: number;
  readonly timeMs: number;
}

/** Bound on the samples; when it is reached, every second one is dropped. */
const SAMPLES_MAX = 128;

/**
 * Age of the oldest content of the prefix index. The index stamps its segments with the number of its changes; samples
 * of that number, one for each reading, give the time.
 */
export class IndexAge {
  readonly #core: CoreInstance;
  #samples: TickSample[] = [];

  constructor(core: CoreInstance, nowMs: number) {
    this.#core = core;
    this.#sample(nowMs);
  }

  /**
   * Milliseconds since the least recently used segment was looked up or stored, rounded up to the reading before;
   * undefined = the index is empty.
   */
  read(nowMs: number): number | undefined {
    const { call } = this.#core;
    const changes = call.prefixOldestAge() >>> 0;
    const tick = call.prefixTick() >>> 0;
    const before = this.#samples.findLast((sample) => (tick - sample.tick) >>> 0 >= changes) ?? this.#samples[0]!;
    this.#sample(nowMs);
    return changes === 0 ? undefined : nowMs - before.timeMs;
  }

  #sample(timeMs: number): void {
    if (this.#samples.length === SAMPLES_MAX) this.#samples = this.#samples.filter((_, i) => i % 2 === 0);
    this.#samples.push({ tick: this.#core.call.prefixTick() >>> 0, timeMs });
  }
}
