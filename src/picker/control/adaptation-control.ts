import { join } from 'node:path';
import { z } from 'zod';
import { Adapter, type AdapterReport } from '../../adaptation/adapter.js';
import type { Arm } from '../../adaptation/comparison.js';
import { variantOfDrive } from '../../adaptation/driven-variant.js';
import type { FitPoint } from '../../adaptation/fit-history.js';
import type { Transition } from '../../adaptation/guard.js';
import { type GuardNews, PeerGuards } from '../../adaptation/peer-guards.js';
import { believed, decodeState, encodeState } from '../../adaptation/saved-state.js';
import type { TierPricing } from '../../adaptation/tier-costs.js';
import type { AdaptationSettings } from '../../config/adaptation.js';
import type { SlotAssignment, SlotUpdate } from '../../contract/endpoint.js';
import { CostTable } from '../../core/coefficients.js';
import { DecisionLog } from '../../core/decision-log.js';
import { EndpointTable } from '../../core/endpoint-table.js';
import type { CoreInstance } from '../../core/memory.js';
import { PrefixIndex } from '../../core/prefix-index.js';
import { SampleReader } from '../../core/sample-reader.js';
import type { LearningUse } from '../../operations/health-report.js';
import type { Logger } from '../../operations/log.js';
import { errorMessage } from '../../runtime/error-message.js';
import { once } from '../../runtime/once.js';
import { PacedReport } from '../../runtime/paced-report.js';
import { STATE_BYTES_MAX } from '../../runtime/plain-file.js';
import { ReportOnce } from '../../runtime/report-once.js';
import { seededRandom } from '../../runtime/seeded-random.js';
import type { ProgramVariant } from '../../scheduling/program-variants.js';
import { rules } from '../../scheduling/rules.js';
import { StateFile } from './state-file.js';

export interface AdaptationControlOptions {
  /** The control thread's instance. */
  readonly core: CoreInstance;
  readonly settings: AdaptationSettings;
  /** Runs the profiles in this variant from the next decision on. */
  readonly run: (variant: ProgramVariant) => void;
  /** Configured weights of the scorers that a projection moves (ProgramPublisher.projected). */
  readonly projected: () => readonly number[];
  /** Folder of the state file where the settings name none; undefined = nothing is kept then. */
  readonly stateDir?: string | undefined;
  /** Slots of the live endpoints. */
  readonly slots: () => readonly number[];
  readonly seed: bigint;
  /** Clock of the training samples. */
  readonly now: () => number;
  readonly log: Logger;
  /** Prices of blocks below the GPU; undefined = no events tell of such blocks. */
  readonly tiers?: TierPricing | undefined;
  /** Name among the replicas of the pool; undefined = there are none. */
  readonly replica?: string | undefined;
}

/**
 * Interval between two readings of the sample rings. A ring holds many times the samples of one interval at any
 * decision rate.
 */
const TICK_MS = 250;
const SAVE_MS = 30_000;
/** Multiple of the own samples from which on a replica's coefficients are taken over. */
const ADOPTED_FACTOR = 4;
/** Interval between two reports of the guard without a change. */
const GUARD_TOLD_MS = 1_000;
/** Learned state and state of the guard as replicas exchange them. */
const toldState = once(() => {
  const number = z.number().nonnegative();
  const stop = z.strictObject({
    replica: z.string().min(1),
    number,
    reason: z.string().max(500),
    fallbacks: number,
  });
  const guard = z.strictObject({
    replica: z.string().min(1),
    state: z.enum(['shadow', 'canary', 'active', 'fallback']),
    arm: z.enum(['static', 'learned']),
    epoch: number,
    gap: z.strictObject({ mean: z.number(), halfWidth: z.number().positive() }),
    epochs: number,
    stop: stop.optional(),
    pauseMs: number,
  });
  return z.strictObject({
    samples: z.number().optional(),
    state: z.string().optional(),
    guard: guard.optional(),
  });
});
/** Name of the state file in a state folder. */
const FILE = 'learned.json';
/** Log line at the start, by mode. */
const STARTS: Readonly<Record<AdaptationSettings['mode'], string>> = {
  off: 'the configured weights decide, nothing is learned',
  shadow: 'the configured weights decide, costs are learned and only shown (GET /debug/adaptation)',
  auto: 'the configured weights decide until learned costs are found no worse (GET /debug/adaptation)',
  always: 'learned costs decide, without a guard (GET /debug/adaptation)',
};
/** Seed of the guard's own random sequence. */
const GUARD_SEED = 0x6775617264n;

