import type { RandomStream } from '../fleet/random-stream.js';

/** Process by which requests or sessions begin. */
export interface ArrivalSettings {
  /** Mean number per second. */
  readonly rate: number;
  /** Coefficient of variation of the gaps: 1 = Poisson, above = bursts (gamma gaps). */
  readonly variation: number;
  /** Points [second, factor on the rate], straight lines between them; empty = constant. */
  readonly curve: readonly (readonly [number, number])[];
}

/** Start times in milliseconds from 0 to `seconds`, rising. */
export function arrivals(settings: ArrivalSettings, seconds: number, random: RandomStream): number[] {
  const { rate, variation, curve } = settings;
  const times: number[] = [];
  // Gaps are drawn in units of expected requests and read off the cumulated rate, so that a curve keeps the bursts.
  const cumulated = cumulatedRate(curve, seconds);
  const total = cumulated.at(-1)! * rate;
  for (let expected = gap(variation, random); expected < total; expected += gap(variation, random)) {
    times.push(timeOf(cumulated, expected / rate) * 1e3);
  }
  return times;
}

function gap(variation: number, random: RandomStream): number {
  return variation === 1 ? random.exponential(1) : random.gamma(1, variation);
}

/** Integral of the curve at every tenth of a second. */
function cumulatedRate(curve: ArrivalSettings['curve'], seconds: number): Float64Array {
  const steps = Math.ceil(seconds * 10);
  const cumulated = new Float64Array(steps + 1);
  for (let i = 1; i <= steps; i++) cumulated[i] = cumulated[i - 1]! + 0.1 * factorAt(curve, (i - 0.5) / 10);
  return cumulated;
}

function factorAt(curve: ArrivalSettings['curve'], second: number): number {
  if (curve.length === 0) return 1;
  const after = curve.findIndex(([at]) => at > second);
  if (after === -1) return curve.at(-1)![1];
  if (after === 0) return curve[0]![1];
  const [x0, y0] = curve[after - 1]!;
  const [x1, y1] = curve[after]!;
  return y0 + ((y1 - y0) * (second - x0)) / (x1 - x0);
}

function timeOf(cumulated: Float64Array, wanted: number): number {
  let low = 0;
  let high = cumulated.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cumulated[middle]! >= wanted) high = middle;
    else low = middle + 1;
  }
  if (low === 0) return 0;
  const step = cumulated[low]! - cumulated[low - 1]!;
  return (low - 1 + (step > 0 ? (wanted - cumulated[low - 1]!) / step : 0)) / 10;
}
