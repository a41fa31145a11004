import type { UtilizationSettings } from '../../dist/src/contract/saturation-settings.js';
import { CapacityGate } from '../../dist/src/core/capacity-gate.js';
import { CostTable } from '../../dist/src/core/coefficients.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { CoefficientTable } from '../../dist/src/core/latency-predictions.js';
import type { Operation, ReadName } from '../../dist/src/core/operations.js';
import { row } from '../adaptation/samples.ts';
import { makePool, pickMax, plainRequest, scorer } from './pool.ts';

const SLOTS = [0, 1, 2, 3];
const NOW_MS = 10_000;
const BLOCKS = 16;
/** Chain hash at the end of every prompt. */
const ANCHOR = 0x9e37_79b9_7f4a_7c15n;
const TEXTS = ['a', 'b', undefined];
/** Profiles that leave traces of what was sent where. */
const COLD = 1;
const ADAPTERS = 2;
const NONE = 3;

type Random = () => number;
type Write = (random: Random) => void;

/** A figure of a hook plugin: nothing, a score, or what a list of models says (SERVES_*). */
function hookFigure(drawn: number): number {
  if (drawn < 0.3) return 0;
  return drawn < 0.6 ? drawn : CORE.SERVES_MODEL + (Math.floor(drawn * 30) % 3);
}

