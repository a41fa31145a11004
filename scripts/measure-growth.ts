// Measures how replication grows: `node scripts/measure-growth.ts [--replicas 4,16] [--rate 20000] [--cpu 0.25]`.
// --json prints a line for each number of replicas, without the burst.
//
// Replicas in one process, each with the core, the pool and the replicator of a picker; messages arrive half a
// millisecond after they were sent. Time is simulated, CPU time is not: it is that of the calls of the replicators, no
// sockets. The caches of the engines are lists of blocks, so a hit is one of the engine, not one of the index.
// Conversations: each turn has the prompt of the one before and eight blocks more, and comes to any replica.
import { parseArgs } from 'node:util';
import {
  attachCore,
  createPoolMemory,
  Decider,
  defaultPoolSizes,
  EndpointTable,
  ProgramTable,
} from '../dist/src/core/index.js';
import { PoolReplica } from '../dist/src/picker/control/pool-replica.js';
import type { ReplicaLink } from '../dist/src/replication/link.js';
import { Replicator } from '../dist/src/replication/replicator.js';
import { plainRequest } from '../test/core/pool.ts';
import { replicaAssignments, SILENT_STATE } from '../test/picker/replica-parts.ts';
import { EngineCache } from './engine-cache.ts';

const { values } = parseArgs({
  options: {
    replicas: { type: 'string', default: '1,4,16,64' },
    rate: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '3' },
    endpoints: { type: 'string', default: '64' },
    cpu: { type: 'string', default: '0.25' },
    warm: { type: 'string', default: '4' },
    json: { type: 'boolean', default: false },
  },
});
const RATE = Number(values.rate);
const SECONDS = Number(values.seconds);
const ENDPOINTS = Number(values.endpoints);
const TURN_BLOCKS = 8;
const TURNS_MAX = 8;
/** Every conversation has a turn a second. */
const CONVERSATIONS = RATE;
/** The caches hold all conversations. */
const CACHE_BLOCKS = Math.ceil((1.2 * TURN_BLOCKS * TURNS_MAX * CONVERSATIONS) / ENDPOINTS);
/** Blocks of an index: a power of two above what the caches hold, twice. */
const INDEX_BLOCKS = 2 ** Math.ceil(Math.log2(2 * CACHE_BLOCKS * ENDPOINTS));
const HOLD_MS = 200;
const WARM_MS = 1_000 * Number(values.warm);
const DELAY_MS = 0.5;
const STEP_MS = 0.5;
const BURST = 40 * ENDPOINTS;
const none = () => undefined;

let nowMs = 1_000;

interface Letter {
  readonly atMs: number;
  readonly from: string;
  /** The empty text = all. */
  readonly to: string;
  readonly bytes: Uint8Array;
}

/** Messages under way. */
class Wire {
  #queue: Letter[] = [];

  put(from: string, to: string, bytes: Uint8Array): void {
    this.#queue.push({ atMs: nowMs + DELAY_MS, from, to, bytes });
  }

  deliver(replicas: readonly Replica[]): void {
    const due = this.#queue.filter(({ atMs }) => atMs <= nowMs);
    if (due.length === 0) return;
    this.#queue = this.#queue.filter(({ atMs }) => atMs > nowMs);
    for (const replica of replicas)
      replica.receive(due.filter(({ from, to }) => from !== replica.name && (to === '' || to === replica.name)));
  }
}

/** A picker without its sockets. */
class Replica {
  readonly name: string;
  readonly decider: Decider;
  readonly replicator: Replicator;
  /** CPU time of the exchange, ms. */
  spentMs = 0;
  #nextMs: number;
  readonly #hashes: BigUint64Array;

