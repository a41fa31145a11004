import { candidateRefusals } from '../../config/candidate.js';
import { ConfigurationDocument } from '../../config/document.js';
import { type LoadedConfiguration, loadDocument } from '../../config/load.js';
import type { CoreInstance } from '../../core/memory.js';
import type { Logger } from '../../operations/log.js';
import type { CandidateState } from '../../operations/page/candidate.js';
import { ShadowTotals } from '../../operations/telemetry/shadow-totals.js';
import { FileWatch, readBoundedFile } from '../../pool/discovery/file-watch.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import { ReportOnce } from '../../runtime/report-once.js';
import type { Part } from '../part.js';
import type { CandidateOptions } from '../picker-options.js';
import type { PoolController } from './pool-controller.js';
import type { ProgramPublisher } from './program-publisher.js';

/** Outcome of a changed candidate file. */
export type CandidateOutcome = 'applied' | 'refused' | 'invalid';

export interface ShadowControlOptions {
  readonly core: CoreInstance;
  readonly candidate: CandidateOptions;
  /** Requests from one shadow decision to the next. */
  readonly every: number;
  readonly running: () => LoadedConfiguration;
  readonly programs: ProgramPublisher;
  readonly pool: Pick<PoolController, 'configureShadow'>;
  readonly log: Logger;
}

/** The candidate configuration as metrics and page show it. */
export interface ShadowState extends CandidateState {
  readonly counts: Readonly<Record<CandidateOutcome, number>>;
}

/**
 * Lets the candidate configuration decide in shadow, and follows its file. A version that cannot run leaves the one
 * before in place. Control thread only.
 */
export class ShadowControl implements Part {
  /** Counts of the version that decides. */
  readonly totals: ShadowTotals;
  readonly #options: ShadowControlOptions;
  readonly #log: Logger;
  readonly #counts: Record<CandidateOutcome, number> = { applied: 0, refused: 0, invalid: 0 };
  readonly #problems = new ReportOnce((problem) => this.#invalid(problem));
  #text: string | undefined;
  #configuration: LoadedConfiguration;
  #sinceMs = 0;
  #stopped: string | undefined;
  #watch: FileWatch | undefined;

  /** @throws RangeError when the core's tables cannot hold both configurations at once */
  constructor(options: ShadowControlOptions) {
    this.#options = options;
    this.totals = new ShadowTotals(options.core);
    this.#log = options.log.child({ part: 'candidate configuration' });
    this.#text = options.candidate.text;
    this.#configuration = options.candidate.configuration;
    this.#publish(options.candidate.configuration);
  }

  get state(): ShadowState {
    const { candidate, every } = this.#options;
    const { followed } = candidate;
    return { file: followed.file, every, sinceMs: this.#sinceMs, stopped: this.#stopped, counts: this.#counts };
  }

  start(): void {
    const { candidate, every } = this.#options;
    const { followed } = candidate;
    this.#log.info({ file: followed.file, every }, 'a candidate configuration decides in shadow, without effect');
    if (followed.watched) this.#watch = new FileWatch(followed.file, followed, () => this.#readFile());
  }

  /** Looks whether the candidate can still decide, after the running configuration has changed. */
  check(): void {
    const { running, programs } = this.#options;
    const refusals = candidateRefusals(running(), this.#configuration);
    if (refusals.length === 0) return;
    programs.clearShadow();
    this.#counts.refused++;
    this.#stopped = refusals.join('; ');
    this.#log.warn(`the candidate does not fit the new configuration and stops deciding: ${this.#stopped}`);
  }

  /** Reads the file now. */
  reload(): Promise<void> {
    return this.#readFile();
  }

  async stop(): Promise<void> {
    await this.#watch?.stop();
  }

  async #readFile(): Promise<void> {
    const { file } = this.#options.candidate.followed;
    try {
      const text = await readBoundedFile(file);
      this.#problems.over();
      if (text === this.#text) return;
      this.#text = text;
      this.#consider(text);
    } catch (error) {
      this.#problems.problem(error);
    }
  }

  #consider(text: string): void {
    const { candidate, running } = this.#options;
    const { file, load } = candidate.followed;
    const next = loadDocument(ConfigurationDocument.ofFile(text, file), load);
    const refusals = candidateRefusals(running(), next);
    if (refusals.length > 0) {
      this.#counts.refused++;
      this.#log.warn(`the new candidate cannot decide beside the running configuration: ${refusals.join('; ')}`);
      return;
    }
    this.#publish(next);
    this.#log.info('a new candidate configuration decides in shadow');
  }

  #publish(next: LoadedConfiguration): void {
    const { scheduling, adaptation } = next;
    this.#configuration = next;
    const { programs, pool } = this.#options;
    const placed = programs.place(scheduling);
    pool.configureShadow(placed);
    programs.shadow(placed, adaptation.mode === 'always');
    this.#counts.applied++;
    this.#stopped = undefined;
    this.totals.restart();
    this.#sinceMs = poolClockMs();
  }

  #invalid(problem: string): void {
    this.#counts.invalid++;
    this.#log.error(`${problem}; the candidate stays as it was`);
  }
}
