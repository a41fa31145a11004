import UPlot from 'uplot';
import type { Point } from '../src/operations/page/snapshot.ts';
import { byId } from './dom.ts';
import { count, ms, percent } from './text.ts';

/** Points kept for the charts: five minutes. */
const POINTS_MAX = 300;

type Read = (point: Point) => number | null;

interface Line {
  readonly id: string;
  readonly what: string;
  readonly format: (value: number) => string;
  readonly reads: readonly Read[];
  readonly max?: number;
}

const LINES: readonly Line[] = [
  {
    id: 'chart-rate',
    what: 'Requests per second',
    format: (value) => count(value),
    reads: [({ perSecond }) => perSecond],
  },
  {
    id: 'chart-ttft',
    what: 'Time to first token, median and 95th percentile',
    format: (value) => ms(value),
    reads: [({ ttft }) => ttft.p50, ({ ttft }) => ttft.p95],
  },
  {
    id: 'chart-hit',
    what: 'Prompt tokens served from cache',
    format: (value) => percent(value),
    reads: [({ hitRate }) => hitRate],
    max: 1,
  },
];

/** The line charts; they keep their own points. */
export class Charts {
  readonly #points: Point[] = [];
  #plots: UPlot[] = [];

  constructor() {
    this.#draw();
    new ResizeObserver(() => {
      for (const [i, { id }] of LINES.entries()) this.#plots[i]!.setSize(sizeOf(id));
    }).observe(document.body);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw());
  }

  add(points: readonly Point[]): void {
    const last = this.#points.at(-1)?.time ?? 0;
    this.#points.push(...points.filter(({ time }) => time > last));
    this.#points.splice(0, this.#points.length - POINTS_MAX);
    for (const [i, line] of LINES.entries()) {
      this.#plots[i]!.setData(this.#data(line));
      const values = this.#points.flatMap((point) => line.reads.map((read) => read(point)));
      const place = byId(line.id);
      place.classList.toggle(
        'empty',
        values.every((value) => value === null),
      );
      const newest = line.reads
        .map((read) => this.#points.findLast((point) => read(point) !== null))
        .map((point, k) => (point === undefined ? null : line.reads[k]!(point)));
      place.setAttribute(
        'aria-label',
        `${line.what}: now ${newest.map((value) => (value === null ? 'not measured' : line.format(value))).join(' and ')}`,
      );
    }
  }

  #data({ reads }: Line): UPlot.AlignedData {
    return [this.#points.map(({ time }) => time), ...reads.map((read) => this.#points.map(read))] as UPlot.AlignedData;
  }

  #draw(): void {
    for (const plot of this.#plots) plot.destroy();
    this.#plots = LINES.map((line) => {
      const place = byId(line.id);
      place.setAttribute('role', 'img');
      return new UPlot(options(line), this.#data(line), place);
    });
  }
}

function sizeOf(id: string): { width: number; height: number } {
  const { clientWidth, clientHeight } = byId(id);
  return { width: Math.max(120, clientWidth), height: Math.max(80, clientHeight) };
}

/** A colour of the style sheet as the canvas takes it. */
function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function options({ id, reads, format, max }: Line): UPlot.Options {
  const soft = colour('--soft');
  const axis = {
    stroke: soft,
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const strokes = [colour('--accent'), soft];
  return {
    ...sizeOf(id),
    padding: [8, 36, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, max ?? Math.max(1, high * 1.15)] } },
    series: [
      {},
      ...reads.map((_, i) => ({
        stroke: strokes[i]!,
        width: i === 0 ? 2 : 1.25,
        points: { show: false },
        spanGaps: true,
        ...(i === 0 ? { fill: `color-mix(in oklab, ${strokes[0]} 10%, transparent)` } : {}),
      })),
    ],
    axes: [
      {
        ...axis,
        size: 26,
        space: 76,
        grid: { show: false },
        values: (_plot, ticks) =>
          ticks.map((tick) =>
            new Date(tick * 1000).toLocaleTimeString('en-GB', {
              hour: '2-digit',
              minute: '2-digit',
              second: '2-digit',
            }),
          ),
      },
      { ...axis, size: 52, space: 32, values: (_plot, ticks) => ticks.map(format) },
    ],
  };
}