  constructor(index: number, wire: Wire) {
    this.name = `r${String(index).padStart(3, '0')}`;
    this.#nextMs = nowMs + (index % 10) / 2;
    const sizes = { ...defaultPoolSizes, endpoints: 128, indexBlocks: INDEX_BLOCKS, threads: 2, changeBytes: 1 << 20 };
    const memory = createPoolMemory(sizes, { hashSeed: 7n });
    const control = attachCore(memory, 0);
    const operations = [
      { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [] },
      { code: 'OP_SCORE_ACTIVE_REQUEST', weight: 2, parameters: [] },
      { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
    ] as const;
    new ProgramTable(control).publish(0, operations, { inserts: true });
    const table = new EndpointTable(control);
    for (let slot = 0; slot < ENDPOINTS; slot++) {
      table.open(slot, 1);
      table.setCapacity(slot, CACHE_BLOCKS);
      table.setState(slot, 'live');
    }
    const assignments = replicaAssignments(ENDPOINTS);
    const pool = new PoolReplica({ core: control, assignments: () => assignments, state: SILENT_STATE });
    pool.endpointsChanged();
    const link: ReplicaLink = {
      connected: true,
      open: none,
      broadcast: (bytes) => wire.put(this.name, '', bytes),
      send: (to, bytes) => wire.put(this.name, to, bytes),
      close: async () => undefined,
    };
    const shared = { replica: this.name, epoch: 1, seedCheck: 1, sharesIndex: true, pool, link, log: none };
    const pace = { cpuShare: Number(values.cpu), workMs: () => process.threadCpuUsage().user / 1_000 };
    this.replicator = new Replicator({ ...shared, ...pace, wallMs: () => nowMs });
    this.replicator.alone();
    const shard = attachCore(memory, 1);
    this.decider = new Decider(shard, BigInt(index + 1));
    this.#hashes = new BigUint64Array(memory.memory.buffer, shard.call.hashesAddress() >>> 0, sizes.chainBlocks);
  }

  #timed(work: () => void): void {
    const began = process.threadCpuUsage().user;
    work();
    this.spentMs += (process.threadCpuUsage().user - began) / 1_000;
  }

  receive(letters: readonly Letter[]): void {
    this.#timed(() => {
      for (const { bytes } of letters) this.replicator.receive(bytes, nowMs);
    });
  }

  tick(): void {
    if (nowMs < this.#nextMs) return;
    this.#timed(() => this.replicator.tick(nowMs));
    this.#nextMs = nowMs + 5;
  }

  place(chain: readonly bigint[]) {
    for (let i = 0; i < chain.length; i++) this.#hashes[i] = chain[i]!;
    return this.decider.decide({ ...plainRequest, blocks: chain.length, promptTokens: 64 * chain.length, nowMs });
  }
}

let random = 1;
function below(limit: number): number {
  random = (random * 48_271) % 2_147_483_647;
  return random % limit;
}

/** Requests in flight, released when their time has come. */
const ends: { readonly atMs: number; readonly release: () => unknown }[] = [];

function step(replicas: readonly Replica[], wire: Wire): void {
  nowMs += STEP_MS;
  while (ends.length > 0 && ends[0]!.atMs <= nowMs) ends.shift()!.release();
  wire.deliver(replicas);
  for (const replica of replicas) replica.tick();
}

interface Totals {
  readonly spentMs: number;
  readonly bytes: number;
  readonly messages: number;
  /** Placements that were left out. */
  readonly untold: number;
}

function totals(replicas: readonly Replica[]): Totals {
  const sum = (of: (replica: Replica) => number) => replicas.reduce((total, each) => total + of(each), 0);
  return {
    spentMs: sum(({ spentMs }) => spentMs),
    bytes: sum(({ replicator }) => replicator.counts.sentBytes),
    messages: sum(({ replicator }) => replicator.counts.sentMessages),
    untold: sum(({ replicator }) => replicator.counts.untoldPlacements),
  };
}

/** Places a prompt at a replica that is drawn. @returns the slot and the end of the request */
function placeAnywhere(replicas: readonly Replica[], chain: readonly bigint[]) {
  const replica = replicas[below(replicas.length)]!;
  const { slots, ticket, ticketGeneration } = replica.place(chain);
  return { slot: slots[0]!, release: () => replica.decider.release(ticket, ticketGeneration) };
}

