import { ConfigurationDocument } from '../../config/document.js';
import { type LoadedConfiguration, loadDocument, runningWarnings } from '../../config/load.js';
import { planReload } from '../../config/reload.js';
import type { Logger } from '../../operations/log.js';
import { FileWatch, readBoundedFile } from '../../pool/discovery/file-watch.js';
import { ReportOnce } from '../../runtime/report-once.js';
import type { FollowedConfiguration } from '../picker-options.js';

/** Outcome of a changed configuration file. */
export type ReloadOutcome = 'applied' | 'unchanged' | 'restart_required' | 'invalid';

/** Counts of a picker that does not follow its configuration file. */
export const NO_RELOADS: Readonly<Record<ReloadOutcome, number>> = {
  applied: 0,
  unchanged: 0,
  restart_required: 0,
  invalid: 0,
};

export interface ConfigurationReloadOptions {
  readonly followed: FollowedConfiguration;
  /** The running configuration. */
  readonly running: LoadedConfiguration;
  /** Replaces the running configuration. After an exception the old one still runs. */
  readonly apply: (next: LoadedConfiguration) => void;
  readonly log: Logger;
}

/**
 * Follows the configuration file (`--watch-config`), or reads it again when asked (SIGHUP). A new version is loaded and
 * compiled beside the running one; it takes its place when it is valid and needs no restart, otherwise nothing changes.
 * One log line for each version.
 */
export class ConfigurationReload {
  readonly #options: ConfigurationReloadOptions;
  readonly #log: Logger;
  readonly #counts: Record<ReloadOutcome, number> = { ...NO_RELOADS };
  #last: ReloadOutcome | undefined;
  #running: LoadedConfiguration;
  /** The text of the last version read. */
  #text: string | undefined;
  readonly #problems = new ReportOnce((problem) => this.#refuse(problem));
  #watch: FileWatch | undefined;

  constructor(options: ConfigurationReloadOptions) {
    this.#options = options;
    this.#running = options.running;
    this.#log = options.log.child({ part: 'configuration' });
  }

  /** Versions so far, by outcome. */
  get counts(): Readonly<Record<ReloadOutcome, number>> {
    return this.#counts;
  }

  /** Outcome of the last version; undefined = the file has not changed since the start. */
  get last(): ReloadOutcome | undefined {
    return this.#last;
  }

  /** Resolves after the first read of the file. A change since the load at the start counts as a version. */
  async start(): Promise<void> {
    const { followed } = this.#options;
    if (!followed.watched) return;
    await this.#readFile();
    this.#watch = new FileWatch(followed.file, followed, () => this.#readFile());
  }

  /** Reads the file now. */
  reload(): Promise<void> {
    return this.#readFile();
  }

  /** Ends after the look under way. */
  async stop(): Promise<void> {
    await this.#watch?.stop();
  }

  async #readFile(): Promise<void> {
    const { file } = this.#options.followed;
    try {
      const text = await readBoundedFile(file);
      this.#problems.over();
      if (text === this.#text) return;
      const first = this.#text === undefined;
      this.#text = text;
      this.#consider(text, first);
    } catch (error) {
      this.#problems.problem(error);
    }
  }

  #consider(text: string, first: boolean): void {
    const { followed, apply } = this.#options;
    const next = loadDocument(ConfigurationDocument.ofFile(text, followed.file), followed.load);
    const { changed, restart } = planReload(this.#running, next, followed.load.registry);
    if (!changed && first) return;
    if (!changed) {
      this.#count('unchanged');
      this.#log.info('the configuration file says the same as before');
      return;
    }
    if (restart.length > 0) {
      this.#count('restart_required');
      this.#log.warn(`the new configuration waits for a restart, the old one stays: ${restart.join('; ')}`);
      return;
    }
    apply(next);
    this.#running = next;
    this.#count('applied');
    for (const warning of runningWarnings(next)) this.#log.warn(warning);
    this.#log.info({ profiles: next.scheduling.profiles.map(({ name }) => name) }, 'new configuration applied');
  }

  #count(outcome: ReloadOutcome): void {
    this.#counts[outcome]++;
    this.#last = outcome;
  }

  #refuse(problem: string): void {
    this.#count('invalid');
    this.#log.error(`${problem}; the configuration stays as it was`);
  }
}
