import type { LoadedConfiguration } from '../../src/config/load.js';
import { CORE } from '../../src/core/core-names.js';
import { Decider } from '../../src/core/decider.js';
import { EndpointTable } from '../../src/core/endpoint-table.js';
import { attachCore, type CoreInstance, createPoolMemory, defaultPoolSizes } from '../../src/core/memory.js';
import { HOST_STATE, PREDICTED_STATE, stateCells } from '../../src/core/recorded-state.js';
import type { RecordedDecision, Recording } from '../../src/operations/recording/recording-reader.js';
import { ProgramPublisher } from '../../src/picker/control/program-publisher.js';
import { writeLabels } from '../../src/scheduling/label-columns.js';
import type { CompiledScheduling, ProgramOperation } from '../../src/scheduling/program.js';

/** A decision that has been played again. */
export interface PlayedDecision {
  /** Slot that the recorded configuration picks again; undefined = none. */
  readonly again: number | undefined;
  /** Slot that the other configuration picks; undefined = none. */
  readonly other: number | undefined;
  /** Predicted cost of a pick, in targets, and blocks of the prompt that the endpoint held. */
  readonly costOf: (slot: number) => number;
  readonly matchedOf: (slot: number) => number;
}

/** Column of the costs behind the state (assembly/scheduling/shadow.ts). */
const COSTS_COLUMN = CORE.STATE_COLUMNS + 3;
const PLAYER = 1;

/**
 * Memory in which recorded decisions are made again by the production core: the recorded configuration is the running
 * one, the other one decides in shadow.
 */
export class ReplayPool {
  readonly #core: CoreInstance;
  readonly #states = new Map<number, Uint32Array>();
  readonly #slots: number;
  readonly #request: number;
  readonly #explain: number;
  /** Host column for the scores of LoRA adapters, which are recorded as such; undefined = no profile has them. */
  readonly #adapterColumn: number | undefined;