/** A pool whose inputs of operations can be written one by one. */
export class PoisonedPool {
  readonly #pool = makePool(
    [pickMax],
    SLOTS.map(() => ({ adapters: { running: ['a'], waiting: ['b'], max: 4 } })),
  );
  readonly #gate = new CapacityGate(this.#pool.control);
  readonly #session = this.#makeSession();
  readonly nowMs = NOW_MS;
  readonly #random = this.#pool.core.bytes.slice(this.#seed, this.#seed + 16);
  readonly #request: Record<'promptTokens' | 'wantedTtftMs' | 'wantedTpotMs', number> = {
    promptTokens: 0,
    wantedTtftMs: 0,
    wantedTpotMs: 0,
  };
  #adapter = '';
  #key: string | undefined;
  #earlier: number | undefined;

  constructor() {
    const { control, programs } = this.#pool;
    const random = row(7);
    const six = () => Array.from({ length: CORE.PREDICTION_FEATURES }, () => 10 + 50 * random());
    new CoefficientTable(control).setUnknown({ ttft: six(), tpot: six() });
    new CostTable(control).write({
      baseMs: 25,
      prefillMsPerKiloToken: 55,
      waitingMs: 5,
      stepMs: 13,
      growthMs: 4,
      missPrice: 1.5,
      outputTokens: 200,
      firstOutputTargetMs: 2000,
      perTokenTargetMs: 60,
      slots: 1,
      evictionPrice: 1,
    });
    programs.publish(COLD, [scorer('OP_SCORE_NO_HIT_LRU', 1, 64), pickMax], { inserts: false });
    programs.publish(ADAPTERS, [scorer('OP_SCORE_ADAPTER', 1, 1), pickMax], { inserts: false });
    for (const slot of SLOTS) this.#send(ADAPTERS, slot, slot % 2 === 0 ? 'a' : 'c');
  }

  get table() {
    return this.#pool.table;
  }

  get #seed(): number {
    return (this.#pool.core.call.requestAddress() >>> 0) + CORE.REQUEST_RANDOM;
  }

  /** Saturation as the capacity gate works it out, in which what was sent since the scrape counts. */
  gateSaturation(settings: UtilizationSettings): number {
    const { queueDepthThreshold: queueThreshold, kvCacheUtilThreshold: usageThreshold, metricsStalenessMs } = settings;
    this.#gate.configure(
      { mode: 'utilization', queueThreshold, usageThreshold, stalenessMs: metricsStalenessMs },
      64,
      1,
      1,
    );
    return this.#gate.saturation(SLOTS, NOW_MS) ?? 0;
  }

  run(program: readonly Operation[]): void {
    this.#pool.programs.publish(0, program, { inserts: false });
  }

  /** Sends a request to a slot, and ends it. */
  #send(profile: number, slot: number, adapter: string): void {
    const { decider } = this.#pool;
    const request = { ...plainRequest, profile, adapter, charged: true, subset: [slot], nowMs: NOW_MS };
    const { ticket, ticketGeneration } = decider.decide(request);
    decider.release(ticket, ticketGeneration);
  }

  #column(column: number, value: (random: Random) => number, wide = false): Write {
    const { call, f32, view } = this.#pool.core;
    const at = call.columnAddress(column) >>> 0;
    return (random) => {
      for (const slot of SLOTS) {
        if (wide) view.setFloat64(at + slot * 8, value(random), true);
        else f32[(at >>> 2) + slot] = value(random);
      }
    };
  }

  /** @param also part of the column that replicas make up, which has to be the same where nothing is in flight here */
  #whole(column: number, value: (random: Random) => number, also?: number): Write {
    const { call, u32 } = this.#pool.core;
    const cells = [column, ...(also === undefined ? [] : [also])].map((each) => (call.columnAddress(each) >>> 0) >>> 2);
    return (random) => {
      for (const slot of SLOTS) {
        const written = value(random);
        for (const at of cells) u32[at + slot] = written;
      }
    };
  }

  /** Whole numbers up to `most`. */
  #count(column: number, most: number, also?: number): Write {
    return this.#whole(column, (random) => Math.floor(random() * (most + 1)), also);
  }

  #own(address: number, columns: number, value: (random: Random) => number, whole = false): Write {
    const { u32, f32, sizes } = this.#pool.core;
    return (random) => {
      for (let column = 0; column < columns; column++) {
        for (const slot of SLOTS)
          (whole ? u32 : f32)[(address >>> 2) + column * sizes.endpoints + slot] = value(random);
      }
    };
  }

  readonly #writes: Readonly<Record<ReadName, Write>> = this.#inputs();

  #inputs(): Record<ReadName, Write> {
    const { call } = this.#pool.core;
    const { table } = this.#pool;
    const upTo = (most: number) => (random: Random) => random() * most;
    const some = (most: number) => (random: Random) => (random() < 0.3 ? 0 : random() * most);
    return {
      known: this.#whole(CORE.COLUMN_KNOWN, (random) => (random() < 0.75 ? 15 : Math.floor(16 * random()))),
      waiting: this.#column(CORE.COLUMN_WAITING, some(8)),
      running: this.#column(CORE.COLUMN_RUNNING, some(16)),
      kvUsage: this.#column(CORE.COLUMN_KV_USAGE, (random) => (random() < 0.15 ? 0.01 : random())),
      slotsSeen: this.#column(CORE.COLUMN_SLOTS_SEEN, some(16)),
      slotsFull: this.#column(CORE.COLUMN_SLOTS_FULL, some(6)),
      starts: this.#column(CORE.COLUMN_STARTS, upTo(24)),
      inflightScraped: this.#count(CORE.COLUMN_INFLIGHT_SCRAPED, 3),
      signalTime: this.#column(CORE.COLUMN_SIGNAL_TIME, (random) => NOW_MS - 400 * random(), true),
      attributes: this.#column(CORE.COLUMN_ATTRIBUTES, (random) => (random() < 0.3 ? Number.NaN : random())),
      adaptersRunning: this.#count(CORE.COLUMN_ADAPTERS_RUNNING, 2),
      adaptersWaiting: this.#count(CORE.COLUMN_ADAPTERS_WAITING, 2),
      adaptersMax: this.#count(CORE.COLUMN_ADAPTERS_MAX, 4),
      adaptersSent: this.#count(CORE.COLUMN_ADAPTERS_SENT, 1),
      inflight: this.#count(CORE.COLUMN_INFLIGHT, 3, CORE.COLUMN_PEER_REQUESTS),
      inflightTokens: this.#count(CORE.COLUMN_INFLIGHT_TOKENS, 5000, CORE.COLUMN_PEER_TOKENS),
      prefillTokens: this.#count(CORE.COLUMN_PREFILL_TOKENS, 5000, CORE.COLUMN_PEER_PREFILL),
      promptTokens: this.#count(CORE.COLUMN_PROMPT_TOKENS, 50_000, CORE.COLUMN_PEER_PROMPT),
      prefillRate: this.#column(CORE.COLUMN_PREFILL_RATE, upTo(20)),
      prefillRateTime: this.#column(CORE.COLUMN_PREFILL_RATE_TIME, (random) => NOW_MS - 9000 * random(), true),
      prefillRatePeak: this.#column(CORE.COLUMN_PREFILL_RATE_PEAK, (random) => 20 + 20 * random()),
      activeBlocks: this.#count(CORE.COLUMN_ACTIVE_BLOCKS, 100),
      outputBlocks: this.#count(CORE.COLUMN_OUTPUT_BLOCKS, 100, CORE.COLUMN_PEER_OUTPUT),
      strictestTpot: this.#column(CORE.COLUMN_STRICTEST_TPOT, some(60)),
      speed: this.#column(CORE.COLUMN_SPEED, (random) => 0.5 + random()),
      hitReliability: this.#column(CORE.COLUMN_HIT_RELIABILITY, (random) => 0.3 + 0.7 * random()),
      hitShare: this.#column(CORE.COLUMN_HIT_SHARE, (random) => random()),
      charged: this.#count(CORE.COLUMN_CHARGED, 16),
      blockTokens: this.#whole(CORE.COLUMN_BLOCK_TOKENS, (random) => (random() < 0.2 ? 0 : 16)),
      blockCount: this.#count(CORE.COLUMN_BLOCK_COUNT, 1500),
      costBase: this.#column(CORE.COLUMN_COST_BASE, upTo(500)),
      costPrefill: this.#column(CORE.COLUMN_COST_PREFILL, some(100)),
      costWaiting: this.#column(CORE.COLUMN_COST_WAITING, upTo(100)),
      costStep: this.#column(CORE.COLUMN_COST_STEP, upTo(50)),
      costGrowth: this.#column(CORE.COLUMN_COST_GROWTH, upTo(50)),
      coldOrder: (random) => {
        for (const slot of [...SLOTS].sort(() => random() - 0.5)) this.#send(COLD, slot, '');
      },
      matches: this.#own(
        call.matchAddress() >>> 0,
        1,
        (random) => (random() < 0.6 ? 0 : Math.floor(17 * random())),
        true,
      ),
      overlap: this.#own(call.overlapAddress() >>> 0, 1, (random) => Math.floor(random() * 9), true),
      // One session, whose prompt the request goes on with.
      sessions: (random) => this.#writeSession(Math.floor(4 * random())),
      predictions: (random) => {
        const unknown = random() < 0.25 ? 1 : 0.1;
        this.#own(call.predictedAddress() >>> 0, 4, () => (random() < unknown ? Number.NaN : 100 * random() - 50))(
          random,
        );
      },
      hookColumn: this.#own(call.hostAddress() >>> 0, 1, (random) => hookFigure(random())),
      labels: (random) => {
        for (const slot of SLOTS) {
          for (const column of [0, 1, 2, 3]) table.setLabelText(column, slot, TEXTS[Math.floor(random() * 3)]);
          const [min, width] = [20_000 * random(), 20_000 * random()];
          table.setLabelRange(4, slot, random() < 0.3 ? undefined : { min, max: min + width });
        }
      },
      mask: (random) =>
        table.setMask(
          0,
          SLOTS.filter(() => random() < 0.5),
        ),
      promptLength: (random) => {
        this.#request.promptTokens = Math.floor(1000 + 20_000 * random());
      },
      model: (random) => {
        this.#adapter = ['a', 'b', 'c'][Math.floor(random() * 3)]!;
      },
      headers: (random) => {
        this.#key = TEXTS[Math.floor(random() * 3)];
      },
      wantedTimes: (random) => {
        this.#request.wantedTtftMs = some(100)(random);
        this.#request.wantedTpotMs = some(100)(random);
      },
      earlierPick: (random) => {
        this.#earlier = random() < 0.3 ? undefined : Math.floor(4 * random());
      },
    };
  }

  /** Its last turn was on a slot. */
  #writeSession(slot: number): void {
    const { call } = this.#pool.core;
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    if (call.lockAcquire(lock, 100) !== 1) throw new Error('the commit lock is not free');
    call.sessionBegin(this.#session, slot, 1_000, 0, 0n, 1, NOW_MS);
    call.sessionEnd(this.#session, NOW_MS);
    call.lockRelease(lock);
  }

  /** Turns sessions on, with one that has its anchor in every request's prompt. @returns its number */
  #makeSession(): number {
    const { call, view } = this.#pool.core;
    this.#gate.sessions.configure({ mode: 'shadow', smallPrompt: 0, stretch: 0, maxWaitMs: 1 });
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    if (call.lockAcquire(lock, 100) !== 1) throw new Error('the commit lock is not free');
    const entry = call.sessionTake();
    call.setAnchors(entry, ANCHOR, 0n);
    call.lockRelease(lock);
    view.setBigUint64((call.hashesAddress() >>> 0) + (BLOCKS - 1) * 8, ANCHOR, true);
    return entry;
  }

  /** Writes every input: from the seed, but `other` from another one. */
  fill(seed: number, other?: ReadName): void {
    const names = Object.keys(this.#writes).sort() as ReadName[];
    // Requests are sent for the first, which all other inputs would tell of.
    const ends: readonly ReadName[] = ['coldOrder', 'sessions'];
    const order = ['coldOrder' as const, ...names.filter((name) => !ends.includes(name)), 'sessions' as const];
    for (const [i, name] of order.entries()) this.#writes[name](row(seed * 100 + i + (name === other ? 50 : 0)));
    this.#pool.core.call.waitingRenew();
  }

  /**
   * Decides a request of a low priority without a charge.
   * @param operations number of operations, from the first one on, whose scores are looked at
   * @param predicting whether the predictions are looked at
   * @returns all that the decision shows: status, picks, candidates, scores of operations and predictions
   */
  decide(operations: number, predicting: boolean): readonly number[] {
    const { core, decider } = this.#pool;
    const { call, u32, f32, sizes } = core;
    const request = (call.requestAddress() >>> 0) >>> 2;
    // Writes the request and does no more: the profile has no program.
    decider.decide({
      ...plainRequest,
      ...this.#request,
      ...{ profile: NONE, blocks: BLOCKS, priority: -1, nowMs: NOW_MS, explained: true, charged: false },
      ...{ adapter: this.#adapter, keys: [this.#key], earlier: this.#earlier },
    });
    u32[request + (CORE.REQUEST_PROFILE >>> 2)] = 0;
    u32[request + (CORE.REQUEST_FLAGS >>> 2)]! |= CORE.DECIDE_GIVEN;
    core.bytes.set(this.#random, this.#seed);
    const status = call.decide();
    const answer = (offset: number) => u32[request + (offset >>> 2)]!;
    const explained = (call.explainAddress() >>> 0) >>> 2;
    const predicted = (call.predictedAddress() >>> 0) >>> 2;
    return [
      status,
      answer(CORE.ANSWER_WOULD_PICK),
      answer(CORE.ANSWER_COUNT) === 0 ? 0 : answer(CORE.ANSWER_PICKS) + 1,
      ...SLOTS.map((slot) => call.isCandidate(slot)),
      ...Array.from({ length: operations }, (_, op) =>
        SLOTS.map((slot) => f32[explained + op * sizes.endpoints + slot]!),
      ).flat(),
      ...(predicting ? [0, 1, 2, 3] : []).flatMap((column) =>
        SLOTS.map((slot) => f32[predicted + column * sizes.endpoints + slot]!),
      ),
    ];
  }

  get inputs(): readonly ReadName[] {
    return Object.keys(this.#writes).sort() as ReadName[];
  }
}

/**
 * Inputs whose change alone changes what `look` sees, in some state of the pool.
 * @param states number of states
 */
export function inputsOf(pool: PoisonedPool, states: number, look: () => readonly number[]): readonly ReadName[] {
  const before = Array.from({ length: states }, (_, seed) => {
    pool.fill(seed);
    return { seed, seen: look() };
  });
  return pool.inputs.filter((input) =>
    before.some(({ seed, seen }) => {
      pool.fill(seed, input);
      return look().some((value, i) => !Object.is(value, seen[i]));
    }),
  );
}
