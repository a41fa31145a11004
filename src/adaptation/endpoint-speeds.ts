import { EndpointModel } from './endpoint-model.js';
import type { SeenTime, TimeEvidence } from './endpoint-times.js';

/** A live endpoint and its kind of machine; endpoints of one kind are expected to be equally fast. */
export interface LiveEndpoint {
  readonly slot: number;
  readonly generation: number;
  /** '' = unknown. */
  readonly hardware: string;
}

interface Known {
  readonly model: EndpointModel;
  hardware: string;
  /** Factors on the times of the pool. */
  speed: EndpointSpeed;
  /** Factors on the times of its hardware class. */
  inKind: EndpointSpeed;
}

/** Factors on the times of an endpoint; 1 = the average. */
export interface EndpointSpeed {
  readonly output: number;
  /** Of the first output; that of the output where nothing else is known. */
  readonly firstOutput: number;
}

/** Weight in requests of the assumption that an endpoint is like its kind, and a kind like the pool. */
const SHRINK = 20;
/** Log difference below which endpoints count as equal: e^0.12 = 13 % is noise in a pool of equal machines. */
const GATE = 0.12;
/** The same of the times to first output beside those of the output: e^0.3 = 35 %. */
const FIRST_OUTPUT_GATE = 0.3;
/** Bound on the log difference: beyond a factor of e^1.2 = 3.3 an endpoint is broken rather than slow. */
const FARTHEST = 1.2;
/** Weight of one request in the ratio of observed and expected times that the pool has at present. */
const USUAL_RATE = 0.05;
/** Weight of one request in the usual deviation. */
const NOISE_RATE = 0.02;
/** Standard errors up to which a difference is taken for chance: what chance stays within in 19 cases of 20. */
const CHANCE = 2;
/** Requests between two comparisons of the speeds. */
const NOTES_BETWEEN = 8;

export const AVERAGE_SPEED: EndpointSpeed = { output: 1, firstOutput: 1 };

/**
 * Slowness of every endpoint by its time per output token: from its own requests first, then from those of its hardware
 * class. Its times to first output are taken to be as slow, until they show otherwise.
 */
export class EndpointSpeeds {
  readonly #known = new Map<number, Known>();
  /** By kind of machine. */
  readonly #kindSpeeds = new Map<string, number>();
  #notes = 0;
  /** Ratio of observed and expected times of the last requests of the pool. */
  #usual = 1;
  #usualFirst = 1;
  /** Mean squares of the deviations of requests from those of their endpoint before. */
  #noise = 0;
  #noiseFirst = 0;
  /**
   * Whether meet() has named the live endpoints: from then on a late sample of one that has left does not bring it
   * back.
   */
  #isTold = false;

