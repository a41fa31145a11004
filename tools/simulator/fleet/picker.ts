import { variantOfDrive } from '../../../src/adaptation/driven-variant.js';
import type { LiveEndpoint } from '../../../src/adaptation/endpoint-speeds.js';
import type { AdaptationSettings } from '../../../src/config/adaptation.js';
import type { Endpoint } from '../../../src/contract/endpoint.js';
import { CostTable } from '../../../src/core/coefficients.js';
import { CORE } from '../../../src/core/core-names.js';
import { Decider, type Decision } from '../../../src/core/decider.js';
import { EndpointTable } from '../../../src/core/endpoint-table.js';
import {
  attachCore,
  type CoreInstance,
  createPoolMemory,
  defaultPoolSizes,
  loadCoreModule,
} from '../../../src/core/memory.js';
import type { Operation } from '../../../src/core/operations.js';
import { PrefixIndex } from '../../../src/core/prefix-index.js';
import { ProgramTable } from '../../../src/core/programs.js';
import type { Measures } from '../../../src/core/training-sample.js';
import { writeLabels } from '../../../src/scheduling/label-columns.js';
import { projectedScorers } from '../../../src/scheduling/learned-profile.js';
import { estimatedOutput } from '../../../src/scheduling/output-estimate.js';
import type { CompiledScheduling } from '../../../src/scheduling/program.js';
import { type ProgramVariant, programOf } from '../../../src/scheduling/program-variants.js';
import { rules } from '../../../src/scheduling/rules.js';
import type { Ablation } from './ablation.js';
import type { LoadSample } from './endpoint.js';
import type { EndpointSettings, KvEventSettings } from './fleet-settings.js';
import { Learner } from './learner.js';
import { RandomStream } from './random-stream.js';
import { trueCosts } from './true-costs.js';

/** Charge of one request in one picker's ledger. */
export interface SimulatedCharge {
  readonly slot: number;
  readonly ticket: number;
  readonly generation: number;
  /** Prompt tokens that the picker believed to be cached there. */
  readonly matchedTokens: number;
  readonly uncachedTokens: number;
}

/** Program of a picker: the part of a loaded configuration that takes part in decisions. */
export interface PickerConfiguration {
  readonly scheduling: CompiledScheduling;
  readonly adaptation: AdaptationSettings;
  /**
   * Marginal cost is reckoned with the true costs of the engines; the prefix index is told of sent prompts and of
   * events.
   */
  readonly omniscient?: boolean | undefined;
  /** Differences from the real picker. */
  readonly ablation?: Ablation | undefined;
}

/** A request as a picker sees it. */
export interface PickerRequest {
  readonly promptTokens: number;
  readonly chain: Int32Array;
  /** Stands for the values of all headers that the profile looks at. */
  readonly session: number;
}

export type PickOutcome = SimulatedCharge | 'rejected' | 'unavailable';

/** Threads of the pool memory: one that writes signals, one that decides. */
const WRITER = 0;
const DECIDER = 1;
const PROFILE = 0;
/** A profile that takes any endpoint of the subset: the one that a sister replica has chosen, or one by lot. */
const MIRROR = 1;
const FIRST_GENERATION = 1;

/**
 * One picker replica: the real core over a memory of its own, with the compiled profile of a configuration, in
 * simulated time. What the picker's threads do around it (scrapes, responses) is done by the simulation.
 */
export class SimulatedPicker {
  readonly #scheduling: CompiledScheduling;
  readonly #endpoints: readonly EndpointSettings[];
  readonly #core: CoreInstance;
  readonly #table: EndpointTable;
  readonly #decider: Decider;
  readonly #index: PrefixIndex;
  readonly #blockTokens: number;
  /** Blocks of the workload in one block of the picker. */
  readonly #group: number;
  readonly #hashes: BigUint64Array;
  readonly #hashWords: Uint32Array;
  readonly #programs: ProgramTable;
  readonly #inserts: boolean;
  /** Engines say how large their blocks are, and matches count whole ones only. */
  readonly #wholeBlocks: boolean;
  readonly #ablation: Ablation | undefined;
  readonly #random: RandomStream;
  readonly #live = new Set<number>();
  readonly #hardwareLabel: string;
  /** Undefined when the configuration learns nothing. */
  readonly learner: Learner | undefined;

