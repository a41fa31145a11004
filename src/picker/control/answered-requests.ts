import type { SampleReader } from '../../core/sample-reader.js';

/** Interval of the looks at the samples, and samples taken in one look. */
const LOOK_MS = 250;
const SAMPLES_MAX = 1_024;

interface Count {
  generation: number;
  answered: number;
}

/**
 * Requests that each endpoint has answered, by the training samples: a lower bound, since samples can be overwritten
 * unread. Control thread only.
 */
export class AnsweredRequests {
  readonly #samples: Pick<SampleReader, 'drain'>;
  readonly #now: () => number;
  /** By slot, and so bounded by the slots of the pool. */
  readonly #counts = new Map<number, Count>();
  #lookedMs = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds that never step back */
  constructor(samples: Pick<SampleReader, 'drain'>, now: () => number) {
    this.#samples = samples;
    this.#now = now;
  }

  /** Answers of the endpoint that has or had a slot, since the first question about it. */
  of(slot: number, generation: number): number {
    this.#look();
    const count = this.#counts.get(slot);
    return count?.generation === generation ? count.answered : 0;
  }

  #look(): void {
    const nowMs = this.#now();
    if (nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    this.#samples.drain(({ slot, slotGeneration, outcome }) => {
      if (outcome === 'completed') this.#count(slot, slotGeneration);
    }, SAMPLES_MAX);
  }

  #count(slot: number, generation: number): void {
    const count = this.#counts.get(slot);
    if (count?.generation === generation) count.answered++;
    else this.#counts.set(slot, { generation, answered: 1 });
  }
}
