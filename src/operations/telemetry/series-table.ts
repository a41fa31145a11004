import type { CoreInstance } from '../../core/memory.js';
import { labelValue, OTHER } from './label-values.js';
import type { SeriesKind } from './metric-kind.js';
import { type Series, SeriesReader, SeriesWriter, seriesBytes } from './series-block.js';

/**
 * The series of one thread by kind and label values. For each kind the series for all values beyond the bound is made
 * first, so that it always exists.
 */
export class SeriesTable {
  readonly #writer: SeriesWriter;
  readonly #overflow: ReadonlyMap<SeriesKind, readonly string[]>;
  readonly #known: ReadonlyMap<SeriesKind, Map<string, number>>;
  readonly #values = new Map<number, readonly string[]>();
  /** Series of an earlier thread with this number. */
  readonly adopted: readonly Series[];

  /**
   * @param kinds kinds that this thread counts
   * @throws RangeError when the thread's telemetry block cannot hold one series of each kind
   */
  constructor(core: CoreInstance, kinds: readonly SeriesKind[]) {
    this.#writer = new SeriesWriter(core);
    this.#known = new Map(kinds.map((kind) => [kind, new Map()]));
    this.#overflow = new Map(
      kinds.map((kind) => [kind, kind.labels.map((label) => (label === 'priority' ? '0' : OTHER))] as const),
    );
    this.adopted = new SeriesReader(core, core.thread).fresh();
    for (const { kind, values, base } of this.adopted) this.#keep(kind, values, base);
    const bytes = [...this.#overflow].reduce((sum, [kind, values]) => sum + seriesBytes(kind, values), 0);
    for (const [kind, values] of this.#overflow) {
      if (this.#find(kind, values) < 0) throw new RangeError(`telemetryBytes must be at least ${bytes + 64}`);
    }
  }

  /** First cell of a known series. */
  known(kind: SeriesKind, key: string): number | undefined {
    return this.#known.get(kind)!.get(key);
  }

  /** Label values of a series, by its first cell. */
  valuesOf(base: number): readonly string[] {
    return this.#values.get(base)!;
  }

  /** First cell of a series; that of the series `other` when a new one does not fit. */
  resolve(kind: SeriesKind, values: readonly string[]): number {
    const found = this.#find(kind, values.map(labelValue));
    return found >= 0 ? found : this.#find(kind, this.#overflow.get(kind)!);
  }

  #find(kind: SeriesKind, values: readonly string[]): number {
    const found = this.known(kind, values.join('\0'));
    if (found !== undefined) return found;
    const base = this.#writer.add(kind, values);
    if (base < 0) return -1;
    this.#keep(kind, values, base);
    return base;
  }

  #keep(kind: SeriesKind, values: readonly string[], base: number): void {
    this.#known.get(kind)!.set(values.join('\0'), base);
    this.#values.set(base, values);
  }
}