  /**
   * @param blockTokens tokens of the workload's blocks
   * @param outputTokens mean of the workload, for who knows the true costs
   * @throws Error when the configuration needs something that the simulation does not have
   */
  constructor(
    { scheduling, adaptation, omniscient, ablation }: PickerConfiguration,
    endpoints: readonly EndpointSettings[],
    blockTokens: number,
    outputTokens: number,
    events: KvEventSettings | undefined,
    seed: number,
  ) {
    refuseUnsimulated(scheduling, blockTokens, events !== undefined);
    this.#scheduling = scheduling;
    this.#endpoints = endpoints;
    this.#hardwareLabel = adaptation.hardwareLabel;
    this.#blockTokens = scheduling.prefix?.blockTokens ?? blockTokens;
    this.#group = this.#blockTokens / blockTokens;
    const held = endpoints.reduce(
      (sum, { limits }) => sum + (limits.blocks * limits.blockTokens) / this.#blockTokens,
      0,
    );
    const memory = createPoolMemory(
      {
        ...defaultPoolSizes,
        endpoints: Math.max(64, endpoints.length),
        indexBlocks: Math.max(65_536, Math.ceil(2 * held)),
        threads: 2,
        scans: 4,
        telemetryBytes: 65_536,
      },
      { hashSeed: 0n, module: coreModule() },
    );
    const control = attachCore(memory, WRITER);
    this.#core = attachCore(memory, DECIDER);
    this.#table = new EndpointTable(control);
    this.#decider = new Decider(this.#core, BigInt(seed));
    this.#index = new PrefixIndex(this.#core);
    this.#hashes = new BigUint64Array(this.#index.longest);
    this.#hashWords = new Uint32Array(this.#hashes.buffer);
    this.#programs = new ProgramTable(control);
    this.#inserts = scheduling.prefix !== undefined && (events === undefined || omniscient === true);
    this.#wholeBlocks = scheduling.prefix?.autoTune === true;
    this.#ablation = ablation;
    this.#random = new RandomStream(seed, 'exploration');
    this.#publish(scheduling.profiles[0]!.operations, 0);
    this.#programs.publish(MIRROR, [{ code: 'OP_PICK_RANDOM', weight: 1, parameters: [1] }], {
      inserts: this.#inserts,
    });
    this.#open();
    if (omniscient === true) this.#knowCosts(control, adaptation, outputTokens);
    if (adaptation.mode === 'off') return;
    const { operations } = scheduling.profiles[0]!;
    this.learner = new Learner({
      core: control,
      settings: adaptation,
      random: new RandomStream(seed, 'learner'),
      rules: rules.map(({ name }) => name),
      projected: projectedScorers(operations).map((i) => operations[i]!.weight),
      ablation,
      drive: (drive) => this.#run(variantOfDrive(drive)),
      overloaded: () => this.#overloaded(),
    });
  }

  /** As the picker's control thread follows the adapter. */
  #run(variant: ProgramVariant): void {
    const { operations } = this.#scheduling.profiles[0]!;
    this.#publish(programOf(operations, variant, true), variant.tag);
  }

  #publish(operations: readonly Operation[], tag: number): void {
    this.#programs.publish(PROFILE, operations, { inserts: this.#inserts, wholeBlocks: this.#wholeBlocks, tag });
  }

  #knowCosts(control: CoreInstance, { model }: AdaptationSettings, outputTokens: number): void {
    const { coefficients, speeds } = trueCosts(this.#endpoints, model, outputTokens);
    const table = new CostTable(control);
    table.write(coefficients);
    for (const [slot, speed] of speeds.entries()) table.writeEndpoint(slot, FIRST_GENERATION, speed, 1, undefined);
  }

  /** Requests wait on every live endpoint. */
  #overloaded(): boolean {
    const live = [...this.#endpoints.keys()]
      .map((slot) => this.#table.read(slot))
      .filter(({ state }) => state === CORE.STATE_LIVE);
    return live.length > 0 && live.every(({ waiting }) => (waiting ?? 0) > 0);
  }

  #open(): void {
    const { masks, labels, prefix } = this.#scheduling;
    for (const [slot, { limits }] of this.#endpoints.entries()) {
      this.#table.open(slot, FIRST_GENERATION);
      if (prefix === undefined) continue;
      const own = Math.floor((limits.blocks * limits.blockTokens) / prefix.blockTokens);
      this.#table.setCapacity(slot, prefix.autoTune ? own : prefix.capacityBlocks);
    }
    for (const [mask, { accepts }] of masks.entries()) {
      this.#table.setMask(
        mask,
        [...this.#endpoints.keys()].filter((slot) => accepts(this.#endpoints[slot]!.labels)),
      );
    }
    writeLabels(
      this.#table,
      labels,
      [...this.#endpoints.entries()].map(([slot, { labels: own }]) => ({
        slot,
        generation: FIRST_GENERATION,
        endpoint: endpointOf(slot, own),
      })),
    );
  }

  setState(slot: number, state: 'live' | 'draining'): void {
    this.#table.setState(slot, state);
    if (state === 'live') this.#live.add(slot);
    else this.#live.delete(slot);
    this.learner?.meet([...this.#live].map((live) => this.#met(live)));
  }

  #met(slot: number): LiveEndpoint {
    const hardware = this.#endpoints[slot]!.labels[this.#hardwareLabel] ?? '';
    return { slot, generation: FIRST_GENERATION, hardware };
  }

  publish(slot: number, sample: LoadSample, nowMs: number): void {
    const { blockTokens, blocks } = this.#endpoints[slot]!.limits;
    this.#table.publish(
      slot,
      {
        waiting: sample.waiting,
        running: sample.running,
        kvUsage: this.#ablation?.hidesKvUsage === true ? 0 : sample.kvUsage,
        blockTokens,
        blockCount: blocks,
      },
      nowMs,
    );
  }

  markStale(slot: number): void {
    this.#table.markStale(slot);
  }

  pick(request: PickerRequest, nowMs: number): PickOutcome {
    const { hidesPrefillRate, explores } = this.#ablation ?? {};
    if (hidesPrefillRate === true) this.#table.forgetPrefillRates();
    const anywhere = explores !== undefined && this.#random.uniform() < explores;
    const decision = this.#decide(anywhere ? MIRROR : PROFILE, request, nowMs, undefined, request.promptTokens);
    if (decision.status === 'decided') return this.#charge(decision);
    return decision.status === 'filtered' ? 'rejected' : 'unavailable';
  }

  /** Charges what a sister replica decided. `blocks`: the prefix index is told of it too. */
  mirror(
    request: PickerRequest,
    { slot, uncachedTokens }: SimulatedCharge,
    blocks: boolean,
    nowMs: number,
  ): SimulatedCharge {
    const seen = blocks ? request : { ...request, chain: NO_BLOCKS };
    const tokens = blocks ? request.promptTokens : uncachedTokens;
    return this.#charge(this.#decide(MIRROR, seen, nowMs, [slot], tokens));
  }

  #decide(
    profile: number,
    request: PickerRequest,
    nowMs: number,
    subset: readonly number[] | undefined,
    tokens: number,
  ) {
    const { prefix, estimateOutput, requestKeys } = this.#scheduling;
    const blocks = prefix === undefined ? 0 : this.#writePrompt(request, prefix.maxBlocks);
    return this.#decider.decide({
      profile,
      blocks,
      tail: false,
      blockTokens: this.#blockTokens,
      promptTokens: tokens,
      outputTokens:
        estimateOutput === undefined
          ? 0
          : estimatedOutput(estimateOutput, tokens, { outputClass: 'unknown', maxOutputTokens: undefined }),
      priority: 0,
      adapter: '',
      nowMs,
      subset,
      charged: true,
      explained: false,
      keys: requestKeys.length === 0 ? undefined : requestKeys.map(() => String(request.session)),
    });
  }

  #charge(decision: Decision): SimulatedCharge {
    return {
      slot: decision.slots[0] ?? -1,
      ticket: decision.ticket,
      generation: decision.ticketGeneration,
      matchedTokens: decision.matchedBlocks * this.#blockTokens,
      uncachedTokens: decision.uncachedTokens,
    };
  }

  /** @returns blocks of the prompt whose hashes were written */
  #writePrompt({ promptTokens, chain }: PickerRequest, most: number): number {
    const whole = Math.floor(promptTokens / this.#blockTokens);
    const blocks = Math.min(whole, Math.floor(chain.length / this.#group), most, this.#hashes.length);
    for (let i = 0; i < blocks; i++) this.#hash(i, chain[(i + 1) * this.#group - 1]!);
    this.#index.writeHashes(this.#hashes.subarray(0, blocks));
    return blocks;
  }

  /** A hash that stands for a content in every replica: two rounds of the mixer of MurmurHash3 (Austin Appleby). */
  #hash(at: number, content: number): void {
    const low = mixed(content + 0x9e3779b9);
    this.#hashWords[2 * at] = low;
    this.#hashWords[2 * at + 1] = mixed(low ^ 0x85ebca6b) | 1;
  }

  firstToken({ ticket, generation }: SimulatedCharge, nowMs: number): void {
    // With output counted, the estimate stays until the end, as in the picker.
    const keep = this.#scheduling.estimateOutput !== undefined;
    if (ticket !== 0) this.#decider.prefillDone(ticket, generation, nowMs, keep);
  }

  /** Writes the training sample of a request; call it before its charge is released. */
  label({ ticket, generation }: SimulatedCharge, measures: Measures): void {
    if (ticket !== 0 && this.learner !== undefined) this.#decider.label(ticket, generation, measures);
  }

  grow({ ticket, generation }: SimulatedCharge, tokens: number): void {
    if (ticket !== 0) this.#decider.grow(ticket, generation, Math.floor(tokens / this.#blockTokens), tokens);
  }

  release({ ticket, generation }: SimulatedCharge): void {
    if (ticket !== 0) this.#decider.release(ticket, generation);
  }

  outcome({ slot }: SimulatedCharge, failed: boolean, nowMs: number): void {
    this.#decider.noteOutcome(slot, FIRST_GENERATION, failed ? 'failed' : 'answered', nowMs);
  }

  /** An engine stored blocks behind `parent`, -1 = at the beginning of a prompt. */
  stored(slot: number, parent: number, contents: readonly number[]): void {
    let before = parent;
    for (let from = 0; from < contents.length; from += this.#hashes.length - 1) {
      const piece = contents.slice(from, from + this.#hashes.length - 1);
      this.#hash(0, before);
      const behind = before < 0 ? undefined : this.#hashes[0]!;
      for (const [i, content] of piece.entries()) this.#hash(i, content);
      this.#index.writeHashes(this.#hashes.subarray(0, piece.length));
      this.#index.store(slot, behind, piece.length);
      before = piece.at(-1)!;
    }
  }

  removed(slot: number, contents: readonly number[]): void {
    for (let from = 0; from < contents.length; from += this.#hashes.length) {
      const piece = contents.slice(from, from + this.#hashes.length);
      for (const [i, content] of piece.entries()) this.#hash(i, content);
      this.#index.writeHashes(this.#hashes.subarray(0, piece.length));
      this.#index.remove(slot, piece.length, 'evicted-told');
    }
  }

  cleared(slot: number): void {
    this.#index.removeEndpoint(slot);
  }

  /** Requests in flight by slot as the ledger counts them. */
  inflight(slot: number): number {
    return this.#table.read(slot).inflight;
  }
}

/** A simulated endpoint as discovery would tell of it. */
function endpointOf(slot: number, labels: EndpointSettings['labels']): Endpoint {
  return { id: `sim/${slot}`, name: `${slot}`, namespace: 'sim', address: `10.0.0.${slot}`, port: 8000, labels };
}

let compiled: WebAssembly.Module | undefined;

/** One compiled module serves all pickers of the process. */
function coreModule(): WebAssembly.Module {
  compiled ??= loadCoreModule();
  return compiled;
}

const NO_BLOCKS = new Int32Array(0);

function mixed(value: number): number {
  let mix = value | 0;
  mix = Math.imul(mix ^ (mix >>> 16), 0x85ebca6b);
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35);
  return (mix ^ (mix >>> 16)) >>> 0;
}

/**
 * Refuses what the simulation does not have.
 * @param blockTokens tokens of the workload's blocks
 * @param events the engines tell KV events
 * @throws Error one line that names it
 */
export function refuseUnsimulated(scheduling: CompiledScheduling, blockTokens: number, events: boolean): void {
  const { profiles, host, attributes } = scheduling;
  if (profiles.length !== 1) {
    throw new Error(`the configuration has ${profiles.length} profiles: the fleet simulation runs exactly one`);
  }
  const hosted = host.find(({ filterColumn, scoreColumn }) => filterColumn !== undefined || scoreColumn !== undefined);
  if (hosted !== undefined) {
    throw new Error(
      `the configuration uses "${hosted.name}", which runs on the picker's threads: it cannot be simulated`,
    );
  }
  if (attributes.length > 0) {
    throw new Error(
      `the configuration reads the attribute "${attributes[0]}" of endpoints, which simulated engines do not have`,
    );
  }
  checkBlocks(scheduling.prefix?.blockTokens ?? blockTokens, blockTokens, events);
}

function checkBlocks(own: number, workload: number, events: boolean): void {
  if (own % workload !== 0) {
    throw new Error(
      `the picker's blocks of ${own} tokens are no multiple of the workload's of ${workload}: change blockTokens`,
    );
  }
  if (events && own !== workload) {
    throw new Error(`KV events need equal blocks: the picker has ${own} tokens in one, the engines ${workload}`);
  }
}
