/** A cumulative histogram in Prometheus' text exposition. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count++;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) this.#counts[at]!++;
  }

  lines(name: string, labels: string): string {
    let below = 0;
    const buckets = this.#bounds.map((bound, index) => {
      below += this.#counts[index]!;
      return `${name}_bucket{${labels},le="${bound}"} ${below}\n`;
    });
    return `${buckets.join('')}${name}_bucket{${labels},le="+Inf"} ${this.#count}\n${name}_sum{${labels}} ${this.#sum}\n${name}_count{${labels}} ${this.#count}\n`;
  }
}
