/**
 * Events and lookups of the prefix index at once, as Dynamo's and SMG's index benchmarks measure: a queue of block
 * operations (stored and removed blocks) is applied to its end, and the end is inside the measured time, while another
 * thread looks prompts up. Overload: everything is offered at once. Keep-up: a fixed rate is offered, and the longest
 * wait of an event is told.
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { encode } from '@msgpack/msgpack';
import { CORE } from '../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, type PoolMemory } from '../dist/src/core/memory.js';
import { TokenChain } from '../dist/src/core/token-chain.js';
import { decodeEvents } from '../dist/src/kvevents/decode.js';
import { EngineBlocks } from '../dist/src/kvevents/engine-blocks.js';
import { EventCounts } from '../dist/src/kvevents/event-counts.js';
import type { Report } from './bench.ts';
import { makeWorkload, type Workload } from './prefix-workload.ts';

const EVENT_BLOCKS = 32;
const PAGE_WORDS = 1024;
/** Block operations for each millisecond of `--time`, and those offered in a second where the index keeps up. */
const OPERATIONS_PER_MS = 20_000;
const KEPT_UP = 2e6;

interface Reader {
  readonly pool: PoolMemory;
  readonly queries: readonly number[];
  readonly blocks: number;
  readonly stop: SharedArrayBuffer;
}

interface Lookups {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
}

/** Looks prompts up until it is told to stop. */
function look({ pool, queries, blocks, stop }: Reader): void {
  const core = attachCore(pool, 1);
  const stopped = new Int32Array(stop);
  const times = new Float64Array(1 << 20);
  let count = 0;
  parentPort!.postMessage('ready');
  while (Atomics.load(stopped, 0) === 0) {
    for (let i = 0; i < 64; i++) {
      const start = performance.now();
      core.call.prefixMatchAt(queries[count % queries.length]!, blocks);
      times[count++ & (times.length - 1)] = performance.now() - start;
    }
  }
  const sorted = times.subarray(0, Math.min(count, times.length)).sort();
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]! * 1e6;
  parentPort!.postMessage({ count, p50: at(0.5), p99: at(0.99) } satisfies Lookups);
}

interface Batch {
  readonly bytes: Uint8Array;
  readonly blocks: number;
}

/** Removals of a session's blocks, then the same blocks stored again, 32 an event. */
function batchesOf({ sessions }: Pick<Workload, 'sessions'>): readonly Batch[] {
  return sessions.slice(0, 4_000).map(({ hashes, first }) => {
    const events: { readonly flags: number; readonly part: BigUint64Array; readonly parent: bigint }[] = [];
    for (const remove of [true, false]) {
      for (let from = 0; from < hashes.length; from += EVENT_BLOCKS) {
        const flags = remove ? CORE.EVENT_REMOVE : from > 0 ? CORE.EVENT_PARENT : 0;
        events.push({ flags, part: hashes.subarray(from, from + EVENT_BLOCKS), parent: hashes[from - 1] ?? 0n });
      }
    }
    const size = events.reduce((sum, { part }) => sum + CORE.EVENT_HEAD_BYTES + 8 * part.length, 0);
    const view = new DataView(new ArrayBuffer(size));
    let at = 0;
    for (const { flags, part, parent } of events) {
      view.setUint32(at + CORE.EVENT_SLOT, first, true);
      view.setUint32(at + CORE.EVENT_BLOCKS, (part.length | flags) >>> 0, true);
      view.setBigUint64(at + CORE.EVENT_PARENT_HASH, parent, true);
      for (const [i, hash] of part.entries()) view.setBigUint64(at + CORE.EVENT_HEAD_BYTES + 8 * i, hash, true);
      at += CORE.EVENT_HEAD_BYTES + 8 * part.length;
    }
    return { bytes: new Uint8Array(view.buffer), blocks: 2 * hashes.length };
  });
}

function apply(core: CoreInstance, memory: Uint8Array, input: number, { bytes }: Batch): void {
  memory.set(bytes, input);
  core.call.prefixApply(input, bytes.length);
}

interface Drained {
  readonly perSecond: number;
  /** Longest time from when an event was offered until it was applied [ms]. */
  readonly waitMs: number;
}

