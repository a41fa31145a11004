/** The last values of a series, up to a capacity. */
export class Window {
  readonly #values: Float64Array;
  #count = 0;

  constructor(size: number) {
    this.#values = new Float64Array(size);
  }

  get count(): number {
    return Math.min(this.#count, this.#values.length);
  }

  add(value: number): void {
    this.#values[this.#count++ % this.#values.length] = value;
  }

  /** In arbitrary order, which is equal for windows that were filled together. */
  values(): Float64Array {
    return this.#values.slice(0, this.count);
  }

  /** Value below which `share` of the values lie; undefined without values. */
  quantile(share: number): number | undefined {
    if (this.count === 0) return undefined;
    const sorted = this.values().sort();
    return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  }

  clear(): void {
    this.#count = 0;
  }
}

/**
 * Spearman's rank correlation of two series of one length; equal values share their mean rank. Undefined when one of
 * the series does not vary or there are fewer than two pairs.
 */
export function rankCorrelation(a: Float64Array, b: Float64Array): number | undefined {
  const [x, y] = [ranks(a), ranks(b)];
  const middle = (x.length - 1) / 2;
  let product = 0;
  let squaresOfX = 0;
  let squaresOfY = 0;
  for (let i = 0; i < x.length; i++) {
    product += (x[i]! - middle) * (y[i]! - middle);
    squaresOfX += (x[i]! - middle) ** 2;
    squaresOfY += (y[i]! - middle) ** 2;
  }
  if (squaresOfX === 0 || squaresOfY === 0) return undefined;
  return product / Math.sqrt(squaresOfX * squaresOfY);
}

function ranks(values: Float64Array): Float64Array {
  const order = Array.from(values.keys()).sort((i, j) => values[i]! - values[j]!);
  const result = new Float64Array(values.length);
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to < order.length && values[order[to]!] === values[order[from]!]) to++;
    for (let k = from; k < to; k++) result[order[k]!] = (from + to - 1) / 2;
    from = to;
  }
  return result;
}
