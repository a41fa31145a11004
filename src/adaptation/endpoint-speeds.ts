import { EndpointModel } from './endpoint-model.js';

/** A live endpoint and what kind of machine it is; endpoints of one kind are expected to be equally fast. */
export interface LiveEndpoint {
  readonly slot: number;
  readonly generation: number;
  /** '' when nobody says. */
  readonly hardware: string;
}

interface Known {
  readonly model: EndpointModel;
  hardware: string;
  /** Factor on all times; 1 = as the pool. */
  speed: number;
}

/** Weight of the assumption that an endpoint is like its kind, and a kind like the pool, in requests. */
const SHRINK = 20;
/** Differences below e^0.12 = 13 % are noise in a pool of equal machines. */
const GATE = 0.12;
/** Beyond a factor of e^1.2 = 3.3 an endpoint is out of order rather than slow. */
const FARTHEST = 1.2;
/** An endpoint that has not been heard of for so long is tried again as if it were like its kind. */
const SILENT_MS = 60_000;
/** Speeds are compared anew after so many requests. */
const NOTES_BETWEEN = 8;

/** How slow every endpoint is beside the others, by time per output token: its own requests first, then those of its kind. */
export class EndpointSpeeds {
  readonly #known = new Map<number, Known>();
  #notes = 0;
  /** meet() names the live endpoints: a late sample of one that has left does not bring it back. */
  #isTold = false;

  /** Every endpoint that is known, by slot. */
  get models(): ReadonlyMap<number, { readonly generation: number; readonly reliability: number }> {
    return new Map([...this.#known].map(([slot, { model }]) => [slot, model]));
  }

  /** These are live now: new ones begin as fast as their kind, those that have left are forgotten. */
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

  /** What is seen of the endpoint; undefined when it has left, or the slot belongs to a later one by now. */
  modelOf(slot: number, generation: number): EndpointModel | undefined {
    const known = this.#known.get(slot)?.model;
    if (known?.generation === generation) return known;
    if (known === undefined ? this.#isTold : known.generation > generation) return undefined;
    return this.#add(slot, generation);
  }

  #add(slot: number, generation: number): EndpointModel {
    const model = new EndpointModel(generation);
    this.#known.set(slot, { model, hardware: '', speed: 1 });
    return model;
  }

  /** Generation and model that a slot is known under. */
  at(slot: number): EndpointModel | undefined {
    return this.#known.get(slot)?.model;
  }

  /** How much longer output takes on an endpoint than in the pool; 1 when that cannot be told from noise. */
  of(slot: number): number {
    return this.#known.get(slot)?.speed ?? 1;
  }

  /** A request's time per output token beside what the pool's model says for an endpoint of usual speed. */
  note(model: EndpointModel, observedMs: number, expectedMs: number, nowMs: number): void {
    model.noteOutputTime(observedMs, expectedMs, nowMs);
    this.#notes++;
    if (this.#notes % NOTES_BETWEEN === 0) this.#compare(nowMs);
  }

  /** The same endpoints, of which nothing has been seen. */
  reset(): void {
    for (const [slot, { model, hardware }] of this.#known) {
      this.#known.set(slot, { model: new EndpointModel(model.generation), hardware, speed: 1 });
    }
  }

  #compare(nowMs: number): void {
    const kinds = this.#kinds();
    let sum = 0;
    for (const { model, hardware } of this.#known.values()) sum += slownessOf(model, kinds.get(hardware)!);
    const mean = sum / Math.max(1, this.#known.size);
    for (const known of this.#known.values()) {
      const kind = kinds.get(known.hardware)!;
      const own = slownessOf(known.model, kind) - mean;
      // A slow endpoint that is avoided cannot show that it has recovered.
      const silent = nowMs - known.model.heardMs > SILENT_MS;
      known.speed = factor(silent ? Math.min(own, Math.log(kind) - mean) : own);
    }
  }

  /** How much longer output takes by kind of machine, drawn towards 1. */
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

/** Logarithm of how much longer output takes there than the pool's model says, drawn towards its kind. */
function slownessOf({ evidence: { observed, expected } }: EndpointModel, kind: number): number {
  return Math.log((observed + SHRINK * kind) / (expected + SHRINK));
}

function factor(own: number): number {
  return Math.abs(own) > GATE ? Math.exp(Math.min(FARTHEST, Math.max(-FARTHEST, own))) : 1;
}
