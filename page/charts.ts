import UPlot from 'uplot';
import type { Point, PredictedPoint } from '../src/operations/page/snapshot.ts';
import { byId } from './dom.ts';
import { count, ms, percent } from './text.ts';

/** Points kept for the charts: five minutes. */
const POINTS_MAX = 300;

/** What a chart shows at one time, in seconds since 1970. */
interface Timed {
  readonly time: number;
}

interface Line<P extends Timed> {
  readonly id: string;
  readonly what: string;
  readonly format: (value: number) => string;
  readonly reads: readonly ((point: P) => number | null)[];
  readonly max?: number;
}

const TRAFFIC: readonly Line<Point>[] = [
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

const PREDICTED: readonly Line<PredictedPoint>[] = [
  {
    id: 'chart-predicted',
    what: 'Time to first token, observed and predicted',
    format: (value) => ms(value),
    reads: [({ observedMs }) => observedMs, ({ predictedMs }) => predictedMs],
  },
];

/** The charts of traffic; they keep their own points. */
export class TrafficCharts {
  readonly #charts = new Charts(TRAFFIC);
  readonly #points: Point[] = [];

  add(points: readonly Point[]): void {
    const last = this.#points.at(-1)?.time ?? 0;
    this.#points.push(...points.filter(({ time }) => time > last));
    this.#points.splice(0, this.#points.length - POINTS_MAX);
    this.#charts.show(this.#points);
  }
}

/** The chart of predicted and observed times. */
export function predictedChart(): Charts<PredictedPoint> {
  return new Charts(PREDICTED);
}

/** Line charts over the same points. */
class Charts<P extends Timed> {
  readonly #lines: readonly Line<P>[];
  #points: readonly P[] = [];
  #plots: UPlot[] = [];

  constructor(lines: readonly Line<P>[]) {
    this.#lines = lines;
    this.#draw();
    new ResizeObserver(() => this.#resize()).observe(document.body);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw());
  }

  show(points: readonly P[]): void {
    this.#points = points;
    for (const [i, line] of this.#lines.entries()) {
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
        `${line.what}: now ` +
          `${newest.map((value) => (value === null ? 'not measured' : line.format(value))).join(' and ')}`,
      );
    }
  }

  #resize(): void {
    for (const [i, { id }] of this.#lines.entries()) this.#plots[i]!.setSize(sizeOf(id));
  }

  #data({ reads }: Line<P>): UPlot.AlignedData {
    return [this.#points.map(({ time }) => time), ...reads.map((read) => this.#points.map(read))] as UPlot.AlignedData;
  }

  #draw(): void {
    for (const plot of this.#plots) plot.destroy();
    this.#plots = this.#lines.map((line) => {
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

function options<P extends Timed>({ id, reads, format, max }: Line<P>): UPlot.Options {
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
    // Half a label at the right end of the time axis, and below the lowest value while there is no time axis.
    padding: [8, 24, 8, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, max ?? Math.max(1, high * 1.15)] } },
    series: [
      {},
      ...reads.map((_, i) => ({
        stroke: strokes[i]!,
        width: i === 0 ? 2 : 1.25,
        // A line needs two points.
        points: { show: (plot: UPlot) => plot.data[0].length < 2 },
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
