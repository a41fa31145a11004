import type { CoreInstance } from '../../core/memory.js';
import { requestKind } from '../telemetry/metric-table.js';
import { SeriesReader } from '../telemetry/series-block.js';

/** Labels of a request in the metrics. */
export interface RequestLabels {
  readonly model: string;
  readonly targetModel: string;
  readonly fairnessId: string;
}

/** Finds the labels of a logged request by its series, in the telemetry directories of the threads. */
export class SeriesLabels {
  readonly #readers: readonly SeriesReader[];
  readonly #known: readonly Map<number, RequestLabels>[];

  constructor(core: CoreInstance) {
    const threads = Array.from({ length: core.sizes.threads }, (_, thread) => thread);
    this.#readers = threads.map((thread) => new SeriesReader(core, thread));
    this.#known = threads.map(() => new Map());
  }

  /** Labels of a series of a thread; undefined when there is no such series of requests. */
  of(thread: number, series: number): RequestLabels | undefined {
    const known = this.#known[thread];
    if (known === undefined || series === 0) return undefined;
    const found = known.get(series);
    if (found !== undefined) return found;
    for (const { kind, values, base } of this.#readers[thread]!.fresh()) {
      if (kind.id !== requestKind.id) continue;
      const [fairnessId = '', model = '', , targetModel = ''] = values;
      known.set(base, { model, targetModel, fairnessId });
    }
    return known.get(series);
  }
}
