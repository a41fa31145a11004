import { EndpointModel, type OutputTime } from './endpoint-model.js';

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
  /** Factor on all times; 1 = the pool's average. */
  speed: number;
  /** Factor on all times; 1 = the average of its hardware class. */
  inKind: number;
}

/** Weight in requests of the assumption that an endpoint is like its kind, and a kind like the pool. */
const SHRINK = 20;
/** Log difference below which endpoints count as equal: e^0.12 = 13 % is noise in a pool of equal machines. */
const GATE = 0.12;
/** Bound on the log difference: beyond a factor of e^1.2 = 3.3 an endpoint is broken rather than slow. */
const FARTHEST = 1.2;
/** Weight of one request in the ratio of observed and expected times that the pool has at present. */
const USUAL_RATE = 0.05;
/** Requests between two comparisons of the speeds. */
const NOTES_BETWEEN = 8;

/**
 * Slowness of every endpoint by its time per output token: from its own requests first, then from those of its hardware
 * class.
 */
export class EndpointSpeeds {
  readonly #known = new Map<number, Known>();
  /** By kind of machine. */
  readonly #kindSpeeds = new Map<string, number>();
  #notes = 0;
  /** Ratio of observed and expected times of the last requests of the pool. */
  #usual = 1;
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
    this.#known.set(slot, { model, hardware: '', speed: 1, inKind: 1 });
    return model;
  }

  /** The slot's known model and generation. */
  at(slot: number): EndpointModel | undefined {
    return this.#known.get(slot)?.model;
  }

  /** Factor on an endpoint's output times against the pool; 1 when it cannot be distinguished from noise. */
  of(slot: number): number {
    return this.#known.get(slot)?.speed ?? 1;
  }

  /** The same against the endpoints of its kind. */
  inKind(slot: number): number {
    return this.#known.get(slot)?.inKind ?? 1;
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
  note(model: EndpointModel, time: OutputTime): void {
    const ratio = time.observedMs / time.expectedMs;
    if (!(ratio > 0 && Number.isFinite(ratio))) return;
    model.noteOutputTime(time, this.#usual);
    this.#usual *= Math.exp(USUAL_RATE * bounded(Math.log(ratio / this.#usual)));
    this.#notes++;
    if (this.#notes % NOTES_BETWEEN === 0) this.#compare(time.nowMs);
  }

  /** Drops all observations and keeps the endpoints. */
  reset(): void {
    for (const [slot, { model, hardware }] of this.#known) {
      this.#known.set(slot, { model: new EndpointModel(model.generation), hardware, speed: 1, inKind: 1 });
    }
    this.#kindSpeeds.clear();
    this.#usual = 1;
  }

  #compare(nowMs: number): void {
    const kinds = this.#kinds();
    let sum = 0;
    for (const { model, hardware } of this.#known.values()) sum += slownessOf(model, kinds.get(hardware)!);
    const mean = sum / Math.max(1, this.#known.size);
    const owns = new Map<Known, number>();
    for (const known of this.#known.values()) {
      const kind = kinds.get(known.hardware)!;
      const own = slownessOf(known.model, kind) - mean;
      const likeKind = Math.log(kind) - mean;
      owns.set(known, own > likeKind ? likeKind + (own - likeKind) * known.model.kept(nowMs) : own);
      known.speed = factor(owns.get(known)!);
    }
    this.#compareKinds(owns);
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
      known.inKind = factor(own - sum / count);
    }
  }

  /** Factor on the output times by hardware class, drawn towards 1. */
  #kinds(): ReadonlyMap<string, number> {
    const sums = new Map<string, { observed: number; expected: number }>();
    for (const { model, hardware } of this.#known.values()) {
      const all = sums.get(hardware) ?? { observed: 0, expected: 0 };
      const { observed, expected } = model.evidence;
      sums.set(hardware, { observed: all.observed + observed, expected: all.expected + expected });
    }
    return new Map(
      [...sums].map(([kind, { observed, expected }]) => [kind, (observed + SHRINK) / (expected + SHRINK)]),
    );
  }
}

/** Logarithm of the factor on an endpoint's output times, drawn towards its kind. */
function slownessOf({ evidence: { observed, expected } }: EndpointModel, kind: number): number {
  return Math.log((observed + SHRINK * kind) / (expected + SHRINK));
}

function factor(own: number): number {
  return Math.abs(own) > GATE ? Math.exp(bounded(own)) : 1;
}

function bounded(own: number): number {
  return Math.min(FARTHEST, Math.max(-FARTHEST, own));
}