/** @param rate block operations offered in a second; infinite = all at once */
function drain(core: CoreInstance, batches: readonly Batch[], operations: number, rate: number): Drained {
  const memory = new Uint8Array(core.memory.buffer);
  const input = core.call.inputAddress() >>> 0;
  const start = performance.now();
  let waitMs = 0;
  let done = 0;
  for (let i = 0; done < operations; i++) {
    const batch = batches[i % batches.length]!;
    const due = start + (rate === Number.POSITIVE_INFINITY ? 0 : (done / rate) * 1_000);
    while (performance.now() < due) {}
    apply(core, memory, input, batch);
    done += batch.blocks;
    waitMs = Math.max(waitMs, performance.now() - due);
  }
  return { perSecond: (done / (performance.now() - start)) * 1_000, waitMs };
}

async function withLookups(workload: Workload, pool: PoolMemory, blocks: number, work: () => Drained) {
  const stop = new SharedArrayBuffer(4);
  const reader: Reader = { pool, queries: workload.queries, blocks, stop };
  const worker = new Worker(new URL(import.meta.url), { workerData: reader });
  await new Promise((resolve) => worker.once('message', resolve));
  const drained = work();
  Atomics.store(new Int32Array(stop), 0, 1);
  const lookups = await new Promise<Lookups>((resolve) => worker.once('message', resolve));
  await worker.terminate();
  return { ...drained, lookups };
}

/** Bytes of the index that were ever written, in whole pages. */
function writtenBytes(core: CoreInstance): number {
  const from = core.call.prefixHeadAddress() >>> 0;
  let region = 0;
  while (core.call.regionAddress(region) >>> 0 !== from) region++;
  const words = new Uint32Array(core.memory.buffer, from, (core.call.regionSize(region) >>> 0) / 4);
  let pages = 0;
  for (let at = 0; at < words.length; at += PAGE_WORDS) {
    if (words.subarray(at, at + PAGE_WORDS).some((word) => word !== 0)) pages++;
  }
  return pages * PAGE_WORDS * 4;
}

/** Engine messages from their bytes to the index: decoded, hashed and stored. @returns blocks in a second */
function messages(core: CoreInstance, index: Workload['index']): number {
  const [count, size] = [2_000, 16];
  const services = {
    index,
    chain: new TokenChain(core),
    blockTokens: size,
    blocksMost: 1e6,
    counts: new EventCounts(),
  };
  const engine = new EngineBlocks(0, services);
  const payloads = Array.from({ length: count }, (_, i) => {
    const hashes = Array.from({ length: EVENT_BLOCKS }, (_, j) => i * EVENT_BLOCKS + j + 1);
    const tokens = Array.from({ length: EVENT_BLOCKS * size }, (_, j) => (i * 7_919 + j * 31) % 150_000);
    return encode([1.5, [['BlockStored', hashes, null, tokens, size, null, 'GPU']], 0]);
  });
  for (const payload of payloads.slice(0, 200)) engine.apply(decodeEvents(payload), 'm');
  engine.clear('cache-cleared');
  const start = performance.now();
  for (const payload of payloads) engine.apply(decodeEvents(payload), 'm');
  return ((count * EVENT_BLOCKS) / (performance.now() - start)) * 1_000;
}

async function* drained(blocks: number, endpoints: number, operations: number): AsyncGenerator<object> {
  const name = `index-drain/${blocks}-blocks-${endpoints}ep`;
  const workload = makeWorkload(blocks, endpoints, 1e6);
  const { pool, core, index } = workload;
  const bytesPerHolder = writtenBytes(core) / index.counters().memberships;
  const batches = batchesOf(workload);
  const all = () => drain(core, batches, operations, Number.POSITIVE_INFINITY);
  all();
  yield { name: `${name}/alone`, bytesPerHolder, ...all() };
  yield { name: `${name}/overload`, ...(await withLookups(workload, pool, blocks, all)) };
  const rated = () => drain(core, batches, operations / 4, KEPT_UP);
  yield { name: `${name}/keep-up`, ...(await withLookups(workload, pool, blocks, rated)) };
  if (blocks === 64) yield { name: `${name}/messages`, perSecond: messages(core, index) };
}

export const reports: readonly Report[] = [
  {
    name: 'index-drain',
    timeMs: 1_000,
    async *run(timeMs) {
      for (const blocks of [64, 1560]) yield* drained(blocks, 64, timeMs * OPERATIONS_PER_MS);
    },
  },
];

if (!isMainThread) look(workerData as Reader);
