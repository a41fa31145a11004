/** Interval of the looks, and looks that cover a minute. */
const LOOK_MS = 5_000;
const LOOKS = 12;

/** How far counters have risen in the last minute. */
export class LastMinute {
  readonly #names: readonly string[];
  readonly #sum: (name: string) => number;
  /** Sums at the last looks, oldest first. */
  readonly #looks: (readonly number[])[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param sum present value of a counter */
  constructor(names: readonly string[], sum: (name: string) => number) {
    this.#names = names;
    this.#sum = sum;
  }

  start(): void {
    this.look();
    this.#timer = setInterval(() => this.look(), LOOK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Remembers the present values. */
  look(): void {
    this.#looks.push(this.#names.map((name) => this.#sum(name)));
    if (this.#looks.length > LOOKS + 1) this.#looks.shift();
  }

  /** Rise of a counter since a minute ago, or since the start; 0 for one that is not followed. */
  rise(name: string): number {
    const at = this.#names.indexOf(name);
    return at < 0 ? 0 : this.#sum(name) - (this.#looks[0]?.[at] ?? 0);
  }

  /** Rises of all that have risen. */
  get rises(): Readonly<Record<string, number>> {
    const all = this.#names.map((name) => [name, this.rise(name)] as const);
    return Object.fromEntries(all.filter(([, rise]) => rise > 0));
  }
}
