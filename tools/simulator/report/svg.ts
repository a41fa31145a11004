/** Text that may stand in HTML and SVG. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** +3.4 %, −12 %; one digit behind the point below 10 %. */
export function percent(share: number): string {
  const value = 100 * share;
  const text = Math.abs(value) < 9.95 ? Math.abs(value).toFixed(1) : Math.abs(value).toFixed(0);
  const sign = Number(text) === 0 ? '±' : value < 0 ? '−' : '+';
  return `${sign}${text} %`;
}

/** Maps a number to a coordinate. */
export type Scale = (value: number) => number;

export function linear(from: readonly [number, number], to: readonly [number, number]): Scale {
  const slope = (to[1] - to[0]) / (from[1] - from[0] || 1);
  return (value) => to[0] + (value - from[0]) * slope;
}

export function logarithmic(from: readonly [number, number], to: readonly [number, number]): Scale {
  const scale = linear([Math.log(from[0]), Math.log(from[1])], to);
  return (value) => scale(Math.log(value));
}

/** Round numbers from `low` to `high`, about `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough)!;
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((high - first) / step + 1e-9) + 1) }, (_, i) => first + i * step);
}

/** Those of rising values whose labels, each of `width` pixels, do not overlap. */
export function spaced(values: readonly number[], place: Scale, width: number): number[] {
  let end = Number.NEGATIVE_INFINITY;
  return values.filter((value) => {
    if (place(value) - end < width) return false;
    end = place(value);
    return true;
  });
}

/** Coordinates with one digit are enough for the eye. */
export function at(value: number): string {
  return (Math.round(value * 10) / 10).toString();
}

/** Size of a figure's drawing: that of the page on a wide screen, or that of a phone. */
export interface Canvas {
  readonly width: number;
  /** Room for the names of rows, of which a wide screen gives `wide`. */
  names(wide: number): number;
  /** A name that fits so wide a column. */
  fit(name: string, width: number): string;
  /** About this many ticks of an axis that has `wide` on a wide screen. */
  ticks(wide: number): number;
}

/** Width of a character of the labels, in pixels. */
const CHARACTER = 6.6;

function fitting(name: string, width: number): string {
  const characters = Math.max(4, Math.floor(width / CHARACTER));
  return name.length <= characters ? name : `${name.slice(0, characters - 1)}…`;
}

const WIDE: Canvas = { width: 1080, names: (wide) => wide, fit: fitting, ticks: (wide) => wide };
/** Width of a card on a screen of 420 pixels. */
const NARROW_WIDTH = 346;
const NARROW: Canvas = {
  width: NARROW_WIDTH,
  names: (wide) => Math.min(wide, 92),
  fit: fitting,
  ticks: (wide) => Math.ceil(wide / 2),
};

/** A figure for wide and for narrow screens, of which the page shows one. */
export function figures(draw: (canvas: Canvas) => string): string {
  return `<div class="wide">${draw(WIDE)}</div><div class="narrow">${draw(NARROW)}</div>`;
}

export function figure(width: number, height: number, label: string, body: string): string {
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}">${body}</svg>`;
}

export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${at(x)}" y="${at(y)}" ${attributes}>${escaped(content)}</text>`;
}

export function rule(x1: number, y1: number, x2: number, y2: number, attributes = 'class="grid"'): string {
  return `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" ${attributes}/>`;
}
