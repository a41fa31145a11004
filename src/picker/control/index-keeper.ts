import { join } from 'node:path';
import type { SlotAssignment } from '../../contract/endpoint.js';
import type { ExportedSegment } from '../../core/index-export.js';
import { IndexLog } from '../../core/index-log.js';
import type { CoreInstance } from '../../core/memory.js';
import type { Logger } from '../../operations/log.js';
import { endpointKey } from '../../replication/endpoint-key.js';
import { atPositions, exportIndex, importSegments } from '../../replication/index-transfer.js';
import {
  checkKeptIndex,
  decodeKeptIndex,
  encodeKeptIndex,
  type IndexTerms,
  type KeptIndex,
  type KeptIndexBounds,
  keptIndexBounds,
} from '../../replication/kept-index.js';
import { errorMessage } from '../../runtime/error-message.js';
import { ReportOnce } from '../../runtime/report-once.js';
import type { Part } from '../part.js';
import type { PickerOptions } from '../picker-options.js';
import { seedText } from './hash-seed.js';
import { StateFile } from './state-file.js';

const FILE = 'prefix-index.bin';
const SAVE_MS = 60_000;
/** Age from which on the caches of busy engines hold other prompts. */
const AGE_MS_MAX = 1_800_000;
/** Time for which a kept index waits for endpoints that discovery has not found yet. */
const AWAITED_MS = 60_000;
/** Bound on the time for which a start waits until the kept index is entered. The rest is entered meanwhile. */
const START_MS_MAX = 5_000;

export interface IndexKeeperOptions {
  readonly folder: string;
  readonly core: CoreInstance;
  readonly terms: IndexTerms;
  /** Endpoints of the pool, with or without requests. */
  readonly assignments: () => readonly SlotAssignment[];
  readonly log: Logger;
}

/**
 * Keeps the prefix index in a file, so that a restarted picker knows what the engines hold. Endpoints with another
 * engine by now (address or incarnation) are left out.
 */
