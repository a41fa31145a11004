import { requestCost } from '../../adaptation/request-cost.js';
import type { CostModelSettings } from '../../config/adaptation.js';
import type { Label } from '../../core/label.js';
import { LabelReader } from '../../core/label-reader.js';
import type { CoreInstance } from '../../core/memory.js';
import { DiscountedBandit } from './discounted-bandit.js';

const EPOCH_MS = 30_000;
/** Share of an epoch whose requests met what the arm before had left behind. */
const BURN_IN = 1 / 3;
const LEAST_REQUESTS = 20;
const LABELS_PER_TICK = 10_000;

/** Several configurations in turn, each for an epoch, chosen by a bandit over what their requests came to. */
export class ArmEpochs {
  readonly #reader: LabelReader;
  readonly #settings: CostModelSettings;
  readonly #play: (arm: number, tag: number) => void;
  readonly #bandit: DiscountedBandit;
  #epoch = 1;
  #beganMs = 0;
  #requests = 0;
  #cost = 0;
  #reference = 0;

  /** @param play let this arm decide from now on, its labels with this tag */
  constructor(core: CoreInstance, settings: CostModelSettings, arms: number, play: (arm: number, tag: number) => void) {
    this.#reader = new LabelReader(core);
    this.#settings = settings;
    this.#play = play;
    this.#bandit = new DiscountedBandit(arms);
    play(this.#bandit.arm, this.#epoch);
  }

  tick(nowMs: number): void {
    this.#reader.drain((label) => this.#note(label), LABELS_PER_TICK);
    if (nowMs - this.#beganMs < EPOCH_MS) return;
    const told = this.#requests >= LEAST_REQUESTS;
    const arm = told ? this.#bandit.played(Math.log(this.#cost / this.#reference)) : this.#bandit.arm;
    this.#epoch++;
    this.#beganMs = nowMs;
    this.#requests = 0;
    this.#cost = 0;
    this.#reference = 0;
    this.#play(arm, this.#epoch);
  }

  /** Requests of other epochs that end only now are too late. */
  #note(label: Label): void {
    if (label.tag !== this.#epoch || label.timeMs < this.#beganMs + BURN_IN * EPOCH_MS) return;
    const result = requestCost(label, this.#settings);
    if (result === undefined) return;
    this.#requests++;
    this.#cost += result.cost;
    this.#reference += result.reference;
  }
}
