import type { PredictionServers } from '../../contract/prediction-settings.js';
import { FailurePause } from '../../remote/failure-pause.js';
import { JsonServers, UnexpectedStatus } from '../../remote/json-server.js';
import { type PredictedTimes, type PredictionRow, predictedTimes } from './prediction-wire.js';

/** Time for which an idle connection stays open. */
const KEEP_ALIVE_MS = 90_000;
/** Rows of one call when the settings give no bound, and rows that may wait for a call. */
const ROWS_OF_A_CALL = 4_096;
const ROWS_WAITING_MAX = 65_536;
/** Bound on an answer: a prediction takes some 300 bytes of it. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

type Times = readonly (PredictedTimes | undefined)[];

/** Rows of one request that travel together. */
interface Batch {
  readonly rows: readonly PredictionRow[];
  readonly resolve: (times: Times) => void;
  readonly reject: (error: Error) => void;
}

/** Error of a request that was not sent, because servers fail or all calls are taken. */
export class NotAsked extends Error {
  readonly outcome: 'paused' | 'busy';

  constructor(outcome: 'paused' | 'busy', message: string) {
    super(message);
    this.outcome = outcome;
  }
}

/**
 * Asks llm-d-router's prediction servers about rows. Rows of requests that come close together share one call, and
 * large pools are divided into several. A server that predicts all rows or none is asked for the rows that it has.
 */
export class PredictionClient {
  readonly #servers: PredictionServers;
  readonly #pause: FailurePause;
  readonly #connections: JsonServers;
  readonly #rowsOfACall: number;
  #waiting: Batch[] = [];
  #waitingRows = 0;
  #timer: NodeJS.Timeout | undefined;
  #underWay = 0;
  #turn = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(servers: PredictionServers, now: () => number) {
    this.#servers = servers;
    this.#pause = new FailurePause(now);
    this.#connections = new JsonServers({
      connections: servers.dispatchesMax,
      keepAliveMs: KEEP_ALIVE_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
    });
    this.#rowsOfACall = servers.coalescedRowsMax || ROWS_OF_A_CALL;
  }

  /**
   * Times for every row, by position; undefined where a server says nothing about it.
   * Rejects with NotAsked, or with the reason of the last server that failed when no row has an answer.
   */
  async predict(rows: readonly PredictionRow[]): Promise<Times> {
    if (rows.length === 0) return [];
    if (!this.#pause.admits()) throw new NotAsked('paused', 'the prediction servers have failed too often');
    if (this.#waitingRows + rows.length > ROWS_WAITING_MAX) {
      throw new NotAsked('busy', `${this.#waitingRows} rows wait for prediction servers already`);
    }
    const { rowsMax } = this.#servers;
    const pieces: Promise<Times>[] = [];
    for (let at = 0; at < rows.length; at += rowsMax) pieces.push(this.#enqueue(rows.slice(at, at + rowsMax)));
    const settled = await Promise.allSettled(pieces);
    const failed = settled.find((piece) => piece.status === 'rejected');
    if (failed !== undefined && settled.every(({ status }) => status === 'rejected')) throw failed.reason;
    return settled.flatMap((piece, i) =>
      piece.status === 'fulfilled'
        ? piece.value
        : rows.slice(i * rowsMax, (i + 1) * rowsMax).map((): PredictedTimes | undefined => undefined),
    );
  }

  #enqueue(rows: readonly PredictionRow[]): Promise<Times> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ rows, resolve, reject });
      this.#waitingRows += rows.length;
      const { coalesceMs } = this.#servers;
      if (coalesceMs === 0 || this.#waitingRows >= this.#rowsOfACall) this.#dispatch();
      else this.#timer ??= setTimeout(() => this.#dispatch(), coalesceMs);
    });
  }

  /** Sends what waits, as far as calls are free; the end of a call sends on. */
  #dispatch(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#waiting.length > 0 && this.#underWay < this.#servers.dispatchesMax) {
      const batches = [this.#waiting.shift()!];
      let rows = batches[0]!.rows.length;
      while (this.#waiting.length > 0 && rows + this.#waiting[0]!.rows.length <= this.#rowsOfACall) {
        const next = this.#waiting.shift()!;
        rows += next.rows.length;
        batches.push(next);
      }
      this.#waitingRows -= rows;
      void this.#send(batches);
    }
  }

  async #send(batches: readonly Batch[]): Promise<void> {
    this.#underWay++;
    const rows = batches.flatMap((batch) => batch.rows);
    try {
      const times = await this.#ask(rows);
      this.#pause.succeeded();
      let at = 0;
      for (const batch of batches) {
        batch.resolve(times.slice(at, at + batch.rows.length));
        at += batch.rows.length;
      }
    } catch (error) {
      this.#pause.failed();
      for (const batch of batches) batch.reject(error as Error);
    } finally {
      this.#underWay--;
      this.#dispatch();
    }
  }

  /** All rows in one call; when the server predicts all or none and refuses, the ones that it can predict. */
  async #ask(rows: readonly PredictionRow[]): Promise<Times> {
    const { prediction, timeoutMs } = this.#servers;
    const base = prediction[this.#turn++ % prediction.length]!;
    const body = JSON.stringify({ requests: rows });
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return predictedTimes(await this.#connections.post(`${base}/predict/bulk/strict`, body, signal), rows.length);
    } catch (error) {
      // A server that answered has judged the rows, and may still predict some of them.
      if (!(error instanceof UnexpectedStatus)) throw error;
      return predictedTimes(await this.#connections.post(`${base}/predict/bulk`, body, signal), rows.length);
    }
  }

  /** Closes the connections; rejects the calls that wait. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    for (const { reject } of this.#waiting.splice(0)) reject(new Error('the shard ends'));
    await this.#connections.close();
  }
}