export class IndexKeeper implements Part {
  readonly #options: IndexKeeperOptions;
  readonly #log: Logger;
  readonly #file: StateFile;
  readonly #problems = new ReportOnce((problem) =>
    this.#log.error({ file: this.#file.path }, `cannot keep the prefix index: ${problem}`),
  );
  #timer: NodeJS.Timeout | undefined;
  #kept: KeptIndex | undefined;
  #isUnused = false;
  readonly #restored = new Set<bigint>();
  #saving: Promise<void> | undefined;
  /** Imports run one after another. */
  #importing: Promise<void> = Promise.resolve();
  /** Imports that run or wait: the file has more than the index until they have ended. */
  #imports = 0;
  readonly #bounds: KeptIndexBounds;

  constructor(options: IndexKeeperOptions) {
    this.#options = options;
    this.#log = options.log.child({ part: 'state' });
    this.#bounds = keptIndexBounds(options.core.sizes.indexBlocks);
    this.#file = new StateFile(join(options.folder, FILE), this.#bounds.bytes);
  }

  /** Whether the last write has failed. */
  get isUnsaved(): boolean {
    return this.#problems.present !== undefined;
  }

  /** Whether the file was there at the start and could not be used. */
  get isUnused(): boolean {
    return this.#isUnused;
  }

  /** Resolves when the kept index is entered, as far as its endpoints are known, or after seconds. */
  async start(): Promise<void> {
    this.#kept = await this.#read();
    if (this.#kept !== undefined) setTimeout(() => this.#forget(), AWAITED_MS).unref();
    const { promise: patience, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, START_MS_MAX);
    await Promise.race([this.endpointsChanged(), patience]);
    clearTimeout(timer);
    this.#timer = setInterval(() => this.save(), SAVE_MS).unref();
  }

  /** Writes the last state. */
  async stop(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.save();
  }

  async #read(): Promise<KeptIndex | undefined> {
    try {
      const bytes = await this.#file.readBytes();
      if (bytes === undefined) return undefined;
      const kept = await decodeKeptIndex(bytes, this.#options.terms, this.#bounds);
      const ageMs = Date.now() - kept.savedAtMs;
      if (!(ageMs <= AGE_MS_MAX)) throw new Error(`it is ${Math.round(ageMs / 60_000)} minutes old`);
      return kept;
    } catch (error) {
      this.#isUnused = true;
      this.#log.warn({ file: this.#file.path }, `starts with an empty prefix index: ${errorMessage(error)}`);
      return undefined;
    }
  }

  #forget(): void {
    this.#kept = undefined;
    this.#restored.clear();
  }

  /** Enters the kept blocks of endpoints that were not known before. */
  endpointsChanged(): Promise<void> {
    this.#imports++;
    this.#importing = this.#importing
      .then(() => this.#enter())
      .finally(() => {
        this.#imports--;
      });
    return this.#importing;
  }

  async #enter(): Promise<void> {
    const kept = this.#kept;
    if (kept === undefined) return;
    const slots = this.#claimSlots(kept);
    if (slots.size === 0) return;
    const blocks = await this.#import(kept, slots);
    if (blocks === undefined) return;
    const details = { endpoints: slots.size, of: kept.endpoints.length, blocks, savedAtMs: kept.savedAtMs };
    this.#log.info(details, 'goes on with the prefix index of an earlier run');
  }

  /** @returns pairs of block and endpoint that were entered; undefined = none can be, and the index is forgotten */
  async #import({ segments }: KeptIndex, slots: ReadonlyMap<number, number>): Promise<number | undefined> {
    try {
      return await importSegments(new IndexLog(this.#options.core), segments, (endpoint) => slots.get(endpoint));
    } catch (error) {
      this.#log.warn({ file: this.#file.path }, `goes on without the kept prefix index: ${errorMessage(error)}`);
      this.#forget();
      return undefined;
    }
  }

  /**
   * Slots, by position in the kept list, of endpoints of the pool that have not been restored; notes them as restored.
   */
  #claimSlots({ endpoints }: KeptIndex): Map<number, number> {
    const positions = new Map(endpoints.map((key, position) => [key, position]));
    const slots = new Map<number, number>();
    for (const { slot, endpoint } of this.#options.assignments()) {
      const key = endpointKey(endpoint);
      const position = positions.get(key);
      if (position === undefined || this.#restored.has(key)) continue;
      this.#restored.add(key);
      slots.set(position, slot);
    }
    return slots;
  }

  /** Resolves when the index is in the file, or when that has failed and was reported. */
  save(): Promise<void> {
    if (this.#imports > 0) return Promise.resolve();
    this.#saving ??= this.#save().finally(() => {
      this.#saving = undefined;
    });
    return this.#saving;
  }

  async #save(): Promise<void> {
    const { core, terms } = this.#options;
    try {
      const assignments = this.#options.assignments();
      const positions = new Map(assignments.map(({ slot }, position) => [slot, position]));
      const segments: ExportedSegment[] = [];
      await exportIndex(core, (piece) => void segments.push(...piece.map((each) => atPositions(each, positions))));
      checkKeptIndex({ segments }, this.#bounds);
      const endpoints = assignments.map(({ endpoint }) => endpointKey(endpoint));
      await this.#file.write(encodeKeptIndex({ ...terms, savedAtMs: Date.now(), endpoints, segments }));
      this.#problems.over();
    } catch (error) {
      this.#problems.problem(error);
    }
  }
}

/** The keeper of a pool. An index that engines report is not kept: their events during the restart would be missing. */
export function createIndexKeeper(
  { stateDir: folder, configuration, log }: Pick<PickerOptions, 'stateDir' | 'configuration' | 'log'>,
  { hashSeed, ...pool }: Pick<IndexKeeperOptions, 'core' | 'assignments'> & { readonly hashSeed: bigint },
): IndexKeeper | undefined {
  const { prefix } = configuration.scheduling;
  if (folder === undefined || prefix === undefined) return undefined;
  if ((prefix.knownBy ?? 'decisions') !== 'decisions') return undefined;
  const terms = { blockTokens: prefix.blockTokens, seed: seedText(hashSeed) };
  return new IndexKeeper({ folder, terms, log, ...pool });
}