  /** Every known endpoint, by slot. */
  get models(): ReadonlyMap<number, { readonly generation: number; readonly reliability: number }> {
    return new Map([...this.#known].map(([slot, { model }]) => [slot, model]));
  }

  /**
   * Takes over the live endpoints. A new endpoint starts with the speed of its hardware class; the state of those that
   * have left is dropped.
   */
  meet(live: readonly LiveEndpoint[]): void {
    this.#isTold = true;
    const slots = new Set(live.map(({ slot }) => slot));
    for (const slot of this.#known.keys()) if (!slots.has(slot)) this.#known.delete(slot);
    for (const { slot, generation, hardware } of live) {
      const model = this.#known.get(slot)?.model;
      if (model === undefined || model.generation < generation) this.#add(slot, generation);
      this.#known.get(slot)!.hardware = hardware;
    }
    this.#compare(Number.NEGATIVE_INFINITY);
  }

  /** Observations of an endpoint; undefined when it has left, or the slot has a later generation. */
  modelOf(slot: number, generation: number): EndpointModel | undefined {
    const known = this.#known.get(slot)?.model;
    if (known?.generation === generation) return known;
    if (known === undefined ? this.#isTold : known.generation > generation) return undefined;
    return this.#add(slot, generation);
  }

  #add(slot: number, generation: number): EndpointModel {
    const model = new EndpointModel(generation);
    this.#known.set(slot, { model, hardware: '', speed: AVERAGE_SPEED, inKind: AVERAGE_SPEED });
    return model;
  }

  /** The slot's known model and generation. */
  at(slot: number): EndpointModel | undefined {
    return this.#known.get(slot)?.model;
  }

  /** Factors on an endpoint's times against the pool; 1 when they cannot be distinguished from noise. */
  of(slot: number): EndpointSpeed {
    return this.#known.get(slot)?.speed ?? AVERAGE_SPEED;
  }

  /** The same against the endpoints of its kind. */
  inKind(slot: number): EndpointSpeed {
    return this.#known.get(slot)?.inKind ?? AVERAGE_SPEED;
  }

  /** Kind of machine of an endpoint; '' = unknown. */
  hardwareOf(slot: number): string {
    return this.#known.get(slot)?.hardware ?? '';
  }

  /** Factor on the output times of a kind of machine against the pool. */
  ofKind(hardware: string): number {
    return this.#kindSpeeds.get(hardware) ?? 1;
  }

  /** Records a request's time per output token. */
  noteOutput(model: EndpointModel, time: SeenTime): void {
    if (!isRatio(time)) return;
    this.#noise = averaged(this.#noise, model.output.deviation(time, this.#usual));
    model.noteOutput(time, this.#usual, Math.sqrt(this.#noise));
    this.#usual = followed(this.#usual, time);
    this.#notes++;
    if (this.#notes % NOTES_BETWEEN === 0) this.#compare(time.nowMs);
  }

  /**
   * Records a request's time to first output. The caller leaves out requests whose work is not known: wrong beliefs
   * about the cache would count as slowness.
   */
  noteFirstOutput(model: EndpointModel, time: SeenTime): void {
    if (!isRatio(time)) return;
    this.#noiseFirst = averaged(this.#noiseFirst, model.firstOutput.deviation(time, this.#usualFirst));
    model.firstOutput.note(time, this.#usualFirst, Math.sqrt(this.#noiseFirst));
    this.#usualFirst = followed(this.#usualFirst, time);
  }

  /** Drops all observations and keeps the endpoints. */
  reset(): void {
    for (const [slot, { model, hardware }] of this.#known) {
      const fresh = new EndpointModel(model.generation);
      this.#known.set(slot, { model: fresh, hardware, speed: AVERAGE_SPEED, inKind: AVERAGE_SPEED });
    }
    this.#kindSpeeds.clear();
    this.#usual = 1;
    this.#usualFirst = 1;
    this.#noise = 0;
    this.#noiseFirst = 0;
  }

  #compare(nowMs: number): void {
    const kinds = this.#kinds();
    let sum = 0;
    for (const { model, hardware } of this.#known.values()) {
      sum += slownessOf(model.output.evidence, kinds.get(hardware)!);
    }
    const mean = sum / Math.max(1, this.#known.size);
    const owns = new Map<Known, number>();
    for (const known of this.#known.values()) {
      const kind = kinds.get(known.hardware)!;
      const own = slownessOf(known.model.output.evidence, kind) - mean;
      const likeKind = Math.log(kind) - mean;
      owns.set(known, own > likeKind ? likeKind + (own - likeKind) * known.model.output.kept(nowMs) : own);
    }
    this.#compareKinds(owns);
    this.#compareFirstOutputs(owns, nowMs);
  }

  /** Compares every kind with the pool, and endpoints with their kind. */
  #compareKinds(owns: ReadonlyMap<Known, number>): void {
    const sums = new Map<string, { sum: number; count: number }>();
    for (const [{ hardware }, own] of owns) {
      const { sum, count } = sums.get(hardware) ?? { sum: 0, count: 0 };
      sums.set(hardware, { sum: sum + own, count: count + 1 });
    }
    this.#kindSpeeds.clear();
    for (const [hardware, { sum, count }] of sums) this.#kindSpeeds.set(hardware, Math.exp(bounded(sum / count)));
    for (const [known, own] of owns) {
      const { sum, count } = sums.get(known.hardware)!;
      const gate = Math.max(GATE, uncertainty(known.model.output.evidence, this.#noise));
      known.speed = bothOf(factor(own, gate));
      known.inKind = bothOf(factor(own - sum / count, gate));
    }
  }

  /**
   * Takes the first outputs of an endpoint for slower, or faster, than its output where they show it beside those of
   * its kind: what machines differ in belongs to the coefficients of their class.
   */
  #compareFirstOutputs(owns: ReadonlyMap<Known, number>, nowMs: number): void {
    const kinds = new Map<string, [Known, number][]>();
    for (const [known, own] of owns) {
      const times = known.model.firstOutput;
      const beside = slownessOf(times.evidence, Math.exp(own)) - own;
      const kind = kinds.get(known.hardware) ?? [];
      kind.push([known, beside > 0 ? beside * times.kept(nowMs) : beside]);
      kinds.set(known.hardware, kind);
    }
    for (const kind of kinds.values()) {
      const mean = kind.reduce((sum, [, beside]) => sum + beside, 0) / kind.length;
      for (const [known, beside] of kind) {
        const gate = Math.max(FIRST_OUTPUT_GATE, uncertainty(known.model.firstOutput.evidence, this.#noiseFirst));
        known.inKind = withFirstOutput(known.inKind, beside - mean, gate);
        if (kinds.size === 1) known.speed = withFirstOutput(known.speed, beside - mean, gate);
      }
    }
  }

  /** Factor on the output times by hardware class, drawn towards 1. */
  #kinds(): ReadonlyMap<string, number> {
    const sums = new Map<string, { observed: number; expected: number }>();
    for (const { model, hardware } of this.#known.values()) {
      const all = sums.get(hardware) ?? { observed: 0, expected: 0 };
      const { observed, expected } = model.output.evidence;
      sums.set(hardware, { observed: all.observed + observed, expected: all.expected + expected });
    }
    return new Map(
      [...sums].map(([kind, { observed, expected }]) => [kind, (observed + SHRINK) / (expected + SHRINK)]),
    );
  }
}

/** Logarithm of the factor on an endpoint's times, drawn towards `like`. */
function slownessOf({ observed, expected }: TimeEvidence, like: number): number {
  return Math.log((observed + SHRINK * like) / (expected + SHRINK));
}

function isRatio({ observedMs, expectedMs }: SeenTime): boolean {
  const ratio = observedMs / expectedMs;
  return ratio > 0 && Number.isFinite(ratio);
}

/** Usual ratio of observed and expected times after one more. */
function followed(usual: number, { observedMs, expectedMs }: SeenTime): number {
  return usual * Math.exp(USUAL_RATE * bounded(Math.log(observedMs / expectedMs / usual)));
}

function bothOf(speed: number): EndpointSpeed {
  return { output: speed, firstOutput: speed };
}

/** @param beside logarithm of the slowness of the first outputs beside that of the output */
function withFirstOutput({ output }: EndpointSpeed, beside: number, gate: number): EndpointSpeed {
  if (Math.abs(beside) <= gate) return bothOf(output);
  return { output, firstOutput: Math.exp(bounded(Math.log(output) + beside)) };
}

/** Logarithmic difference that chance gives an endpoint in one case of twenty. Requests that run together are one. */
function uncertainty({ expected, together }: TimeEvidence, noise: number): number {
  return (CHANCE * Math.sqrt(noise * together * expected)) / (expected + SHRINK);
}

/** Mean square of deviations after one more. */
function averaged(square: number, deviation: number): number {
  return square + NOISE_RATE * (bounded(deviation) ** 2 - square);
}

function factor(own: number, gate: number): number {
  return Math.abs(own) > gate ? Math.exp(bounded(own)) : 1;
}

function bounded(own: number): number {
  return Math.min(FARTHEST, Math.max(-FARTHEST, own));
}
