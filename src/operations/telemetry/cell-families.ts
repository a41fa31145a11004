import type { CoreInstance } from '../../core/memory.js';
import { OTHER } from './label-values.js';
import { cellsOf, type Metric, type SeriesKind } from './metric-kind.js';
import { seriesKinds, streamEndKind, streamKind } from './metric-table.js';
import { type Series, SeriesReader } from './series-block.js';
import { NONE_VOUCHED, UNUSED_MS_MAX, type VouchedNames } from './shown-names.js';

/** One presentation of the series of a kind: its labels and their names. */
interface Projection {
  readonly pick: readonly number[];
  readonly names: readonly string[];
  /** By label text. */
  readonly groups: Map<string, Group>;
}

/** The series of every thread with the same label text, and those that differ in left-out labels only. */
interface Group {
  /** First cells. */
  readonly bases: number[];
  /** Values of labels that clients choose, without the one for all others. */
  readonly models: readonly string[];
  readonly fairnessIds: readonly string[];
  /** Sum of all cells when a page last found it changed, and the time of that page. */
  sum: number;
  changedAtMs: number;
  isShown: boolean;
}

interface Part {
  readonly metric: Metric;
  readonly kind: SeriesKind;
  readonly projection: Projection;
  /** Bucket texts, `+Inf` included. */
  readonly bounds: readonly string[];
  readonly fixed: string;
}

interface Family {
  readonly name: string;
  readonly head: string;
  readonly parts: Part[];
}

/** Labels with values that clients choose. */
const MODEL_LABELS = ['model_name', 'target_model_name', 'target_model'];
const FAIRNESS_LABELS = ['fairness_id'];

// Length from which a piece of text is returned, so that a large page does not block the thread for long.
export const PIECE_CHARACTERS = 32_768;

/** Reads the cells of all threads and writes them as Prometheus text. Control thread only. */
export class CellFamilies {
  readonly #cells: Float64Array;
  readonly #readers: readonly SeriesReader[];
  readonly #families: readonly Family[];
  readonly #projections = new Map<SeriesKind, Projection[]>();
  readonly #now: () => number;
  #vouched: VouchedNames = NONE_VOUCHED;

  /**
   * @param streamMetrics shows the metrics of ext_proc streams too
   * @param now milliseconds of a clock that does not go back
   */
  constructor(core: CoreInstance, streamMetrics: boolean, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#cells = core.f64;
    this.#readers = Array.from({ length: core.sizes.threads }, (_, thread) => new SeriesReader(core, thread));
    this.#families = this.#plan(seriesKinds.filter((k) => streamMetrics || (k !== streamKind && k !== streamEndKind)));
  }

