// The locks of decisions on several threads: for how long each is held, how two threads that only decide compare with
// one, and what that makes of more shards than this machine has cores. Before each round a line of the cache is sent to
// and fro between two threads: where that takes long, the cores are far from each other, as those of a virtual machine
// are from time to time, and everything that threads share takes long.

import { availableParallelism } from 'node:os';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { CORE } from '../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, type PoolMemory } from '../dist/src/core/index.js';
import { type Report, round } from './bench.ts';
import { decisionSteps, makePool } from './decide.ts';
import { CORE_SHARE } from './figures/commit-lock.ts';
import { type LoadShape, measureLoad, OWN_COMMAND } from './process/load.ts';
import { rounds } from './threads/rounds.ts';

const file = new URL('./threads/decide-worker.ts', import.meta.url);
const ENDPOINTS = [64, 4096];
const LOCKS = { commit: CORE.HEADER_COMMIT_LOCK, index: CORE.HEADER_INDEX_LOCK };
type Lock = keyof typeof LOCKS;
/** Rounds of one and of two threads, of which some may lack a core. */
const ROUNDS = 10;
/** Threads without a core each, and their rounds: a lock must not make them slower than two with a core each. */
const MORE_THREADS = [4, 8];
const MORE_ROUNDS = 5;
/** Looks at a lock in a row; between two of them a look takes another line of the cache, and some time. */
const LOOKS = 1_000;
const PAUSE_TURNS = 1_500;
/** Shards of the model, and the exchange that each of them serves one after the other. */
const SHARDS = [4, 16, 64];
const EXCHANGE: LoadShape = { promptBytes: 4096, chunks: 1, endpoints: 64, concurrency: 32 };

/** Ways of a line to another thread and back, for one figure. */
const TURNS = 20_000;
/** Longest wait for the other thread, in looks. */
const LOOKS_MOST = 1e8;

interface Round {
  /** Time of a line of the cache from one core to the other before the round, in ns. */
  readonly lineNs: number;
  /** Time of one decision with its release, of each thread, in µs. */
  readonly us: number;
  /** Share of a core that each thread had. */
  readonly core: number;
  /** Share of the looks that found the lock held. */
  readonly held: number;
}

/** Looks at a lock until a promise is kept. @returns share of the looks at which somebody held it */
async function watch(core: CoreInstance, lock: Lock, until: Promise<void>): Promise<number> {
  const word = (CORE.HEADER + LOCKS[lock]) >>> 2;
  let over = false;
  until.finally(() => {
    over = true;
  });
  let held = 0;
  let looks = 0;
  for (let drawn = 12_345; !over; await new Promise((resolve) => setImmediate(resolve))) {
    for (let i = 0; i < LOOKS; i++) {
      drawn = (Math.imul(drawn, 1_103_515_245) + 12_345) >>> 0;
      const until = PAUSE_TURNS + (drawn >>> 20);
      for (let turn = 0; turn < until; turn++) scratch[0]! += turn;
      if (Atomics.load(core.i32, word) !== 0) held++;
    }
    looks += LOOKS;
  }
  return held / looks;
}

const scratch = new Float64Array(1);

/** Waits until a word has a value. */
function await32(words: Int32Array, value: number): void {
  for (let looks = 0; Atomics.load(words, 0) !== value; ) {
    if (++looks > LOOKS_MOST) throw new Error('the other thread does not answer');
  }
}

/** Sends every line back; the word behind says that it has begun. */
function sendBack(words: Int32Array): void {
  Atomics.store(words, 64, 1);
  for (let i = 0; i < TURNS; i++) {
    await32(words, 2 * i + 1);
    Atomics.store(words, 0, 2 * i + 2);
  }
}

/** Time of a line of the cache from one core to another, in ns. */
async function lineTransfer(): Promise<number> {
  const words = new Int32Array(new SharedArrayBuffer(1024));
  const worker = new Worker(new URL(import.meta.url), { workerData: { words } });
  while (Atomics.load(words, 64) === 0) await new Promise((resolve) => setImmediate(resolve));
  const start = performance.now();
  for (let i = 0; i < TURNS; i++) {
    Atomics.store(words, 0, 2 * i + 1);
    await32(words, 2 * i + 2);
  }
  const ns = ((performance.now() - start) * 1e6) / TURNS / 2;
  await worker.terminate();
  return ns;
}

/** Rounds of `threads` threads; with a lock it is watched by this thread, which takes a core of its own. */
async function measure(pool: PoolMemory, threads: number, decisions: number, count: number, lock?: Lock) {
  const prepared = await rounds(file, threads, decisions, () => ({ pool, decisions }));
  const core = attachCore(pool, 0);
  const results: Round[] = [];
  for (let i = 0; i < count; i++) {
    const lineNs = threads === 1 ? 0 : await lineTransfer();
    const cpu = process.cpuUsage();
    const start = performance.now();
    const run = Promise.resolve(prepared.run());
    const held = lock === undefined ? 0 : await watch(core, lock, run);
    await run;
    const ms = performance.now() - start;
    const used = process.cpuUsage(cpu);
    results.push({
      us: (ms * 1e3) / decisions,
      core: (used.user + used.system) / 1e3 / ms / threads,
      held,
      lineNs,
    });
  }
  await prepared.teardown?.();
  return results.sort((a, b) => a.us - b.us);
}

