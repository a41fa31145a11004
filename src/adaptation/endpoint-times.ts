import { ChangeDetector } from './change-detector.js';

/** Weight of the sums of times after one more observation: about the last hundred count. */
const FADE = 0.99;
/** Bound on a residual, so that one stalled request does not make an endpoint slow. */
const RATIO_MAX = 3;
/** Requests in a row that are slower, or faster, than before beside the pool's: a change of the endpoint. */
const RUN = 4;
/** Usual deviations by which the requests of a run deviate at least: those that run together deviate together. */
const RUN_NOISE = 2;
/** Weight of what a run has shown, or the first request after a silence, in requests. */
const SHOWN = 60;
/** Silence, beyond 1.5 durations of its requests, from which on what was seen of an endpoint fades, and how fast. */
const SILENT_MS = 10_000;
const SILENT_FADE_MS = 10_000;

/** A time of a request, and that of an endpoint of average speed by the pool's model. */
export interface SeenTime {
  readonly observedMs: number;
  readonly expectedMs: number;
  /** End of the request on the clock of the samples, and its duration. */
  readonly nowMs: number;
  readonly durationMs: number;
  /** Requests that ran there at its decision, itself included: they share what happens to it. */
  readonly together: number;
}

/** Sums of observed and expected times in units of an average request; older ones count less. */
export interface TimeEvidence {
  readonly observed: number;
  readonly expected: number;
  /** Requests that usually run together. */
  readonly together: number;
}

/** Times of one kind of the requests of one endpoint, against those that the pool's model expects. */
export class EndpointTimes {
  readonly #runFactor: number;
  readonly #changes = new ChangeDetector();
  #heardMs = Number.NEGATIVE_INFINITY;
  #durationMs = 0;
  #together = 1;
  #observed = 0;
  #expected = 0;
  /** Sum of the times against those of the pool at that time; weight as #expected. */
  #beside = 0;
  /** Requests of the present run: above 0 = slower than before, below 0 = faster; sums of their times. */
  #run = 0;
  #runObserved = 0;
  #runBeside = 0;

  /** @param runFactor factor by which the requests of a run are slower, or faster, than before */
  constructor(runFactor: number) {
    this.#runFactor = runFactor;
  }

  get evidence(): TimeEvidence {
    return { observed: this.#observed, expected: this.#expected, together: this.#together };
  }

  /** Share of the evidence that is left at `nowMs`, after a silence. An avoided endpoint shows no recovery. */
  kept(nowMs: number): number {
    const silentMs = nowMs - this.#heardMs - SILENT_MS - 1.5 * this.#durationMs;
    return silentMs > 0 ? Math.exp(-silentMs / SILENT_FADE_MS) : 1;
  }

  /**
   * @param usual ratio of observed and expected times that the pool has at present
   * @param noise logarithmic deviation that a request of an unchanged endpoint usually has
   * @returns whether it shows that the endpoint has changed
   */
  note({ observedMs, expectedMs, nowMs, durationMs, together }: SeenTime, usual: number, noise: number): boolean {
    if (!(expectedMs > 0) || !(observedMs > 0)) return false;
    const ratio = Math.min(RATIO_MAX, observedMs / expectedMs);
    const beside = ratio / usual;
    if (this.#expected > 0) this.#replace(1 - this.kept(nowMs), ratio, beside);
    this.#heardMs = nowMs;
    this.#durationMs = durationMs;
    this.#together += (together - this.#together) * (1 - FADE);
    const isRun = this.#noteRun(ratio, beside, Math.max(this.#runFactor, Math.exp(RUN_NOISE * noise)));
    this.#observed = FADE * this.#observed + ratio;
    this.#beside = FADE * this.#beside + beside;
    this.#expected = FADE * this.#expected + 1;
    if (!this.#changes.observe(Math.log(observedMs / expectedMs))) return isRun;
    this.forget();
    return true;
  }

  /** Logarithm of a request's time, beside the pool's, over that of those seen here before; 0 while there are none. */
  deviation({ observedMs, expectedMs }: SeenTime, usual: number): number {
    return Math.log(this.#changeOf(Math.min(RATIO_MAX, observedMs / expectedMs) / usual));
  }

  /** Factor of a time, beside the pool's, on those seen here before; 1 while there are none. */
  #changeOf(beside: number): number {
    return this.#expected < 1 ? 1 : (beside * this.#expected) / this.#beside;
  }

  /** Drops what was seen. */
  forget(): void {
    this.#replace(1, 0, 0, 0);
  }

  /** Takes several requests in a row that deviate in one direction for the present speed. */
  #noteRun(ratio: number, beside: number, factor: number): boolean {
    if (this.#expected < 1) return false;
    const change = this.#changeOf(beside);
    const direction = change > factor ? 1 : change < 1 / factor ? -1 : 0;
    if (direction === 0 || direction * this.#run < 0) this.#endRun();
    if (direction === 0) return false;
    this.#run += direction;
    this.#runObserved += ratio;
    this.#runBeside += beside;
    if (Math.abs(this.#run) < RUN) return false;
    this.#replace(1, this.#runObserved / RUN, this.#runBeside / RUN);
    this.#changes.reset();
    this.#endRun();
    return true;
  }

  #endRun(): void {
    this.#run = 0;
    this.#runObserved = 0;
    this.#runBeside = 0;
  }

  /** Replaces a share of the evidence by `weight` requests of this kind. */
  #replace(share: number, ratio: number, beside: number, weight = SHOWN): void {
    const kept = 1 - share;
    this.#observed = kept * this.#observed + share * weight * ratio;
    this.#beside = kept * this.#beside + share * weight * beside;
    this.#expected = kept * this.#expected + share * weight;
  }
}
