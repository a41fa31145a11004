import { variantOfDrive } from '../../../src/adaptation/driven-variant.js';
import type { LiveEndpoint } from '../../../src/adaptation/endpoint-speeds.js';
import type { AdaptationSettings } from '../../../src/config/adaptation.js';
import type { Endpoint } from '../../../src/contract/endpoint.js';
import type { ReplicaPlace } from '../../../src/contract/replica-place.js';
import { CostTable } from '../../../src/core/coefficients.js';
import { CORE } from '../../../src/core/core-names.js';
import { Decider } from '../../../src/core/decider.js';
import type { Decision, GateRequest } from '../../../src/core/decision-data.js';
import { EndpointTable } from '../../../src/core/endpoint-table.js';
import {
  attachCore,
  type CoreInstance,
  createPoolMemory,
  defaultPoolSizes,
  loadCoreModule,
} from '../../../src/core/memory.js';
import type { Operation } from '../../../src/core/operations.js';
import { ProgramTable } from '../../../src/core/programs.js';
import type { SessionCounts } from '../../../src/core/session-ledger.js';
import { type PlacedTurn, SessionNews } from '../../../src/core/session-news.js';
import type { Measures } from '../../../src/core/training-sample.js';
import { writeLabels } from '../../../src/scheduling/label-columns.js';
import { projectedScorers } from '../../../src/scheduling/learned-profile.js';
import { estimatedOutput } from '../../../src/scheduling/output-estimate.js';
import type { CompiledScheduling } from '../../../src/scheduling/program.js';
import { type ProgramVariant, programOf } from '../../../src/scheduling/program-variants.js';
import { rules } from '../../../src/scheduling/rules.js';
import type { Ablation } from './ablation.js';
import type { AdmissionRule } from './admission-rule.js';
import { BlockIndex } from './block-index.js';
import type { LoadSample } from './endpoint.js';
import type { EventQueue } from './events.js';
import type { EndpointSettings, KvEventSettings } from './fleet-settings.js';
import { type Dispatched, SimulatedFlow } from './flow.js';
import { Learner } from './learner.js';
import type { PickerConfiguration } from './picker-configuration.js';
import type { Picked, PickerRequest, PickOutcome, SimulatedCharge, Wait } from './picks.js';
import { RandomStream } from './random-stream.js';
import { refuseUnsimulated } from './refusals.js';
import { trueCosts } from './true-costs.js';

/** Threads of the pool memory: one that writes signals, one that decides. */
const WRITER = 0;
const DECIDER = 1;
const PROFILE = 0;
/** A profile that takes any endpoint of the subset: the pick of a peer, or one by lot. */
const MIRROR = 1;
const FIRST_GENERATION = 1;
/** Bound on the requests that wait in a picker's queues. */
const WAITING_MAX = 2048;

