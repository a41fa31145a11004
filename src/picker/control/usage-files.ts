import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../operations/log.js';
import { DailyUsage, readUsageLines, untilMidnight, usageLines, utcDay } from '../../operations/usage/daily-usage.js';
import type { TenantTotals } from '../../operations/usage/tenant-usage.js';
import { errorMessage } from '../../runtime/error-message.js';
import { folderProblem, usableFolder } from '../../runtime/folder.js';
import { STATE_BYTES_MAX } from '../../runtime/plain-file.js';
import { ReportOnce } from '../../runtime/report-once.js';
import type { Part } from '../part.js';
import { StateFile } from './state-file.js';

/** Interval between two writes. A crash loses the usage counted since the last one. */
const WRITE_MS = 60_000;
const FILE = /^usage-(\d{4}-\d{2}-\d{2})\.ndjson$/;
const DAY_MS = 86_400_000;

export interface UsageFilesOptions {
  readonly folder: string;
  /** Days that a file is kept, its own included. */
  readonly days: number;
  readonly poolName: string;
  /** Usage by tenant since the start of the process. */
  readonly read: () => ReadonlyMap<string, TenantTotals>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Logger;
}

/** Usage by tenant in one file for each UTC day (`--usage-dir`), replaced as a whole every minute. */
export class UsageFiles implements Part {
  readonly #options: UsageFilesOptions;
  readonly #log: Logger;
  #usage: DailyUsage | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #problems = new ReportOnce((problem) =>
    this.#log.error(
      { file: this.#pathOf(this.#usage!.day) },
      `cannot keep the usage of tenants, it is written again within a minute: ${problem}`,
    ),
  );

  constructor(options: UsageFilesOptions) {
    this.#options = options;
    this.#log = options.log.child({ part: 'usage' });
  }

  /** Whether the last write has failed. */
  get isUnsaved(): boolean {
    return this.#problems.present !== undefined;
  }

  /** @throws with one line when the folder cannot be used */
  async start(): Promise<void> {
    const { folder, read, now } = this.#options;
    try {
      usableFolder(folder);
      const day = utcDay(now());
      this.#usage = new DailyUsage(read, day, await this.#before(day));
      await this.#write();
      await this.#removeOld();
    } catch (error) {
      throw new Error(`--usage-dir: ${folderProblem(folder, error)}`);
    }
    this.#wait();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#usage !== undefined) await this.tick();
  }

  /** Writes the file of the day. On another day the old one is written for the last time, and old files are removed. */
  async tick(): Promise<void> {
    const usage = this.#usage!;
    const today = utcDay(this.#options.now());
    try {
      await this.#write();
      if (today === usage.day) return this.#problems.over();
      usage.begin(today);
      await this.#write();
      await this.#removeOld();
      this.#problems.over();
    } catch (error) {
      this.#problems.problem(error);
    }
  }

  #wait(): void {
    const pauseMs = Math.min(WRITE_MS, untilMidnight(this.#options.now()));
    this.#timer = setTimeout(() => this.tick().then(() => this.#wait()), pauseMs).unref();
  }

  #pathOf(day: string): string {
    return join(this.#options.folder, `usage-${day}.ndjson`);
  }

  /** Usage of the day before this start. A file that is damaged is kept under another name. */
  async #before(day: string): Promise<ReadonlyMap<string, TenantTotals>> {
    const text = await new StateFile(this.#pathOf(day), STATE_BYTES_MAX).read();
    try {
      return readUsageLines(text ?? '');
    } catch (error) {
      const beside = `${this.#pathOf(day)}.damaged-${this.#options.now()}`;
      await rename(this.#pathOf(day), beside);
      const damaged = `${this.#pathOf(day)}: ${errorMessage(error)}`;
      this.#log.error(`${damaged}; it is kept as ${beside}, and the day begins anew`);
      return new Map();
    }
  }

  async #write(): Promise<void> {
    const { day, tenants } = this.#usage!;
    await new StateFile(this.#pathOf(day), STATE_BYTES_MAX).write(usageLines(this.#options.poolName, day, tenants));
  }

  async #removeOld(): Promise<void> {
    const { folder, days, now } = this.#options;
    const oldest = utcDay(now() - (days - 1) * DAY_MS);
    for (const name of await readdir(folder)) {
      const [, day] = FILE.exec(name) ?? [];
      if (day !== undefined && day < oldest) await rm(join(folder, name), { force: true });
    }
  }
}
