import { randomBytes, randomUUID } from 'node:crypto';
import type { TraceRecord } from '../../ingress/tracing/trace-record.js';
import type { Logger } from '../../operations/log.js';
import type { TraceReadings } from '../../operations/metrics/trace-metrics.js';
import type { TracingSettings } from '../../operations/tracing/settings.js';
import type { SpanQueue } from '../../operations/tracing/span-queue.js';
import type { RequestStories } from '../../operations/why/request-story.js';
import type { Part } from '../part.js';

export interface TracesOptions {
  readonly settings: TracingSettings;
  readonly poolName: string;
  readonly version: string;
  /** Decisions as the log has them. */
  readonly stories: RequestStories;
  readonly log: Logger;
}

/** Makes spans of the records of traced requests and exports them, on the control thread. */
export class Traces implements Part {
  readonly #options: TracesOptions;
  #queue: SpanQueue | undefined;
  #make: typeof import('../../operations/tracing/request-spans.js') | undefined;
  #lastProblem: string | undefined;

  constructor(options: TracesOptions) {
    this.#options = options;
  }

  get readings(): TraceReadings {
    const { counts = { exported: 0, failed: 0, dropped: 0 }, waiting = 0 } = this.#queue ?? {};
    return { counts, waiting };
  }

  /** Nothing of the exporters is loaded in a picker without traces. */
  async start(): Promise<void> {
    const { settings } = this.#options;
    const [{ SpanQueue }, { spanSink }, make] = await Promise.all([
      import('../../operations/tracing/span-queue.js'),
      import('../../operations/tracing/span-sink.js'),
      import('../../operations/tracing/request-spans.js'),
    ]);
    this.#make = make;
    const report = (problem: string) => this.#report(problem);
    this.#queue = new SpanQueue({ batch: settings.batch, report, ...(await spanSink(settings, this.#about())) });
  }

  /** @param dropped records that the shard could not keep */
  take(thread: number, records: readonly TraceRecord[], dropped: number): void {
    const queue = this.#queue;
    if (queue === undefined) return;
    for (const record of records) queue.add(this.#spansOf(thread, record));
    queue.drop(dropped);
  }

  async stop(): Promise<void> {
    await this.#queue?.close();
  }

  #spansOf(thread: number, record: TraceRecord) {
    const { requestSpans, decisionSpans } = this.#make!;
    const { stories, poolName } = this.#options;
    if (record.kind === 'request') return requestSpans(record, poolName, nextSpanId);
    return decisionSpans(record, stories.decisions(thread, record.first, record.count), nextSpanId);
  }

  #about() {
    const { version } = this.#options;
    return { version, instance: randomUUID() };
  }

  #report(problem: string): void {
    if (problem === this.#lastProblem) return;
    this.#lastProblem = problem;
    this.#options.log.warn({ part: 'traces' }, problem);
  }
}

function nextSpanId(): string {
  return randomBytes(8).toString('hex');
}
