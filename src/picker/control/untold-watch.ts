import type { SlotAssignment } from '../../contract/endpoint.js';
import type { SampleReader } from '../../core/sample-reader.js';
import type { TrainingSample } from '../../core/training-sample.js';
import type { EventFeed } from '../../kvevents/event-feed.js';

export interface UntoldWatchOptions {
  readonly feed: Pick<EventFeed, 'silent' | 'judgeByPlacements'>;
  readonly samples: Pick<SampleReader, 'drain'>;
  /** Tokens of one block of the index. */
  readonly blockTokens: number;
  /** Milliseconds of the pool clock. */
  readonly now: () => number;
  /** What to configure so that the events of an endpoint come. Must not reject. */
  readonly advice: (endpoint: SlotAssignment['endpoint']) => Promise<string>;
  readonly report: (problem: string) => void;
}

/** Interval between two looks. */
const EVERY_MS = 1_000;
const SAMPLES_MAX = 4_096;
/** Requests that an engine cannot have served without an event, and the time since the first of them. */
const REQUESTS_MIN = 3;
const WAIT_MS = 10_000;
/** Blocks that a request must have made anew: the engine may hold back the last one. */
const NEW_BLOCKS_MIN = 2;

interface Served {
  readonly generation: number;
  readonly sinceMs: number;
  readonly requests: number;
}

/**
 * Finds endpoints that have served requests without an event of a block. What is sent to such an endpoint counts as
 * held by it until its first event, as `approx-prefix-cache-producer` does. Control thread.
 */
export class UntoldWatch {
  readonly #options: UntoldWatchOptions;
  readonly #served = new Map<number, Served>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: UntoldWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.look(), EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  look(): void {
    const { feed, samples, now } = this.#options;
    samples.drain((sample) => this.#note(sample), SAMPLES_MAX);
    const silent = feed.silent();
    const slots = new Set(silent.map(({ slot }) => slot));
    for (const slot of this.#served.keys()) if (!slots.has(slot)) this.#served.delete(slot);
    for (const assignment of silent) {
      const served = this.#served.get(assignment.slot);
      if (served === undefined || served.generation !== assignment.generation) continue;
      const waitedMs = now() - served.sinceMs;
      if (served.requests < REQUESTS_MIN || waitedMs < WAIT_MS) continue;
      this.#served.delete(assignment.slot);
      this.#judge(assignment, served.requests, waitedMs);
    }
  }

  #note(sample: TrainingSample): void {
    const { slot, slotGeneration: generation, outcome, promptTokens, reportedPromptTokens, cachedTokens } = sample;
    const made = (reportedPromptTokens ?? promptTokens) - (cachedTokens ?? 0);
    if (outcome !== 'completed' || made < NEW_BLOCKS_MIN * this.#options.blockTokens) return;
    const before = this.#served.get(slot);
    const isSame = before?.generation === generation;
    const sinceMs = isSame ? before.sinceMs : this.#options.now();
    this.#served.set(slot, { generation, sinceMs, requests: isSame ? before.requests + 1 : 1 });
  }

  #judge(assignment: SlotAssignment, requests: number, waitedMs: number): void {
    const { feed, advice, report } = this.#options;
    feed.judgeByPlacements(assignment);
    const { endpoint } = assignment;
    const found = `${requests} requests in ${Math.round(waitedMs / 1_000)} s and no KV event`;
    void advice(endpoint).then((text) =>
      report(`${endpoint.id}: ${found}; until one comes it counts as holding what is sent to it: ${text}`),
    );
  }
}