/** The adaptation of a picker: gives the adapter its clock and carries out its orders. Control thread only. */
export class AdaptationControl {
  readonly #options: AdaptationControlOptions;
  readonly #log: Logger;
  readonly #table: EndpointTable;
  readonly #index: PrefixIndex;
  #settings: AdaptationSettings;
  #projected: readonly number[];
  #adapter: Adapter;
  /** Endpoints by slot. */
  readonly #live = new Map<number, SlotAssignment>();
  #timer: NodeJS.Timeout | undefined;
  #saveTimer: NodeJS.Timeout | undefined;
  #file: StateFile | undefined;
  /** Reason why the state file was not used at the start; undefined = it was, or there was none. */
  #unused: string | undefined;
  /** Samples that the state file holds already. */
  #savedSamples = 0;
  readonly #saveProblems = new ReportOnce((problem) =>
    this.#log.error({ file: this.#file?.path }, `cannot keep what was learned: ${problem}`),
  );

  readonly #peers: PeerGuards | undefined;
  #guardTold: { readonly epoch: number; readonly atMs: number } | undefined;
  readonly #hearProblems = new PacedReport<string>((problem, count) =>
    this.#log.warn({ count }, `the learned state of a replica is not used: ${problem}`),
  );

  constructor(options: AdaptationControlOptions) {
    this.#options = options;
    this.#log = options.log.child({ part: 'adaptation' });
    this.#table = new EndpointTable(options.core);
    this.#index = new PrefixIndex(options.core);
    this.#settings = options.settings;
    this.#projected = options.projected();
    this.#peers = options.replica === undefined ? undefined : new PeerGuards(options.replica);
    this.#adapter = this.#make(options.settings);
    this.#adapter.start(options.now());
    this.#file = fileOf(options.settings, options.stateDir);
  }

  /** Whether the last write of what was learned has failed; undefined = it is kept in no file. */
  get isUnsaved(): boolean | undefined {
    return this.#file === undefined ? undefined : this.#saveProblems.present !== undefined;
  }

  /** Whether the state file was there at the start and could not be used; undefined = what was learned is not kept. */
  get isUnused(): boolean | undefined {
    return this.#file === undefined ? undefined : this.#unused !== undefined;
  }

  /** What learned costs do now; undefined = adaptation is off. */
  get use(): LearningUse | undefined {
    const { mode, hardwareLabel } = this.#settings;
    if (mode === 'off') return undefined;
    const { state, why = null, classes } = this.#adapter.report();
    return { mode, state, why, fileUnused: this.#unused ?? null, classes: classes.length, hardwareLabel };
  }

  /** Reads what an earlier run has learned and starts reading training samples. */
  async start(): Promise<void> {
    await this.#restore();
    const { mode, drive } = this.#settings;
    this.#log.info({ mode, drive }, STARTS[mode]);
    this.#timer = setInterval(() => this.#adapter.tick(this.#options.now()), TICK_MS).unref();
    this.#saveTimer = setInterval(() => this.#save(), SAVE_MS).unref();
  }

  /** Resolves when the learned state has been written to its file. */
  async stop(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    clearInterval(this.#saveTimer);
    this.#timer = undefined;
    this.#adapter.tick(this.#options.now());
    await this.#save();
  }

  /** Changes the settings. The learned state stays while the settings of the model stay. */
  configure(settings: AdaptationSettings): void {
    const projected = this.#options.projected();
    const same = JSON.stringify([settings, projected]) === JSON.stringify([this.#settings, this.#projected]);
    if (same) return;
    this.#projected = projected;
    const learned = this.#adapter.model.save();
    const keeps = JSON.stringify(settings.model.prior) === JSON.stringify(this.#settings.model.prior);
    this.#settings = settings;
    this.#file = fileOf(settings, this.#options.stateDir);
    this.#unused = undefined;
    this.#savedSamples = 0;
    this.#adapter = this.#make(settings);
    if (keeps && settings.mode !== 'off') this.#adapter.model.restore(learned, 1);
    this.#meet();
    this.#adapter.start(this.#options.now());
    this.#log.info({ mode: settings.mode }, 'adaptation goes on with other settings');
  }

  /**
   * Follows the live endpoints. A new endpoint starts with the speed of others of its hardware; the state of an
   * endpoint that has left is dropped.
   */
  changeEndpoints({ set, removed }: SlotUpdate): void {
    let differs = removed.length > 0;
    for (const { slot } of removed) this.#live.delete(slot);
    for (const assignment of set) {
      const before = this.#live.get(assignment.slot);
      const same =
        before?.generation === assignment.generation && this.#hardware(before) === this.#hardware(assignment);
      differs ||= !same;
      this.#live.set(assignment.slot, assignment);
    }
    if (differs) this.#meet();
  }

  #meet(): void {
    if (this.#settings.mode === 'off') return;
    this.#adapter.model.meet(
      [...this.#live.values()].map((assignment) => ({
        slot: assignment.slot,
        generation: assignment.generation,
        hardware: this.#hardware(assignment),
      })),
    );
  }

  #hardware({ endpoint }: SlotAssignment): string {
    return endpoint.labels[this.#settings.hardwareLabel] ?? '';
  }

  report(): AdapterReport {
    return this.#adapter.report();
  }

  /** Predicted and observed times to first output of the last minutes; the oldest first. */
  get times(): readonly FitPoint[] {
    return this.#adapter.model.history.points(this.#options.now());
  }

  /** Arm that made the decisions with this tag; undefined = unknown, or adaptation is off. */
  armOf(tag: number): Arm | undefined {
    return this.#settings.mode === 'off' ? undefined : this.#adapter.armOf(tag);
  }

  /**
   * State for other replicas; undefined = unchanged.
   * @param withLearned whether the learned state is told too, not the state of the guard alone
   */
  tell(withLearned = true): Uint8Array | undefined {
    const guard = this.#guardNews();
    const learned = withLearned ? this.#learnedNews() : undefined;
    if (guard === undefined && learned === undefined) return undefined;
    return Buffer.from(JSON.stringify({ ...learned, guard }));
  }

  #learnedNews(): { readonly samples: number; readonly state: string } | undefined {
    const { learned } = this.#adapter.report().samples;
    if (this.#settings.mode === 'off' || learned === 0) return undefined;
    return { samples: learned, state: encodeState(this.#adapter.model.save(), this.#settings.model, Date.now()) };
  }

  /**
   * State of the guard, at once with each of its epochs and once a second. Only guards of `mode: auto` decide together.
   */
  #guardNews(): GuardNews | undefined {
    if (this.#peers === undefined || this.#settings.mode !== 'auto') return undefined;
    const { epoch } = this.#adapter;
    const now = this.#options.now();
    const told = this.#guardTold;
    if (told?.epoch === epoch && now - told.atMs < GUARD_TOLD_MS) return undefined;
    this.#guardTold = { epoch, atMs: now };
    return this.#adapter.news;
  }

  /**
   * Notes the state of another replica's guard. Its learned state is taken over if it has ADOPTED_FACTOR times as many
   * samples.
   */
  hear(bytes: Uint8Array): void {
    if (this.#settings.mode === 'off') return;
    try {
      const { samples, state, guard } = toldState().parse(JSON.parse(Buffer.from(bytes).toString()));
      if (guard !== undefined) this.#peers?.hear({ ...guard, stop: guard.stop }, this.#options.now());
      if (samples !== undefined && state !== undefined) this.#takeOver(samples, state);
    } catch (error) {
      this.#hearProblems.note(errorMessage(error));
    }
  }

  /** Learned state for later processes; undefined = nothing has been learned. */
  kept(): Uint8Array | undefined {
    const news = this.#learnedNews();
    return news === undefined ? undefined : Buffer.from(JSON.stringify(news));
  }

  /**
   * Takes over the learned state of processes that have ended, with a weight that falls with its age. Without effect
   * when something has been learned here.
   * @throws when it cannot be used
   */
  restoreLearned(bytes: Uint8Array): void {
    if (this.#settings.mode === 'off' || this.#adapter.report().samples.learned > 0) return;
    const { samples, state = '' } = toldState().parse(JSON.parse(Buffer.from(bytes).toString()));
    const saved = decodeState(state, this.#settings.model);
    const share = believed(saved, Date.now());
    if (!this.#adapter.model.restore(saved.model, share)) throw new Error('its numbers do not fit together');
    this.#log.info({ samples, believed: share }, 'goes on from what replicas have learned before');
  }

  #takeOver(samples: number, state: string): void {
    const { learned } = this.#adapter.report().samples;
    if (samples < ADOPTED_FACTOR * (learned + 1)) return;
    const { model } = decodeState(state, this.#settings.model);
    if (!this.#adapter.model.restore(model, 1)) throw new Error('its numbers do not fit together');
    this.#log.info({ samples, own: learned }, 'takes over the learned state of a replica');
  }

  async #restore(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    try {
      const text = await file.read();
      if (text === undefined) return;
      const saved = decodeState(text, this.#settings.model);
      const share = believed(saved, Date.now());
      if (!this.#adapter.model.restore(saved.model, share)) throw new Error('its numbers do not fit together');
      this.#log.info({ file: file.path, believed: share }, 'goes on from what was learned before');
    } catch (error) {
      this.#unused = errorMessage(error);
      this.#log.warn({ file: file.path }, `learns from the beginning, the state file is not used: ${this.#unused}`);
    }
  }

  async #save(): Promise<void> {
    const file = this.#file;
    const { learned } = this.#adapter.report().samples;
    if (file === undefined || learned === this.#savedSamples) return;
    try {
      await file.write(encodeState(this.#adapter.model.save(), this.#settings.model, Date.now()));
      this.#savedSamples = learned;
      this.#saveProblems.over();
    } catch (error) {
      this.#saveProblems.problem(error);
    }
  }

  #make(settings: AdaptationSettings): Adapter {
    const { core, run, seed, tiers } = this.#options;
    const off = settings.mode === 'off';
    const decisions = new DecisionLog(core);
    return new Adapter({
      settings,
      samples: off ? { drain: () => 0, lost: 0 } : new SampleReader(core),
      coefficients: new CostTable(core),
      computed: () => decisions.computedTokens,
      projected: this.#options.projected(),
      rules: rules.map(({ name }) => name),
      drive: (drive) => run(off ? { kind: 'configured', tag: 0 } : variantOfDrive(drive)),
      overloaded: () => this.#overloaded(),
      changed: (transition) => this.#tell(transition),
      random: seededRandom(seed + GUARD_SEED),
      peers: this.#peers,
      tiers: tiers && { ...tiers, set: (prices) => this.#index.setPrices(prices) },
    });
  }

  #overloaded(): boolean {
    const slots = this.#options.slots();
    return slots.length > 0 && slots.every((slot) => (this.#table.read(slot).waiting ?? 0) > 0);
  }

  #tell({ from, to, reason }: Transition): void {
    const { fit, arms, gap } = this.#adapter.report();
    const details = { from, to, labels: fit.samples, correlation: fit.correlation, gap, arms };
    if (to === 'fallback') this.#log.warn(details, `the configured weights decide again: ${reason}`);
    else if (to === 'canary')
      this.#log.info(details, `learned costs are tried in turn with the configured weights: ${reason}`);
    else this.#log.info(details, `learned costs decide nearly always: ${reason}`);
  }
}

function fileOf({ mode, stateFile }: AdaptationSettings, folder: string | undefined): StateFile | undefined {
  const path = stateFile ?? (folder === undefined ? undefined : join(folder, FILE));
  return mode === 'off' || path === undefined ? undefined : new StateFile(path, STATE_BYTES_MAX);
}
