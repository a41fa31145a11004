/** Interval of the looks, and looks that cover a minute. */
const KEEP_EVERY_MS = 5_000;
const KEPT = 12;

/** How far counters have risen in the last minute. */
export class LastMinute {
  readonly #names: readonly string[];
  readonly #sum: (name: string) => number;
  /** Sums at the last looks, oldest first. */
  readonly #kept: (readonly number[])[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param sum present value of a counter */
  constructor(names: readonly string[], sum: (name: string) => number) {
    this.#names = names;
    this.#sum = sum;
  }

  start(): void {
    this.keepValues();
    this.#timer = setInterval(() => this.keepValues(), KEEP_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Keeps the present values. */
  keepValues(): void {
    this.#kept.push(this.#names.map((name) => this.#sum(name)));
    if (this.#kept.length > KEPT + 1) this.#kept.shift();
  }

  /** Rise of a counter since a minute ago, or since the start; 0 for one that is not followed. */
  rise(name: string): number {
    const at = this.#names.indexOf(name);
    return at < 0 ? 0 : this.#sum(name) - (this.#kept[0]?.[at] ?? 0);
  }

  /** Rises of all that have risen. */
  get rises(): Readonly<Record<string, number>> {
    const all = this.#names.map((name) => [name, this.rise(name)] as const);
    return Object.fromEntries(all.filter(([, rise]) => rise > 0));
  }
}
