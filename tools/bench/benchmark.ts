import type { LoadedConfiguration } from '../../src/config/load.js';
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import { BenchPool } from './bench-pool.js';
import { type BenchRow, benchRows, type RowKind, undecidedProfiles } from './bench-rows.js';
import { HookCalls } from './hook-calls.js';
import { type Figure, figure, pairedFigure, type Subject, samplePaired } from './paired-samples.js';

export interface BenchmarkOptions {
  readonly registry: readonly PluginDefinition[];
  readonly endpoints: number;
  readonly blocks: number;
  readonly seed: bigint;
  /** Time of each row, in milliseconds. */
  readonly rowTimeMs: number;
  readonly now: () => number;
}

/** A row, measured. Times in nanoseconds. */
export interface MeasuredRow {
  readonly name: string;
  readonly type: string;
  readonly kind: RowKind;
  readonly nsPerDecision: Figure;
  readonly nsPerEndpoint: number;
}

/** A row of both configurations, with the quotient of their times. */
export interface ComparedRow extends MeasuredRow {
  readonly otherNsPerDecision: Figure;
  /** Quotient of the other configuration's time and this one's; undefined where this one's interval reaches 0. */
  readonly ratio: Figure | undefined;
}

export interface Measured<Row> {
  readonly rounds: number;
  readonly rows: readonly Row[];
  /** Reasons why figures may not be what they seem, one line each. */
  readonly notes: readonly string[];
}

/** Names, types and kinds of the rows of a configuration. Nothing is measured. */
export function listRows(configuration: LoadedConfiguration, options: BenchmarkOptions): readonly BenchRow[] {
  return withBench(configuration, options, ({ rows }) => rows);
}

/** Measures every row of a configuration. */
export function measureRows(configuration: LoadedConfiguration, options: BenchmarkOptions): Measured<MeasuredRow> {
  return withBench(configuration, options, (bench) => {
    const timed = new TimedRows(bench.rows, options);
    bench.check();
    const rows = bench.rows.map((row) => measuredRow(row, timed.ns(row), options.endpoints));
    return { rounds: timed.rounds, rows, notes: bench.notes };
  });
}

/** Measures the rows that two configurations share by name, in the same rounds. */
export function compareRows(
  configuration: LoadedConfiguration,
  other: LoadedConfiguration,
  options: BenchmarkOptions,
): Measured<ComparedRow> {
  return withBench(configuration, options, (bench) =>
    withBench(other, options, (otherBench) => {
      const pairs = bench.rows.flatMap((row) => {
        const twin = otherBench.rows.find(({ name, kind }) => name === row.name && kind === row.kind);
        return twin === undefined ? [] : [{ row, twin }];
      });
      const timed = new TimedRows(
        pairs.flatMap(({ row, twin }) => [row, twin]),
        options,
      );
      bench.check();
      otherBench.check();
      const rows = pairs.map(({ row, twin }) => comparedRow(row, timed.ns(row), timed.ns(twin), options.endpoints));
      return { rounds: timed.rounds, rows, notes: [...bench.notes, ...otherBench.notes] };
    }),
  );
}

type RowName = Pick<BenchRow, 'name' | 'type' | 'kind'>;

interface Bench {
  readonly rows: readonly BenchRow[];
  readonly notes: readonly string[];
  /** @throws when a hook plugin has failed: its figures would be those of a failure */
  check(): void;
}

function withBench<Result>(
  configuration: LoadedConfiguration,
  options: BenchmarkOptions,
  use: (bench: Bench) => Result,
): Result {
  const pool = new BenchPool({ configuration, ...options });
  const hooks = new Map<string, HookCalls>();
  try {
    for (const settings of configuration.scheduling.host) {
      hooks.set(settings.name, new HookCalls(pool, settings, options.registry, options.now));
    }
    const rows = benchRows(pool, hooks);
    return use({ rows, notes: undecidedProfiles(pool, hooks), check: () => checkHooks(hooks) });
  } finally {
    for (const calls of hooks.values()) calls.close();
  }
}

function checkHooks(hooks: ReadonlyMap<string, HookCalls>): void {
  for (const [name, { failures }] of hooks) {
    if (failures > 0) throw new Error(`plugin "${name}": ${failures} of its calls failed, so there is nothing to time`);
  }
}

/** Samples of rows: the difference of each row's two subjects. */
class TimedRows {
  readonly rounds: number;
  readonly #subjects: readonly Subject[];
  readonly #ns: readonly Float64Array[];

  constructor(rows: readonly BenchRow[], { rowTimeMs, now }: BenchmarkOptions) {
    this.#subjects = rows.flatMap(({ subject, without }) => (without === undefined ? [subject] : [subject, without]));
    const { rounds, ns } = samplePaired(this.#subjects, { timeMs: rowTimeMs * rows.length, now });
    this.rounds = rounds;
    this.#ns = ns;
  }

  ns({ subject, without }: BenchRow): Float64Array {
    const all = this.#of(subject);
    if (without === undefined) return all;
    const rest = this.#of(without);
    return all.map((value, round) => value - rest[round]!);
  }

  #of(subject: Subject): Float64Array {
    return this.#ns[this.#subjects.indexOf(subject)]!;
  }
}

/** A part takes no less than nothing: a difference below 0 is the noise of the machine. */
function timeFigure(ns: Float64Array): Figure {
  const { median, low, high } = figure(ns);
  return { median: Math.max(0, median), low: Math.max(0, low), high: Math.max(0, high) };
}

/** @param ns times, or differences of two times */
export function measuredRow({ name, type, kind }: RowName, ns: Float64Array, endpoints: number): MeasuredRow {
  const nsPerDecision = timeFigure(ns);
  return { name, type, kind, nsPerDecision, nsPerEndpoint: nsPerDecision.median / endpoints };
}

function comparedRow(row: BenchRow, ns: Float64Array, otherNs: Float64Array, endpoints: number): ComparedRow {
  const measured = measuredRow(row, ns, endpoints);
  const ratio = measured.nsPerDecision.low > 0 ? pairedFigure(otherNs, ns, (other, own) => other / own) : undefined;
  return { ...measured, otherNsPerDecision: timeFigure(otherNs), ratio };
}
