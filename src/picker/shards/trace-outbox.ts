import { setTimeout as pause } from 'node:timers/promises';
import type { TraceBatch, TraceRecord } from '../../ingress/tracing/trace-record.js';

/** Records that a shard keeps for the control thread. More are dropped and counted. */
const RECORDS_MAX = 1_024;
/** Records of one message. */
const BATCH_MAX = 128;
/** Interval between two messages. Decisions must be read from the decision log before later ones overwrite them. */
const SEND_MS = 100;
const CLOSING_MS_MAX = 1_000;
const CLOSING_LOOK_MS = 5;

/**
 * Hands a shard's trace records to the control thread, one batch at a time: the next one waits until the last is taken.
 */
export class TraceOutbox {
  readonly #send: (batch: TraceBatch) => void;
  #records: TraceRecord[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #isOutstanding = false;

  constructor(send: (batch: TraceBatch) => void) {
    this.#send = send;
  }

  readonly add = (record: TraceRecord): void => {
    if (this.#records.length >= RECORDS_MAX) this.#dropped++;
    else this.#records.push(record);
    this.#timer ??= setTimeout(() => this.#due(), SEND_MS).unref();
  };

  /** Called when the control thread has taken the last batch. */
  taken(): void {
    this.#isOutstanding = false;
    if (this.#records.length > 0) this.#timer ??= setTimeout(() => this.#due(), SEND_MS).unref();
  }

  /**
   * Sends everything that is left and waits, up to a second, until it is taken: a port that closes may lose messages.
   */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    const end = performance.now() + CLOSING_MS_MAX;
    while ((this.#records.length > 0 || this.#isOutstanding) && performance.now() < end) {
      if (!this.#isOutstanding) this.#sendBatch();
      await pause(CLOSING_LOOK_MS);
    }
  }

  #due(): void {
    this.#timer = undefined;
    // `taken` sets the timer again.
    if (!this.#isOutstanding) this.#sendBatch();
  }

  #sendBatch(): void {
    const records = this.#records.splice(0, BATCH_MAX);
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#isOutstanding = true;
    this.#send({ records, dropped });
  }
}