  /** @throws when no host column is left for the scores of LoRA adapters */
  constructor({ header, endpoints }: Recording, recorded: LoadedConfiguration, other: LoadedConfiguration) {
    this.#slots = header.slots;
    const sizes = { endpoints: header.slots, indexBlocks: 1024, threads: 2, scans: 4, telemetryBytes: 65_536 };
    const memory = createPoolMemory({ ...defaultPoolSizes, ...sizes }, { hashSeed: 0n });
    const control = attachCore(memory, 0);
    const table = new EndpointTable(control);
    const programs = new ProgramPublisher(control);
    const assignments = [...endpoints.values()];
    this.#adapterColumn = adapterColumnOf([recorded.scheduling, other.scheduling]);
    const place = (scheduling: CompiledScheduling) => {
      const placed = programs.place(withRecorded(scheduling, this.#adapterColumn));
      for (const [mask, { accepts }] of placed.masks.entries()) {
        const slots = assignments.filter(({ endpoint }) => accepts(endpoint.labels)).map(({ slot }) => slot);
        table.setMask(placed.firstMask + mask, slots);
      }
      return placed;
    };
    programs.publish(place(recorded.scheduling));
    programs.shadow(place(other.scheduling), other.adaptation.mode === 'always');
    writeLabels(table, recorded.scheduling.labels, assignments);
    this.#core = attachCore(memory, PLAYER);
    new Decider(this.#core, 0n).shadowEvery(1);
    this.#request = this.#core.call.requestAddress() >>> 0;
    this.#explain = this.#core.call.explainAddress() >>> 0;
  }

  /** Makes a decision again. Decisions of a thread must be played in their order. */
  play(decision: RecordedDecision): PlayedDecision {
    const state = this.#stateOf(decision);
    this.#writeState(state);
    this.#writeRequest(decision, state);
    const { u32, f32, call } = this.#core;
    const status = call.decide();
    const picks = u32[(this.#request + CORE.ANSWER_COUNT) >>> 2]!;
    const shadow = u32[(this.#request + CORE.ANSWER_SHADOW) >>> 2]!;
    const first = u32[(this.#request + CORE.ANSWER_PICKS) >>> 2]!;
    const costs = (this.#explain >>> 2) + COSTS_COLUMN * this.#slots;
    return {
      again: status === CORE.DECIDED && picks > 0 ? first : undefined,
      other: shadow === 0 || shadow === 0xffff_ffff ? undefined : shadow - 1,
      costOf: (slot) => f32[costs + slot]!,
      matchedOf: (slot) => state[CORE.STATE_MATCH * this.#slots + slot]!,
    };
  }

  #stateOf({ thread, changes }: RecordedDecision): Uint32Array {
    let state = this.#states.get(thread);
    if (state === undefined) {
      state = new Uint32Array(stateCells(this.#slots));
      this.#states.set(thread, state);
    }
    for (let at = 0; at < changes.length; at += 8) state[changes.readUInt32LE(at)] = changes.readUInt32LE(at + 4);
    return state;
  }

  #writeState(state: Uint32Array): void {
    const { u32, f32, call } = this.#core;
    const column = (number: number) => state.subarray(number * this.#slots, (number + 1) * this.#slots);
    const endpoints = (call.regionAddress(CORE.REGION_ENDPOINTS) >>> 0) >>> 2;
    u32.set(state.subarray(0, CORE.STATE_MATCH * this.#slots), endpoints);
    call.waitingRenew();
    u32.set(column(CORE.STATE_MATCH), (call.matchAddress() >>> 0) >>> 2);
    u32.set(column(CORE.STATE_OVERLAP), (call.overlapAddress() >>> 0) >>> 2);
    const host = (call.hostAddress() >>> 0) >>> 2;
    u32.set(state.subarray(HOST_STATE * this.#slots, PREDICTED_STATE * this.#slots), host);
    u32.set(state.subarray(PREDICTED_STATE * this.#slots), (call.predictedAddress() >>> 0) >>> 2);
    if (this.#adapterColumn !== undefined) {
      u32.set(column(CORE.STATE_ADAPTER), host + this.#adapterColumn * this.#slots);
    }
    const words = column(CORE.STATE_WORDS);
    const pool = (CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_WORDS) >>> 2;
    u32.set(words.subarray(0, CORE.POOL_WORDS_BYTES >>> 2), pool);
    // The candidates are given: an ejected one among them was a probe, or one of a pool that was ejected as a whole.
    u32[(CORE.HEADER + CORE.HEADER_POOL + CORE.POOL_EJECTION_OFF) >>> 2] = 1;
    const first = CORE.STATE_COEFFICIENTS >>> 2;
    const coefficients = words.subarray(first, first + (CORE.COEFFICIENTS_BYTES >>> 2));
    f32.set(new Float32Array(coefficients.slice().buffer), (call.coefficientsAddress() >>> 0) >>> 2);
  }

  #writeRequest(decision: RecordedDecision, state: Uint32Array): void {
    const { u32, i32, f32, view, bytes, call } = this.#core;
    const at = (offset: number) => (this.#request + offset) >>> 2;
    const kept = decision.flags & (CORE.DECIDE_TAIL | CORE.DECIDE_BASE_MODEL);
    u32[at(CORE.REQUEST_FLAGS)] = kept | CORE.DECIDE_SUBSET | CORE.DECIDE_UNCHARGED | CORE.DECIDE_GIVEN;
    u32[at(CORE.REQUEST_PROFILE)] = decision.profile;
    u32[at(CORE.REQUEST_BLOCKS)] = decision.blocks;
    u32[at(CORE.REQUEST_PROMPT_TOKENS)] = decision.promptTokens;
    u32[at(CORE.REQUEST_OUTPUT_TOKENS)] = decision.outputTokens;
    i32[at(CORE.REQUEST_PRIORITY)] = decision.priority;
    u32[at(CORE.REQUEST_BLOCK_TOKENS)] = decision.blockTokens;
    u32[at(CORE.REQUEST_EARLIER)] = decision.earlier;
    f32[at(CORE.REQUEST_WANTED_TTFT)] = decision.wantedTtftMs;
    f32[at(CORE.REQUEST_WANTED_TPOT)] = decision.wantedTpotMs;
    view.setFloat64(this.#request + CORE.REQUEST_NOW, decision.timeMs, true);
    bytes.set(decision.adapter, this.#request + CORE.REQUEST_ADAPTER);
    bytes.set(decision.random, this.#request + CORE.REQUEST_RANDOM);
    bytes.set(decision.keys, this.#request + CORE.REQUEST_KEYS);
    this.#writeCandidates(decision.used, state, call.subsetAddress() >>> 0);
  }

  /** Writes the endpoints that were let in, and that the capacity gate did not close. */
  #writeCandidates(used: number, state: Uint32Array, mask: number): void {
    const { bytes } = this.#core;
    bytes.fill(0, mask, mask + (this.#slots >>> 3));
    for (let slot = 0; slot < used; slot++) {
      const removed = state[CORE.STATE_REMOVED * this.#slots + slot]!;
      if (removed === CORE.REMOVED_NOT_ADMITTED || removed === CORE.REMOVED_BY_GATE) continue;
      bytes[mask + (slot >>> 3)]! |= 1 << (slot & 7);
    }
  }
}

/** Operations whose first parameter is the column of a hook plugin. */
const HOOKED: readonly string[] = ['OP_SCORE_HOST', 'OP_FILTER_HOST', 'OP_FILTER_SERVED_MODEL'];

/** A host column that no hook plugin fills; undefined = no profile scores LoRA adapters. @throws when all are filled */
function adapterColumnOf(all: readonly CompiledScheduling[]): number | undefined {
  const operations = all.flatMap(({ profiles }) => profiles.flatMap((profile) => profile.operations));
  if (!operations.some(({ code }) => code === 'OP_SCORE_ADAPTER')) return undefined;
  const filled = operations.filter(({ code }) => HOOKED.includes(code));
  const column = Math.max(-1, ...filled.map(({ parameters }) => parameters[0]!)) + 1;
  if (column === CORE.HOST_COLUMNS)
    throw new Error('its hook plugins fill all columns: none is left for the recorded scores of LoRA adapters');
  return column;
}

/** The programs with recorded values in place of computed ones: scores of LoRA adapters, and predicted times. */
function withRecorded(scheduling: CompiledScheduling, adapterColumn: number | undefined): CompiledScheduling {
  const given = (operation: ProgramOperation): ProgramOperation => {
    if (operation.code === 'OP_SCORE_ADAPTER')
      return { ...operation, code: 'OP_SCORE_HOST', parameters: [adapterColumn!] };
    if (operation.code !== 'OP_PREDICT' || operation.parameters[0] === CORE.PREDICT_NOTHING) return operation;
    return { ...operation, parameters: [CORE.PREDICT_ON_HOST, ...operation.parameters.slice(1)] };
  };
  return {
    ...scheduling,
    profiles: scheduling.profiles.map((profile) => ({ ...profile, operations: profile.operations.map(given) })),
  };
}