/** Share of the prompts' blocks that the engines' caches held, after some seconds of warming up, and what it took. */
function conversations(replicas: readonly Replica[], wire: Wire) {
  const caches = Array.from({ length: ENDPOINTS }, () => new EngineCache(CACHE_BLOCKS));
  const chains = Array.from({ length: CONVERSATIONS }, () => [] as bigint[]);
  const warmAtMs = nowMs + WARM_MS;
  const endMs = warmAtMs + 1_000 * SECONDS;
  let next = 1n;
  let [hits, blocks, requests, owed] = [0, 0, 0, 0];
  let before: Totals | undefined;
  while (nowMs < endMs) {
    if (nowMs >= warmAtMs) before ??= totals(replicas);
    for (owed += (RATE * STEP_MS) / 1_000; owed >= 1; owed--) {
      const at = below(CONVERSATIONS);
      if (chains[at]!.length >= TURN_BLOCKS * TURNS_MAX) chains[at] = [];
      const chain = chains[at]!;
      for (let block = 0; block < TURN_BLOCKS; block++) chain.push(next++);
      const { slot, release } = placeAnywhere(replicas, chain);
      const held = caches[slot]!.serve(chain);
      ends.push({ atMs: nowMs + HOLD_MS, release });
      if (before === undefined) continue;
      hits += held;
      blocks += chain.length;
      requests++;
    }
    step(replicas, wire);
  }
  const after = totals(replicas);
  const spentMs = after.spentMs - before!.spentMs;
  return {
    hitRate: hits / blocks,
    cores: spentMs / replicas.length / (1_000 * SECONDS),
    microseconds: (1_000 * spentMs) / replicas.length / requests,
    bytes: (after.bytes - before!.bytes) / requests,
    messages: (after.messages - before!.messages) / SECONDS,
    untold: (after.untold - before!.untold) / requests,
  };
}

/** Largest load of an endpoint over the mean, of prompts without a cache that come within 200 ms and stay. */
function burst(replicas: readonly Replica[], wire: Wire): number {
  while (ends.length > 0) step(replicas, wire);
  for (let i = 0; i < 400; i++) step(replicas, wire);
  const counts = Array.from({ length: ENDPOINTS }, () => 0);
  let next = 1n << 40n;
  let owed = 0;
  for (let placed = 0; placed < BURST; ) {
    for (owed += (BURST * STEP_MS) / 200; owed >= 1 && placed < BURST; owed--, placed++) {
      const { slot, release } = placeAnywhere(replicas, [next++, next++, next++]);
      counts[slot]!++;
      ends.push({ atMs: nowMs + 10_000, release });
    }
    step(replicas, wire);
  }
  for (const { release } of ends.splice(0)) release();
  return Math.max(...counts) / (BURST / ENDPOINTS);
}

const rows: Record<string, Record<string, string>> = {};
for (const count of values.replicas.split(',').map(Number)) {
  random = 1;
  const wire = new Wire();
  const replicas = Array.from({ length: count }, (_, index) => new Replica(index, wire));
  for (let i = 0; i < 400; i++) step(replicas, wire);
  const measured = conversations(replicas, wire);
  if (values.json) {
    console.log(JSON.stringify({ replicas: count, ...measured }));
    continue;
  }
  rows[`${count}`] = {
    'hit rate': `${(100 * measured.hitRate).toFixed(1)} %`,
    'cores a replica': measured.cores.toFixed(3),
    'CPU of a replica, µs a request of the pool': measured.microseconds.toFixed(2),
    'bytes sent a request': measured.bytes.toFixed(0),
    'interval, ms': Math.max(...replicas.map(({ replicator }) => replicator.intervalMs)).toFixed(0),
    'messages sent a second': measured.messages.toFixed(0),
    'placements left out': `${(100 * measured.untold).toFixed(0)} %`,
    'burst, max / mean': burst(replicas, wire).toFixed(2),
  };
  console.table(rows);
}
process.exit(0);