/** What is around a picker. */
export interface PickerSurroundings {
  readonly clock: EventQueue;
  /** Share of every endpoint that it may fill. */
  readonly share: number;
  /** Place among the peers to which it tells turns of sessions, as they tell it; absent = they tell nothing. */
  readonly place?: ReplicaPlace | undefined;
  /** Milliseconds by which its clock is ahead of simulated time. */
  readonly aheadMs?: number;
}

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
  /** Blocks of prompts in the picker's view. */
  readonly blocks: BlockIndex;
  readonly #blockTokens: number;
  readonly #programs: ProgramTable;
  readonly #inserts: boolean;
  /** Whether engines report the size of their blocks, so that matches count whole ones only. */
  readonly #wholeBlocks: boolean;
  readonly #ablation: Ablation | undefined;
  readonly #random: RandomStream;
  readonly #live = new Set<number>();
  readonly #clock: EventQueue;
  readonly #hardwareLabel: string;
  /** Undefined when the configuration learns nothing. */
  readonly learner: Learner | undefined;
  /** Undefined without flow control. */
  readonly #flow: SimulatedFlow | undefined;
  /** Turns that peers are told, and that they tell; undefined without peers that share them. */
  readonly #news: SessionNews | undefined;
  /** Undefined but for policies of other routers. */
  readonly #rule: AdmissionRule | undefined;

  /**
   * @param blockTokens tokens of the workload's blocks
   * @param outputTokens mean of the workload, for who knows the true costs
   * @throws Error when the configuration needs something that the simulation does not have
   */
  constructor(
    configuration: PickerConfiguration,
    endpoints: readonly EndpointSettings[],
    blockTokens: number,
    outputTokens: number,
    events: KvEventSettings | undefined,
    seed: number,
    { clock, share, place, aheadMs }: PickerSurroundings,
  ) {
    refuseUnsimulated(configuration, blockTokens, events !== undefined);
    const { scheduling, adaptation, omniscient, ablation, flowControl, admission } = configuration;
    this.#scheduling = scheduling;
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#hardwareLabel = adaptation.hardwareLabel;
    this.#blockTokens = scheduling.prefix?.blockTokens ?? blockTokens;
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
        scans: flowControl === undefined ? 4 : WAITING_MAX,
        telemetryBytes: 65_536,
      },
      { hashSeed: 0n, module: coreModule() },
    );
    const control = attachCore(memory, WRITER);
    this.#core = attachCore(memory, DECIDER);
    this.#table = new EndpointTable(control);
    this.#decider = new Decider(this.#core, BigInt(seed));
    this.blocks = new BlockIndex(this.#core, this.#blockTokens, blockTokens);
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
    this.#flow =
      flowControl &&
      new SimulatedFlow({
        control,
        shard: this.#core,
        settings: flowControl,
        detector: configuration.saturationDetector,
        blockTokens: this.#blockTokens,
        share,
        slots: [...endpoints.keys()],
        events: clock,
        place,
        aheadMs,
      });
    if (place !== undefined && flowControl !== undefined) this.#news = new SessionNews(control);
    this.#news?.begin();
    const capacities = endpoints.map(({ limits }) => limits.blocks * limits.blockTokens);
    this.#rule = admission?.({ capacities, clock });
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

  /** Whether requests wait on every live endpoint. */
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
    this.#flow?.endpointsChanged(state === 'draining' ? [slot] : []);
    if (state === 'live') this.#live.add(slot);
    else this.#live.delete(slot);
    this.#rule?.endpointsChanged(new Set(this.#live));
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
    this.#rule?.sampled(slot, sample.kvUsage * blocks * blockTokens);
    this.#flow?.look();
  }

  markStale(slot: number): void {
    this.#table.markStale(slot);
  }

  /** @param picked called later when the outcome is a wait */
  pick(request: PickerRequest, nowMs: number, picked: Picked): PickOutcome | Wait {
    if (this.#rule !== undefined && request.anonymous !== true) return this.#pickByRule(this.#rule, request, picked);
    const { hidesPrefillRate, explores } = this.#ablation ?? {};
    if (hidesPrefillRate === true) this.#table.forgetPrefillRates();
    const anywhere = explores !== undefined && this.#random.uniform() < explores;
    return this.#pickFor(request, anywhere ? MIRROR : PROFILE, nowMs, nowMs, undefined, picked);
  }

  /** Picks among the endpoints that a rule allows, when it does. */
  #pickByRule(rule: AdmissionRule, request: PickerRequest, picked: Picked): PickOutcome | Wait {
    const { session, promptTokens, last = false } = request;
    let outcome: PickOutcome | undefined;
    let waits = false;
    rule.ask({ session, promptTokens }, (slots) => {
      const decision = this.#decide(PROFILE, request, this.#clock.nowMs, slots, promptTokens);
      const charge = decision.status === 'decided' ? this.#charge(decision, { turn: { session, last } }) : undefined;
      if (charge !== undefined) rule.sent(session, charge.slot);
      outcome = charge ?? 'unavailable';
      if (waits) picked(outcome);
    });
    waits = true;
    return outcome ?? { leave: () => rule.leave(session) };
  }

  /** @param held dispatch with which the request comes back from the queues */
  #pickFor(
    request: PickerRequest,
    profile: number,
    sinceMs: number,
    nowMs: number,
    held: Dispatched | undefined,
    picked: Picked,
  ): PickOutcome | Wait {
    const flow = this.#flow;
    const tenant = request.tenant ?? '';
    const { promptTokens, endpoints } = request;
    const gate = flow?.gateRequest(tenant, held);
    const decision = this.#decide(profile, request, nowMs, endpoints, promptTokens, gate);
    if (decision.status === 'decided') {
      const charge = this.#charge(decision, { handle: held?.handle });
      flow?.look();
      return charge;
    }
    if (decision.status !== 'waiting') {
      if (held !== undefined) flow!.ended(held.handle, 0);
      return REJECTED.has(decision.status) ? 'rejected' : 'unavailable';
    }
    const turn = { tenant, sinceMs, maxOutputTokens: 0, handle: held?.handle };
    const slot = flow!.join(turn, {
      returned: (dispatch) => {
        const { nowMs: now } = this.#clock;
        picked(dispatch === undefined ? 'rejected' : this.#pickFor(request, profile, sinceMs, now, dispatch, picked));
      },
    });
    return { leave: () => flow!.leave(slot) };
  }

  /** Charges what a peer decided. `blocks`: the prefix index is told of it too. */
  mirror(
    request: PickerRequest,
    { slot, uncachedTokens }: SimulatedCharge,
    blocks: boolean,
    nowMs: number,
  ): SimulatedCharge {
    const seen = blocks ? request : { ...request, chain: NO_BLOCKS };
    const tokens = blocks ? request.promptTokens : uncachedTokens;
    // The peer tells the turn itself.
    const isTold = this.#news !== undefined;
    if (isTold) this.#core.call.chargesOfPeers(1);
    const charge = this.#charge(this.#decide(MIRROR, seen, nowMs, [slot], tokens));
    if (isTold) this.#core.call.chargesOfPeers(0);
    return charge;
  }

  /** Passes the turns of sessions here since the last call. */
  takeTurns(visit: (turn: PlacedTurn) => void): void {
    this.#news?.drain(visit);
  }

  /** A peer tells a turn. */
  hearTurn(turn: PlacedTurn, peer: number, nowMs: number): void {
    this.#news?.hear(turn, peer, nowMs);
    this.#flow?.look();
  }

  #decide(
    profile: number,
    request: PickerRequest,
    nowMs: number,
    subset: readonly number[] | undefined,
    tokens: number,
    gate?: GateRequest,
  ) {
    const { prefix, estimateOutput, requestKeys } = this.#scheduling;
    const blocks = prefix === undefined ? 0 : this.blocks.writePrompt(request, prefix.maxBlocks);
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
      priority: request.priority ?? 0,
      wantedTtftMs: request.targets?.ttftMs,
      wantedTpotMs: request.targets?.tpotMs,
      adapter: '',
      nowMs,
      subset,
      charged: true,
      explained: false,
      gate,
      keys: requestKeys.length === 0 ? undefined : requestKeys.map(() => String(request.session)),
    });
  }

  #charge(decision: Decision, more: Pick<SimulatedCharge, 'handle' | 'turn'> = {}): SimulatedCharge {
    return {
      ...more,
      slot: decision.slots[0] ?? -1,
      ticket: decision.ticket,
      generation: decision.ticketGeneration,
      matchedTokens: decision.matchedBlocks * this.#blockTokens,
      uncachedTokens: decision.uncachedTokens,
    };
  }

  firstToken({ ticket, generation }: SimulatedCharge, nowMs: number): void {
    // With output counted, the estimate stays until the end, as in the picker.
    const keep = this.#scheduling.estimateOutput !== undefined;
    if (ticket !== 0) this.#decider.prefillDone(ticket, generation, nowMs, keep);
    this.#flow?.look();
  }

  /** Notes a token that came `ms` after the one before it. */
  stepped({ slot }: SimulatedCharge, ms: number): void {
    if (this.#flow !== undefined) this.#decider.stepped(slot, ms);
  }

  /** Ends the answer; the charge is released next. */
  complete({ ticket, generation }: SimulatedCharge, tokens: number, nowMs: number): void {
    if (ticket !== 0 && this.#flow !== undefined) this.#decider.complete(ticket, generation, tokens, nowMs);
  }

  /** Writes the training sample of a request; call it before its charge is released. */
  noteSample({ ticket, generation }: SimulatedCharge, measures: Measures): void {
    if (ticket !== 0 && this.learner !== undefined) this.#decider.noteSample(ticket, generation, measures);
  }

  grow({ ticket, generation, handle, turn }: SimulatedCharge, tokens: number): void {
    if (turn !== undefined) this.#rule!.grown(turn.session, tokens);
    if (ticket !== 0) this.#decider.grow(ticket, generation, Math.floor(tokens / this.#blockTokens), tokens);
    if (handle !== undefined) this.#flow!.progressed(handle, tokens);
  }

  /** @param outputTokens of the request so far */
  release({ ticket, generation, handle, turn }: SimulatedCharge, outputTokens: number): void {
    if (ticket !== 0) this.#decider.release(ticket, generation);
    if (turn !== undefined) this.#rule!.ended(turn.session, outputTokens, turn.last);
    if (handle !== undefined) this.#flow!.ended(handle, outputTokens);
    this.#flow?.look();
  }

  outcome({ slot }: SimulatedCharge, failed: boolean, nowMs: number): void {
    this.#decider.noteOutcome(slot, FIRST_GENERATION, failed ? 'failed' : 'answered', nowMs);
  }

  /** Sessions as they are counted; undefined = they are not. */
  get sessions(): SessionCounts | undefined {
    return this.#flow?.sessions;
  }

  /** Requests in flight by slot as the ledger counts them. */
  inflight(slot: number): number {
    return this.#table.read(slot).inflight;
  }
}

/** A simulated endpoint in the form of discovery. */
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
/** Ends of a decision that a client is told of; the others are tried again. */
const REJECTED: ReadonlySet<string> = new Set(['filtered', 'no-wait-slot']);