const LINE_BYTES = 64;
/** Decisions whose lines are counted. */
const COUNTED = 32;

/** Lines of the cache in which two states of a part of the memory differ. */
function linesBetween(before: BigUint64Array, after: BigUint64Array): number {
  let lines = 0;
  for (let first = 0; first < before.length; first += LINE_BYTES / 8) {
    for (let word = first; word < first + LINE_BYTES / 8; word++) {
      if (before[word] === after[word]) continue;
      lines++;
      break;
    }
  }
  return lines;
}

/** Lines that a decision, and then its release, change under the commit lock: the mean of some in a warm pool. */
function linesChanged(pool: PoolMemory): { decide: number; release: number } {
  const { decide, release } = decisionSteps(pool, 1);
  for (let i = 0; i < 2_000; i++) {
    decide();
    release();
  }
  // The header page, and behind it the endpoints and the ledger, up to the programs.
  const end = attachCore(pool, 0).call.regionAddress(CORE.REGION_PROGRAMS) >>> 0;
  const now = new BigUint64Array(pool.memory.buffer, CORE.HEADER, (end - CORE.HEADER) >>> 3);
  const sums = { decide: 0, release: 0 };
  for (let i = 0; i < COUNTED; i++) {
    for (const [step, run] of Object.entries({ decide, release })) {
      const before = now.slice();
      run();
      sums[step as keyof typeof sums] += linesBetween(before, now);
    }
  }
  return { decide: round(sums.decide / COUNTED), release: round(sums.release / COUNTED) };
}

const median = (results: readonly Round[]) => results[results.length >> 1]!;

async function* report(timeMs: number): AsyncGenerator<object> {
  // On the machine of the held times: a model of one machine's locks and another's exchanges would be of neither.
  const times = { warmMs: 4 * timeMs, measuredMs: 4 * timeMs };
  const { cpuUs: exchangeUs } = await measureLoad(OWN_COMMAND, EXCHANGE, times);
  for (const endpoints of ENDPOINTS) {
    const decisions = Math.round(timeMs * (endpoints > 1_000 ? 20 : 200));
    const alone = await measure(makePool(endpoints), 1, decisions, ROUNDS);
    const held: Record<Lock, number> = { commit: 0, index: 0 };
    for (const lock of ['commit', 'index'] as const) {
      const watched = median(await measure(makePool(endpoints), 1, decisions, 3, lock));
      held[lock] = watched.held * watched.us;
      yield { name: `commit-lock/${endpoints}/held-${lock}`, us: round(held[lock]) };
    }
    const both = await measure(makePool(endpoints), 2, decisions, ROUNDS);
    const whole = both.filter(({ core }) => core >= CORE_SHARE);
    const one = median(alone).us;
    yield { name: `commit-lock/${endpoints}/one-thread`, us: round(one), cores: availableParallelism() };
    yield { name: `commit-lock/${endpoints}/lines-changed`, ...linesChanged(makePool(endpoints)) };
    yield {
      name: `commit-lock/${endpoints}/two-threads`,
      us: both.map(({ us }) => round(us)),
      lineNs: both.map(({ lineNs }) => round(lineNs)),
      coreShares: both.map(({ core }) => round(core)),
      timesOne: whole.length === 0 ? undefined : round((2 * one) / median(whole).us),
      roundsWithTwoCores: whole.length,
    };
    for (const threads of MORE_THREADS) {
      const many = median(await measure(makePool(endpoints), threads, Math.ceil(decisions / threads), MORE_ROUNDS));
      yield { name: `commit-lock/${endpoints}/threads-${threads}`, timesOne: round((threads * one) / many.us) };
    }
    yield { name: `commit-lock/${endpoints}/exchange`, us: round(exchangeUs) };
    for (const shards of SHARDS) yield modelled({ endpoints, shards, exchangeUs }, held);
  }
}

interface Modelled {
  readonly endpoints: number;
  readonly shards: number;
  readonly exchangeUs: number;
}

/** Share of the time in which so many shards with a core each hold a lock, and the wait for it (one server, M/D/1). */
function modelled({ endpoints, shards, exchangeUs }: Modelled, held: Readonly<Record<Lock, number>>): object {
  const busy = (lock: Lock) => (shards * held[lock]) / exchangeUs;
  // `null` where the lock is the ceiling.
  const waitUs = (lock: Lock) => (busy(lock) >= 1 ? null : round((held[lock] * busy(lock)) / 2 / (1 - busy(lock))));
  return {
    name: `commit-lock/${endpoints}/model-${shards}`,
    commitBusy: round(busy('commit')),
    commitWaitUs: waitUs('commit'),
    indexBusy: round(busy('index')),
    indexWaitUs: waitUs('index'),
  };
}

export const reports: readonly Report[] = [{ name: 'commit-lock', timeMs: 1_000, run: report }];

if (!isMainThread) sendBack((workerData as { readonly words: Int32Array }).words);
