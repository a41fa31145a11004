import type { CostModelSettings } from '../config/adaptation.js';
import { type CostEstimators, type EstimatorsState, makeEstimators, restoreEstimators } from './cost-estimators.js';
import type { AnchoredRidge } from './ridge.js';
import { SampleMemory } from './sample-memory.js';

/** Learned state of one hardware class as plain data. */
export interface HardwareClassState extends EstimatorsState {
  readonly hardware: string;
}

/** Estimators of one hardware class, and the length of their memory. */
export interface HardwareClass extends CostEstimators {
  readonly memory: SampleMemory;
}

/** Bound on the classes with coefficients of their own; endpoints of further ones have those of the pool. */
export const CLASSES_MAX = 8;
/** Weight of the assumption that a class is like the pool at its speed, in observations. */
const DRAWN = 50;
/** Bound on the factor between a class and the pool, equal to that on the speed of an endpoint (endpoint-speeds.ts). */
const SPREAD = 3.3;
/** Lower bound of the anchors in their weights, so that an anchor of 0 does not get all of it. */
const DRAWN_MIN_MS = 1;

/**
 * Coefficients of each hardware class of a mixed pool: machines differ in more than one factor, such as prefill by
 * arithmetic and output by memory bandwidth. The prior of a class is the pool's estimate at the speed of the class, and
 * follows it, so a class without samples decides as if there were no classes. A pool of one class has none.
 */
export class HardwareClasses {
  readonly #settings: CostModelSettings;
  readonly #classes = new Map<string, HardwareClass>();
  #present: ReadonlySet<string> = new Set();

  constructor(settings: CostModelSettings) {
    this.#settings = settings;
  }

  /**
   * Takes over the hardware of the live endpoints; '' = unknown, which is no class. A class without endpoints is kept
   * until its place is needed.
   */
  meet(hardware: readonly string[]): void {
    const kinds = new Set(hardware);
    this.#present = kinds.size > 1 ? kinds : new Set();
    for (const kind of this.#present) if (kind !== '' && !this.#classes.has(kind)) this.#add(kind, kinds);
  }

  #add(hardware: string, live: ReadonlySet<string>): void {
    if (this.#classes.size >= CLASSES_MAX) {
      const gone = [...this.#classes.keys()].find((kind) => !live.has(kind));
      if (gone === undefined) return;
      this.#classes.delete(gone);
    }
    this.#classes.set(hardware, this.#make());
  }

  #make(): HardwareClass {
    return { ...makeEstimators(this.#settings.prior, SPREAD, 'all'), memory: new SampleMemory() };
  }

  /** Estimators of a class; undefined where the coefficients of the pool hold. */
  of(hardware: string): HardwareClass | undefined {
    return this.#present.has(hardware) ? this.#classes.get(hardware) : undefined;
  }

  /** Classes of the live endpoints. */
  get live(): ReadonlyMap<string, HardwareClass> {
    return new Map([...this.#classes].filter(([hardware]) => this.#present.has(hardware)));
  }

  /** Draws a class to the pool's estimate at its speed. @param speed factor on the times of the pool */
  draw(drawn: HardwareClass, { firstOutput, perToken }: CostEstimators, speed: number): void {
    drawTo(drawn.firstOutput, firstOutput, speed);
    drawTo(drawn.perToken, perToken, speed);
  }

  /** Keeps `share` of what was learned of every class, after a change. */
  soften(share: number): void {
    for (const { firstOutput, perToken } of this.#classes.values()) {
      firstOutput.soften(share);
      perToken.soften(share);
    }
  }

  reset(): void {
    for (const hardware of this.#classes.keys()) this.#classes.set(hardware, this.#make());
  }

  save(): HardwareClassState[] {
    return [...this.#classes]
      .filter(([, { firstOutput, perToken }]) => firstOutput.count + perToken.count > 0)
      .map(([hardware, { firstOutput, perToken }]) => ({
        hardware,
        firstOutput: firstOutput.save(),
        perToken: perToken.save(),
      }));
  }

  /**
   * Continues from a saved state with `share` of its weight.
   * @returns false, without a change, when a state does not fit
   */
  restore(states: readonly HardwareClassState[], share: number): boolean {
    if (states.length > CLASSES_MAX) return false;
    const restored = states.map((state) => ({ hardware: state.hardware, made: this.#make(), state }));
    if (!restored.every(({ made, state }) => restoreEstimators(made, state, share))) return false;
    this.#classes.clear();
    for (const { hardware, made } of restored) this.#classes.set(hardware, made);
    this.meet([...this.#present]);
    return true;
  }
}

/**
 * Moves the anchors of an estimator to another's coefficients; one without observations takes them over. Errors are
 * relative to the larger of anchor and own coefficient: beside a small anchor a large one would count as far off.
 */
function drawTo(ridge: AnchoredRidge, whole: AnchoredRidge, speed: number): void {
  const anchors = Array.from(whole.theta, (value) => value * speed);
  const own = ridge.theta;
  ridge.drawTo(
    anchors,
    anchors.map((value, term) => DRAWN / Math.max(value, own[term]!, DRAWN_MIN_MS) ** 2),
  );
}
