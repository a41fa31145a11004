import { setTimeout as pause } from 'node:timers/promises';
import { counted } from '../../runtime/counted.js';
import { errorMessage } from '../../runtime/error-message.js';
import { type Exporter, ExportFailure } from './exporters.js';
import type { BatchSettings } from './settings.js';
import type { Span } from './span.js';

/** Pauses before an export is repeated: the first, doubled each time up to the longest. */
const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 8_000;

/** Counts of spans by outcome. */
export interface SpanCounts {
  exported: number;
  /** Given up after repetitions, or refused by the receiver. */
  failed: number;
  /** Spans that a full queue did not take. */
  dropped: number;
}

export interface SpanQueueOptions {
  readonly batch: BatchSettings;
  readonly exporter: Exporter;
  readonly encode: (spans: readonly Span[]) => Buffer;
  /** Reports why spans are lost; the same reason only once in a row. */
  readonly report: (problem: string) => void;
}

/** Spans on their way out: bounded, sent in batches, one export at a time. */
export class SpanQueue {
  readonly counts: SpanCounts = { exported: 0, failed: 0, dropped: 0 };
  readonly #options: SpanQueueOptions;
  #spans: Span[] = [];
  #timer: NodeJS.Timeout | undefined;
  #export: Promise<void> | undefined;
  #isClosing = false;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  /** Spans that wait. */
  get waiting(): number {
    return this.#spans.length;
  }

  add(spans: readonly Span[]): void {
    const { queueMax, batchMax, delayMs } = this.#options.batch;
    const fits = Math.max(0, Math.min(spans.length, queueMax - this.#spans.length));
    for (let i = 0; i < fits; i++) this.#spans.push(spans[i]!);
    this.drop(spans.length - fits);
    if (this.#spans.length >= batchMax) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), delayMs).unref();
  }

  /** Counts spans that were lost on their way here. */
  drop(spans: number): void {
    if (spans === 0) return;
    this.counts.dropped += spans;
    this.#options.report('spans are dropped: the queue is full (OTEL_BSP_MAX_QUEUE_SIZE)');
  }

  /** Sends the waiting spans, without repetitions, and ends. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    await this.#export;
    while (this.#spans.length > 0) await this.#sendBatch();
    await this.#options.exporter.close();
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#export ??= this.#sendBatch().finally(() => {
      this.#export = undefined;
      if (this.#isClosing || this.#spans.length === 0) return;
      if (this.#spans.length >= this.#options.batch.batchMax) this.#start();
      else this.#timer ??= setTimeout(() => this.#start(), this.#options.batch.delayMs).unref();
    });
  }

  async #sendBatch(): Promise<void> {
    const spans = this.#spans.splice(0, this.#options.batch.batchMax);
    try {
      const refusal = await this.#send(this.#options.encode(spans));
      const refused = Math.min(spans.length, refusal?.spans ?? 0);
      this.counts.exported += spans.length - refused;
      this.counts.failed += refused;
      if (refusal !== undefined)
        this.#options.report(`the receiver refuses ${counted(refused, 'span')}: ${refusal.why}`);
    } catch (error) {
      this.counts.failed += spans.length;
      this.#options.report(`spans cannot be exported: ${errorMessage(error)}`);
    }
  }

  /** Exports with repetitions, all of them within the time-out of one export. */
  async #send(request: Buffer): ReturnType<Exporter['send']> {
    const end = performance.now() + this.#options.batch.timeoutMs;
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
      try {
        return await this.#options.exporter.send(request);
      } catch (error) {
        // Half at random, so that replicas do not return together.
        const wait = (error as ExportFailure).pauseMs ?? pauseMs * (0.5 + Math.random() / 2);
        const isRepeated = error instanceof ExportFailure && error.isTransient && !this.#isClosing;
        if (!isRepeated || performance.now() + wait > end) throw error;
        await pause(wait, undefined, { ref: false });
      }
    }
  }
}
