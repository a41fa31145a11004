import { type BigIntStats, type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { readPlainFile, TEXT_BYTES_MAX } from '../../runtime/plain-file.js';
import { readProblem } from '../../runtime/read-problem.js';

export interface FileWatchOptions {
  /** Quiet after an event before the file is read, so that a file under way is not read half. Default 50. */
  readonly settleMs?: number | undefined;
  /** Interval of checks without an event, in ms. Default 1,000. */
  readonly pollMs?: number | undefined;
}

/** Bound on the delay of a reading by further events, in settle times. */
const SETTLE_TIMES_MAX = 10;

/** File systems count time in steps (up to 2 s): a file changed this recently may have changed again unseen. */
const RACY_NS = 3_000_000_000n;

/** Reads a whole file of bounded size as UTF-8. Rejects with one line that names the file. */
export async function readBoundedFile(path: string): Promise<string> {
  try {
    const bytes = await readPlainFile(path, TEXT_BYTES_MAX);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Error(`${path}: ${readProblem(error)}`);
  }
}

/**
 * Calls `read` whenever a file may have changed: at once after events in its directory (a rename over it, a write into
 * it, a ConfigMap's swapped link), and within `pollMs` where no event comes (network file systems, a directory that was
 * replaced). `read` is never run twice at a time, and always once more after the last change.
 */
export class FileWatch {
  readonly #path: string;
  readonly #read: () => Promise<void>;
  readonly #settleMs: number;
  readonly #poll: NodeJS.Timeout;
  #watcher: FSWatcher | undefined;
  #watchedDirectory = '';
  #settle: NodeJS.Timeout | undefined;
  #firstEventMs = 0;
  #seen = '';
  #reading: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(path: string, options: FileWatchOptions, read: () => Promise<void>) {
    this.#path = path;
    this.#read = read;
    this.#settleMs = options.settleMs ?? 50;
    this.#poll = setInterval(() => void this.#compare(), options.pollMs ?? 1_000);
    this.#poll.unref();
    void this.#compare();
  }

  /** Ends when a reading under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#poll);
    clearTimeout(this.#settle);
    this.#watcher?.close();
    await this.#reading;
  }

  /** Compares the file's status with that of the last read. */
  async #compare(): Promise<void> {
    await this.#watchDirectory();
    const state = await fileState(this.#path);
    if (!this.#stopped && state !== this.#seen) this.#readSoon();
  }

  async #watchDirectory(): Promise<void> {
    const directory = dirname(this.#path);
    const identity = await stat(directory, { bigint: true }).then(
      ({ dev, ino }) => `${dev} ${ino}`,
      () => '',
    );
    if (this.#stopped || identity === this.#watchedDirectory) return;
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#watchedDirectory = '';
    if (identity === '') return;
    try {
      const name = basename(this.#path);
      // Events of neighbours count only where they may move a link that leads to the file.
      this.#watcher = watch(directory, { persistent: false }, (_, changed) => {
        if (changed === null || changed === name || changed.startsWith('..')) this.#readSoon();
      });
      this.#watcher.on('error', () => {
        this.#watchedDirectory = '';
      });
      this.#watchedDirectory = identity;
      this.#readSoon();
    } catch {
      // No more watches to be had: the poll serves, and tries again.
    }
  }

  /** Reads the file after a while of quiet; a file that changes all the time is read all the same. */
  #readSoon(): void {
    const now = performance.now();
    if (this.#settle === undefined) this.#firstEventMs = now;
    else if (now - this.#firstEventMs > SETTLE_TIMES_MAX * this.#settleMs) return;
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => {
      this.#settle = undefined;
      this.#readNow();
    }, this.#settleMs);
  }

  #readNow(): void {
    if (this.#stopped) return;
    if (this.#reading !== undefined) {
      this.#again = true;
      return;
    }
    this.#reading = this.#readOnce().finally(() => {
      this.#reading = undefined;
      if (this.#again) {
        this.#again = false;
        this.#readSoon();
      }
    });
  }

  async #readOnce(): Promise<void> {
    // The state before the reading: what changes meanwhile differs from it and is read again.
    this.#seen = await fileState(this.#path);
    await this.#read();
  }
}

/** A text that differs whenever the file has changed, and also at every look while its time is too recent to tell. */
async function fileState(path: string): Promise<string> {
  let state: BigIntStats;
  try {
    state = await stat(path, { bigint: true });
  } catch (error) {
    return String(error);
  }
  const now = BigInt(Date.now()) * 1_000_000n;
  const racy = now - state.mtimeNs < RACY_NS ? ` ${now}` : '';
  return `${state.dev} ${state.ino} ${state.size} ${state.mtimeNs} ${state.ctimeNs}${racy}`;
}
