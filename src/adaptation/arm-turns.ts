import type { Arm } from './comparison.js';

/** Share of the epochs with learned costs in the state `active`. */
const ACTIVE_SHARE = 0.95;
/** The same share after enough epochs without a loss: 2 % of the epochs suffice for the comparison. */
const STABLE_SHARE = 0.98;
const STABLE_EPOCHS = 30;

/** Order of the arms within a try of learned costs. */
export class ArmTurns {
  readonly #random: () => number;
  /** out: the probe has started and some of its requests are still running. */
  #probe: 'due' | 'out' | 'over' = 'due';
  /** Arms of the rest of a pair. */
  #pair: Arm[] = [];

  /** @param random uniform in [0, 1) */
  constructor(random: () => number) {
    this.#random = random;
  }

  get probeIsDue(): boolean {
    return this.#probe === 'due';
  }

  get probeIsOut(): boolean {
    return this.#probe === 'out';
  }

  beginProbe(): void {
    this.#probe = 'out';
  }

  /** The configured weights had the wait for the probe, so learned costs begin the first pair. */
  endProbe(): void {
    this.#probe = 'over';
    this.#pair = ['learned', 'static'];
  }

  /** Begins another try. */
  reset(): void {
    this.#pair = [];
    this.#probe = 'due';
  }

  /**
   * Next arm of a canary. It begins with a short probe, whose requests must end first. Pairs of one epoch each follow,
   * all but the first in random order (randomised blocks), so that a trend favours neither arm.
   * @param hasRoom whether the loss budget has room for an epoch of learned costs
   */
  ofCanary(hasRoom: boolean): Arm {
    if (this.#probe === 'due') return hasRoom ? 'learned' : 'static';
    if (this.#probe === 'out') return 'static';
    return this.ofPair(hasRoom);
  }

  /** Next arm of an active model with so many epochs of learned costs behind it. */
  ofActive(learnedEpochs: number, hasRoom: boolean): Arm {
    const share = learnedEpochs >= STABLE_EPOCHS ? STABLE_SHARE : ACTIVE_SHARE;
    return this.#random() < share && hasRoom ? 'learned' : 'static';
  }

  /** Next arm of a pair. A turn of learned costs without room is not lost: it waits for the room. */
  ofPair(hasRoom: boolean): Arm {
    if (this.#pair.length === 0) this.#pair = this.#random() < 0.5 ? ['learned', 'static'] : ['static', 'learned'];
    if (this.#pair[0] === 'learned' && !hasRoom) return 'static';
    return this.#pair.shift()!;
  }
}
