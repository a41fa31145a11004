import { PerformanceObserver } from 'node:perf_hooks';

/** Time for which garbage collections hold this thread. */
export class CollectionTime {
  #ms = 0;
  readonly #observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.#ms += duration;
  });

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  get seconds(): number {
    return this.#ms / 1_000;
  }

  stop(): void {
    this.#observer.disconnect();
  }
}
