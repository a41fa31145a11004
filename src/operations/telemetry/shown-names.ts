import { labelValue, OTHER } from './label-values.js';

/** Names from configuration, objects and model servers, not from clients. */
export interface VouchedNames {
  /** Models of rules and objects, adapters, and models that model servers tell. */
  readonly models: ReadonlySet<string>;
  /** Fairness ids of the configuration. */
  readonly fairnessIds: ReadonlySet<string>;
}

export const NONE_VOUCHED: VouchedNames = { models: new Set(), fairnessIds: new Set() };

/** Fairness id, model and target model of a request. */
export type ClientLabels = readonly [fairness: string, model: string, target: string];

/** Combinations with a name without a voucher that are shown all the same, in the whole picker. */
export const UNVOUCHED_MAX = 24;

/** Time without a request after which such a combination is replaced by a new one, and its series leave the page. */
export const UNUSED_MS_MAX = 3_600_000;

/** Bound on a name without a voucher, in characters; a longer one is `other`. */
const UNVOUCHED_CHARACTERS_MAX = 128;

/** Bound on the places that change their combination: the series of the old one stay in memory. */
const REPLACED_MAX = 64;

/**
 * Decides which of the names that clients choose are label values. Vouched names always are. Of combinations with other
 * names the first few are, so that a pool without rules is still legible; in all further ones a name without a voucher
 * is `other`.
 */
export class ShownNames {
  #vouched: VouchedNames = NONE_VOUCHED;
  readonly #limit: number;
  /** Bound on the fairness ids without a voucher; undefined = none but that of the combinations, 0 = no id is shown. */
  readonly #fairnessMax: number | undefined;
  readonly #fairnessIds = new Set<string>();
  readonly #now: () => number;
  /** Time of the last use in milliseconds, by combination; the longest unused first. */
  readonly #unvouched = new Map<string, number>();
  #models: ReadonlySet<string> = new Set();
  #replaced = 0;

  /**
   * @param limit combinations with a name without a voucher
   * @param fairnessMax fairness ids without a voucher (`--fairness-id-metric-label-limit`), for which there is room
   *   beyond `limit`; 0 = every id is `other`, also a vouched one
   */
  constructor(
    limit: number = UNVOUCHED_MAX,
    now: () => number = () => performance.now(),
    fairnessMax: number | undefined = undefined,
  ) {
    this.#limit = Math.max(limit, fairnessMax ?? 0);
    this.#now = now;
    this.#fairnessMax = fairnessMax;
  }

  /** Replaces the vouched names. Combinations that were resolved before have to be resolved again. */
  vouch(names: VouchedNames): void {
    this.#vouched = names;
  }

  /** The shown labels of a request. */
  admit(fairness: string, model: string, target: string): ClientLabels {
    const labels: ClientLabels = [this.#fairness(labelValue(fairness)), labelValue(model), labelValue(target)];
    const isVouched = [this.#isFairness(labels[0]), this.#isModel(labels[1]), this.#isModel(labels[2])];
    if (!isVouched.includes(false) || this.#hasPlace(labels)) return labels;
    const [shownFairness, shownModel, shownTarget] = labels.map((label, i) => (isVouched[i] ? label : OTHER));
    return [shownFairness!, shownModel!, shownTarget!];
  }

  /** Shown name of a model alone: its own name if it is vouched for, or part of an admitted combination. */
  model(name: string): string {
    const label = labelValue(name);
    return this.#isModel(label) || this.#models.has(label) ? label : OTHER;
  }

  /** The id, or `other` where the bound on fairness ids leaves no room for it. */
  #fairness(id: string): string {
    if (this.#fairnessMax === undefined || id === '') return id;
    if (this.#fairnessMax === 0) return OTHER;
    if (this.#isFairness(id) || this.#fairnessIds.has(id)) return id;
    if (this.#fairnessIds.size >= this.#fairnessMax) return OTHER;
    this.#fairnessIds.add(id);
    return id;
  }

  #isModel(name: string): boolean {
    return name === '' || name === OTHER || this.#vouched.models.has(name);
  }

  #isFairness(id: string): boolean {
    return id === '' || id === OTHER || this.#vouched.fairnessIds.has(id);
  }

  #hasPlace(labels: ClientLabels): boolean {
    if (labels.some((label) => label.length > UNVOUCHED_CHARACTERS_MAX)) return false;
    const key = labels.join('\0');
    const now = this.#now();
    const isKnown = this.#unvouched.delete(key);
    if (!isKnown && !this.#makePlace(now)) return false;
    this.#unvouched.set(key, now);
    if (!isKnown) this.#models = new Set([...this.#unvouched.keys()].flatMap((known) => known.split('\0').slice(1)));
    return true;
  }

  #makePlace(now: number): boolean {
    if (this.#unvouched.size < this.#limit) return true;
    const [oldest, usedAt] = this.#unvouched.entries().next().value ?? [];
    if (oldest === undefined || now - usedAt! < UNUSED_MS_MAX || this.#replaced === REPLACED_MAX) return false;
    this.#replaced++;
    return this.#unvouched.delete(oldest);
  }
}
