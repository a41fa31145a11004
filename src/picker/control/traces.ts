import { randomBytes, randomUUID } from 'node:crypto';
import type { TraceBatch, TraceRecord } from '../../ingress/tracing/trace-record.js';
import type { Logger } from '../../operations/log.js';
import type { TraceReadings } from '../../operations/metrics/trace-metrics.js';
import type { TracingSettings } from '../../operations/tracing/settings.js';
import type { SpanQueue } from '../../operations/tracing/span-queue.js';
import type { RequestStories } from '../../operations/why/request-story.js';
import type { Part } from '../part.js';

/** A pool whose requests are traced. */
export interface TracedPool {
  readonly name: string;
  /** Decisions in the log. */
  readonly stories: RequestStories;
}

/** Makes spans of the records of traced requests, of all pools, and exports them, on the control thread. */
export class Traces implements Part {
  readonly #settings: TracingSettings;
  readonly #version: string;
  readonly #log: Logger;
  #queue: SpanQueue | undefined;
  #make: typeof import('../../operations/tracing/request-spans.js') | undefined;
  #lastProblem: string | undefined;

  constructor(settings: TracingSettings, version: string, log: Logger) {
    this.#settings = settings;
    this.#version = version;
    this.#log = log;
  }

  get readings(): TraceReadings {
    const { counts = { exported: 0, failed: 0, dropped: 0 }, waiting = 0 } = this.#queue ?? {};
    return { counts, waiting };
  }

  /** Nothing of the exporters is loaded in a picker without traces. */
  async start(): Promise<void> {
    const settings = this.#settings;
    const [{ SpanQueue }, { spanSink }, make] = await Promise.all([
      import('../../operations/tracing/span-queue.js'),
      import('../../operations/tracing/span-sink.js'),
      import('../../operations/tracing/request-spans.js'),
    ]);
    this.#make = make;
    const sink = await spanSink(settings, { version: this.#version, instance: randomUUID() });
    this.#queue = new SpanQueue({ batch: settings.batch, report: (problem) => this.#report(problem), ...sink });
  }

  /** Takes trace records of a shard for one pool. */
  take(pool: TracedPool, thread: number, { records, dropped }: TraceBatch): void {
    const queue = this.#queue;
    if (queue === undefined) return;
    for (const record of records) queue.add(this.#spansOf(pool, thread, record));
    queue.drop(dropped);
  }

  async stop(): Promise<void> {
    await this.#queue?.close();
  }

  #spansOf({ name, stories }: TracedPool, thread: number, record: TraceRecord) {
    const { requestSpans, decisionSpans } = this.#make!;
    if (record.kind === 'request') return requestSpans(record, name, nextSpanId);
    return decisionSpans(record, stories.decisions(thread, record.first, record.count), nextSpanId);
  }

  #report(problem: string): void {
    if (problem === this.#lastProblem) return;
    this.#lastProblem = problem;
    this.#log.warn({ part: 'traces' }, problem);
  }
}

function nextSpanId(): string {
  return randomBytes(8).toString('hex');
}