  #plan(kinds: readonly SeriesKind[]): Family[] {
    const families = new Map<string, Family>();
    const put = (name: string, help: string, part: Part) => {
      let family = families.get(name);
      if (!family) {
        family = { name, head: headText(name, part.metric.type, help), parts: [] };
        families.set(name, family);
      }
      family.parts.push(part);
    };
    for (const kind of kinds) {
      const own = this.#projection(
        kind,
        kind.labels.map((label) => [label, label]),
      );
      for (const metric of kind.metrics) {
        const bounds = metric.type === 'histogram' ? [...metric.buckets.map(boundText), '+Inf'] : [];
        const fixed = metric.fixed ? labelText(...metric.fixed) : '';
        put(metric.name, metric.help, { metric, kind, projection: own, bounds, fixed });
        if (!metric.older) continue;
        const projection = this.#projection(kind, metric.older.labels);
        const help = `Older name of ${metric.name}. ${metric.help}`;
        put(metric.older.name, help, { metric, kind, projection, bounds, fixed });
      }
    }
    return [...families.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #projection(kind: SeriesKind, labels: readonly (readonly [string, string])[]): Projection {
    const projections = this.#projections.get(kind) ?? [];
    this.#projections.set(kind, projections);
    const names = labels.map(([, shown]) => shown);
    const same = projections.find((projection) => projection.names.join() === names.join());
    if (same) return same;
    const pick = labels.map(([label]) => kind.labels.indexOf(label));
    const projection: Projection = { pick, names, groups: new Map() };
    projections.push(projection);
    return projection;
  }

  /** Reads the series that threads have added since the last page. */
  #discover(): void {
    for (const reader of this.#readers) for (const series of reader.fresh()) this.#group(series);
  }

  #group({ kind, values, base }: Series): void {
    for (const { pick, names, groups } of this.#projections.get(kind) ?? []) {
      const text = names.map((name, index) => labelText(name, values[pick[index]!]!)).join(',');
      const chosen = (labels: readonly string[]) =>
        pick
          .filter((at) => labels.includes(kind.labels[at]!))
          .map((at) => values[at]!)
          .filter((value) => value !== '' && value !== OTHER);
      const group = groups.get(text);
      if (group !== undefined) group.bases.push(base);
      else {
        const [models, fairnessIds] = [chosen(MODEL_LABELS), chosen(FAIRNESS_LABELS)];
        groups.set(text, { bases: [base], models, fairnessIds, sum: Number.NaN, changedAtMs: 0, isShown: true });
      }
    }
  }

  /** Replaces the vouched names, which are shown as they are. */
  vouch(names: VouchedNames): void {
    this.#vouched = names;
  }

  /** Hides the series of names without a voucher that have not changed for `UNUSED_MS_MAX`. */
  #age(): void {
    const now = this.#now();
    for (const [kind, projections] of this.#projections) {
      for (const { groups } of projections) for (const group of groups.values()) this.#ageGroup(kind, group, now);
    }
  }

  #ageGroup(kind: SeriesKind, group: Group, now: number): void {
    const { models, fairnessIds } = this.#vouched;
    if (group.models.every((name) => models.has(name)) && group.fairnessIds.every((id) => fairnessIds.has(id))) {
      // The time of a name without a voucher begins when it loses its voucher.
      group.changedAtMs = now;
      group.isShown = true;
      return;
    }
    let sum = 0;
    for (const base of group.bases) for (let cell = 0; cell < kind.cells; cell++) sum += this.#cells[base + cell]!;
    if (sum !== group.sum) {
      group.sum = sum;
      group.changedAtMs = now;
    }
    group.isShown = now - group.changedAtMs < UNUSED_MS_MAX;
  }

  /** Sum of one metric over all threads, for series whose labels match; for tests and the admin page. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    this.#discover();
    let sum = 0;
    for (const part of this.#families.find((family) => family.name === name)?.parts ?? []) {
      for (const [text, { bases }] of part.projection.groups) {
        const shown = part.fixed ? `${text},${part.fixed}` : text;
        if (!Object.entries(labels).every(([label, value]) => shown.split(',').includes(labelText(label, value)))) {
          continue;
        }
        const count = part.metric.type === 'histogram' ? part.bounds.length : 1;
        for (const base of bases) {
          for (let cell = 0; cell < count; cell++) sum += this.#cells[base + part.metric.offset + cell]!;
        }
      }
    }
    return sum;
  }

  /** The page, in pieces. Each series is consistent in itself; counting continues between two pieces. */
  *pieces(): Generator<string> {
    this.#discover();
    this.#age();
    let piece = '';
    for (const family of this.#families) {
      let open = false;
      for (const part of family.parts) {
        for (const [labels, { bases, isShown }] of part.projection.groups) {
          const lines = isShown ? this.#lines(family.name, part, labels, bases) : '';
          if (lines === '') continue;
          piece += open ? lines : family.head + lines;
          open = true;
          if (piece.length < PIECE_CHARACTERS) continue;
          yield piece;
          piece = '';
        }
      }
    }
    if (piece !== '') yield piece;
  }

  /** The lines of one series; empty = it has labels and was never counted. */
  #lines(name: string, part: Part, labels: string, bases: readonly number[]): string {
    const { metric, kind } = part;
    const values = new Float64Array(cellsOf(metric));
    for (const base of bases) {
      for (let cell = 0; cell < values.length; cell++) values[cell]! += this.#cells[base + metric.offset + cell]!;
    }
    if (metric.type === 'histogram') return histogramLines(name, part, labels, values);
    const shown = withFixed(labels, part.fixed);
    if (metric.latest) {
      const value = this.#latest(metric, bases);
      return value === undefined ? '' : `${name}{${shown}} ${numberText(value)}\n`;
    }
    if (values[0] === 0 && kind.labels.length > 0 && !this.#touched(part, bases)) return '';
    return `${name}${shown === '' ? '' : `{${shown}}`} ${numberText(values[0]!)}\n`;
  }

  /** The latest value of several threads; undefined without a value. */
  #latest(metric: Metric, bases: readonly number[]): number | undefined {
    let value: number | undefined;
    let time = 0;
    for (const base of bases) {
      const at = base + metric.offset;
      if (this.#cells[at + 1]! <= time) continue;
      value = this.#cells[at]!;
      time = this.#cells[at + 1]!;
    }
    return value;
  }

  /** Whether anything was ever counted, by the first metric of the kind. A gauge that is back at 0 is still shown. */
  #touched(part: Part, bases: readonly number[]): boolean {
    return part.metric.type === 'gauge' && bases.some((base) => this.#cells[base] !== 0);
  }
}

function withFixed(labels: string, fixed: string): string {
  return labels !== '' && fixed !== '' ? `${labels},${fixed}` : labels + fixed;
}

function histogramLines(name: string, part: Part, labels: string, values: Float64Array): string {
  const { bounds, kind } = part;
  let count = 0;
  for (let cell = 0; cell < bounds.length; cell++) count += values[cell]!;
  if (count === 0 && kind.labels.length > 0) return '';
  const shown = withFixed(labels, part.fixed);
  const start = `${name}_bucket{${shown === '' ? '' : `${shown},`}le="`;
  let text = '';
  let upTo = 0;
  for (let cell = 0; cell < bounds.length; cell++) {
    upTo += values[cell]!;
    text += `${start}${bounds[cell]}"} ${upTo}\n`;
  }
  const end = shown === '' ? '' : `{${shown}}`;
  return `${text}${name}_sum${end} ${numberText(values[bounds.length]!)}\n${name}_count${end} ${count}\n`;
}

/** A number as the Prometheus text format and Go's clients write it; dashboards select buckets by this text. */
export function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e21 || size < 1e-4)) return exponentText(value);
  return String(value);
}

/** A bucket's upper bound: as `numberText`, but with an exponent from one million on. */
export function boundText(value: number): string {
  return Math.abs(value) >= 1e6 ? exponentText(value) : numberText(value);
}

// Go writes at least two digits of exponent.
function exponentText(value: number): string {
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

/** A label with its value, in which the text format's three special characters are escaped. */
export function labelText(name: string, value: string): string {
  const escaped = /["\\\n]/.test(value)
    ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    : value;
  return `${name}="${escaped}"`;
}

function headText(name: string, type: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}
