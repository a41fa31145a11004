// Measures replicas on NATS: `node scripts/measure-replicas.ts` (needs a nats-server, see scripts/install-nats.sh).
//
// In one process: pools of their own memory, each with a decider and a replicator, over a real nats-server. Requests go
// round robin to the replicas. The engines' caches are played by LRU lists of blocks, so that a hit is one of the
// engine's cache, not one of the picker's index. Conversations: each turn has the prompt of the one before and eight
// blocks more.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import {
  attachCore,
  createPoolMemory,
  Decider,
  defaultPoolSizes,
  EndpointTable,
  ProgramTable,
} from '../dist/src/core/index.js';
import { PoolReplica } from '../dist/src/picker/control/pool-replica.js';
import { NatsLink } from '../dist/src/replication/nats-link.js';
import { Replicator } from '../dist/src/replication/replicator.js';
import { plainRequest as request } from '../test/core/pool.ts';
import { replicaAssignments, SILENT_STATE } from '../test/picker/replica-parts.ts';
import { NatsServer } from '../test/replication/nats-server.ts';
import { EngineCache } from './engine-cache.ts';

const ENDPOINTS = 8;
const CONVERSATIONS = 240;
const TURN_BLOCKS = 8;
const CACHE_BLOCKS = 12_000;
const REQUESTS = Number(process.env.REPLICA_REQUESTS ?? 4_000);
const REQUESTS_PER_MS = 1;
const HOLD_MS = 200;
const BURST = 400;
const TICK_MS = 5;

const now = () => performance.timeOrigin + performance.now();

/** A picker's core with its programs and endpoints; replicated when a NATS server is given. */
class Picker {
  readonly core;
  readonly decider;
  readonly control;
  readonly hashes: BigUint64Array;
  replicator: Replicator | undefined;
  link: NatsLink | undefined;
  /** CPU time of the exchange, ms. */
  spentMs = 0;
  readonly lags: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(seed: bigint, changeBytes: number) {
    const sizes = { ...defaultPoolSizes, endpoints: 64, indexBlocks: 262_144, threads: 2, changeBytes };
    const memory = createPoolMemory(sizes, { hashSeed: 7n });
    this.control = attachCore(memory, 0);
    const operations = [
      { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [] },
      { code: 'OP_SCORE_ACTIVE_REQUEST', weight: 2, parameters: [] },
      { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
    ] as const;
    new ProgramTable(this.control).publish(0, operations, { inserts: true });
    const table = new EndpointTable(this.control);
    for (let slot = 0; slot < ENDPOINTS; slot++) {
      table.open(slot, 1);
      table.setCapacity(slot, CACHE_BLOCKS);
      table.setState(slot, 'live');
    }
    this.core = attachCore(memory, 1);
    this.decider = new Decider(this.core, seed);
    this.hashes = new BigUint64Array(memory.memory.buffer, this.core.call.hashesAddress() >>> 0, sizes.chainBlocks);
  }

  async replicate(url: string, group: string, name: string): Promise<void> {
    const assignments = replicaAssignments(ENDPOINTS);
    const none = () => undefined;
    const pool = new PoolReplica({ core: this.control, assignments: () => assignments, state: SILENT_STATE });
    pool.endpointsChanged();
    this.link = new NatsLink({ url, group, replica: name });
    this.replicator = new Replicator({
      replica: name,
      epoch: Date.now(),
      seedCheck: 1,
      sharesIndex: true,
      pool,
      link: this.link,
      wallMs: now,
      log: none,
    });
    this.replicator.lag = (ms) => this.lags.push(ms);
    const timed = (work: () => void) => {
      const began = performance.now();
      work();
      this.spentMs += performance.now() - began;
    };
    this.link.open({
      message: (bytes) => timed(() => this.replicator!.receive(bytes, performance.now())),
      connected: () => this.replicator!.connected(performance.now()),
      disconnected: none,
      alone: () => this.replicator!.alone(),
    });
    this.#timer = setInterval(() => timed(() => this.replicator!.tick(performance.now())), TICK_MS);
    while (!this.replicator.joined) await pause(5);
  }

  place(chain: readonly bigint[]) {
    for (let i = 0; i < chain.length; i++) this.hashes[i] = chain[i]!;
    return this.decider.decide({ ...request, blocks: chain.length, promptTokens: 64 * chain.length, nowMs: now() });
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.link?.close();
  }
}

let random = 1;
function below(limit: number): number {
  random = (random * 48_271) % 2_147_483_647;
  return random % limit;
}

async function pickers(count: number, url: string | undefined, group: string): Promise<Picker[]> {
  const all = Array.from({ length: count }, (_, i) => new Picker(BigInt(i + 1), url === undefined ? 0 : 1 << 20));
  for (const [i, picker] of all.entries()) if (url !== undefined) await picker.replicate(url, group, `r${i}`);
  if (url !== undefined) while (all.some(({ replicator }) => replicator!.livePeers < count - 1)) await pause(5);
  return all;
}

/** Hit rate of conversations that are spread round robin. */
async function conversations(all: readonly Picker[]): Promise<number> {
  random = 1;
  let next = 1n;
  const chains = Array.from({ length: CONVERSATIONS }, () => [] as bigint[]);
  const caches = Array.from({ length: ENDPOINTS }, () => new EngineCache(CACHE_BLOCKS));
  let [hits, blocks] = [0, 0];
  const began = performance.now();
  for (let i = 0; i < REQUESTS; i++) {
    while (performance.now() - began < i / REQUESTS_PER_MS) await nextTurn();
    const chain = chains[below(CONVERSATIONS)]!;
    for (let block = 0; block < TURN_BLOCKS; block++) chain.push(next++);
    const picker = all[i % all.length]!;
    const { slots, ticket, ticketGeneration } = picker.place(chain);
    hits += caches[slots[0]!]!.serve(chain);
    blocks += chain.length;
    setTimeout(() => picker.decider.release(ticket, ticketGeneration), HOLD_MS);
  }
  await pause(HOLD_MS + 50);
  return hits / blocks;
}

/** Largest load of an endpoint over the mean, of requests that come within 200 ms and stay. */
async function burst(all: readonly Picker[]): Promise<number> {
  const counts = Array.from({ length: ENDPOINTS }, () => 0);
  const held: (() => unknown)[] = [];
  let next = 1n << 40n;
  const began = performance.now();
  for (let i = 0; i < BURST; i++) {
    while (performance.now() - began < i / 2) await nextTurn();
    // Bursts are not spread evenly over the replicas either: each sends to one for a moment.
    const picker = all[below(all.length)]!;
    const { slots, ticket, ticketGeneration } = picker.place([next++, next++, next++]);
    counts[slots[0]!]!++;
    held.push(() => picker.decider.release(ticket, ticketGeneration));
  }
  for (const release of held) release();
  return Math.max(...counts) / (BURST / ENDPOINTS);
}

async function lagOfInserts(all: readonly Picker[], ms: number): Promise<number[]> {
  for (const picker of all) picker.lags.length = 0;
  let next = 1n << 41n;
  const began = performance.now();
  let placed = 0;
  while (performance.now() - began < ms) {
    // 100,000 blocks per second in prompts of 50.
    if (placed < (performance.now() - began) * 2) {
      const { ticket, ticketGeneration } = all[0]!.place(Array.from({ length: 50 }, () => next++));
      all[0]!.decider.release(ticket, ticketGeneration);
      placed++;
    } else await nextTurn();
  }
  await pause(100);
  return all
    .slice(1)
    .flatMap(({ lags }) => lags)
    .sort((a, b) => a - b);
}

/** Nanoseconds that the ring adds to a decision. */
function costOfRing(): number {
  const [without, withRing] = [new Picker(1n, 0), new Picker(1n, 1 << 20)];
  const chain = Array.from({ length: 32 }, (_, i) => BigInt(i + 1));
  const time = (picker: Picker) => {
    const began = performance.now();
    for (let i = 0; i < 20_000; i++) {
      const { ticket, ticketGeneration } = picker.place(chain);
      picker.decider.release(ticket, ticketGeneration);
      // Nobody reads the ring: it is made empty.
      if (i % 1_000 === 0) emptyRing(picker);
    }
    return performance.now() - began;
  };
  const differences = Array.from({ length: 11 }, () => time(withRing) - time(without)).sort((a, b) => a - b);
  return (differences[5]! / 20_000) * 1e6;
}

function emptyRing({ control }: Picker): void {
  if ((control.sizes.changeBytes ?? 0) === 0) return;
  const ring = control.call.changesAddress(1) >>> 2;
  control.i32[ring + 16] = control.i32[ring]!;
}

const server = await NatsServer.start();
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
const rows: Record<string, Record<string, string>> = {};
for (const [name, count, url] of [
  ['one picker', 1, undefined],
  ['four without sharing', 4, undefined],
  ['four that share', 4, server.url],
] as const) {
  const all = await pickers(count, url, 'hits');
  const hitRate = await conversations(all);
  const spentMs = all.reduce((sum, picker) => sum + picker.spentMs, 0);
  const bytes = all.reduce((sum, { replicator }) => sum + (replicator?.counts.sentBytes ?? 0), 0);
  const evenness = await burst(all);
  rows[name] = {
    'hit rate': percent(hitRate),
    'burst, max / mean': evenness.toFixed(2),
    'CPU of all replicas a request': `${((1_000 * spentMs) / REQUESTS).toFixed(1)} µs`,
    'bytes sent a request': (bytes / REQUESTS).toFixed(0),
  };
  for (const picker of all) await picker.stop();
}
console.table(rows);
const two = await pickers(2, server.url, 'lag');
const lags = await lagOfInserts(two, 5_000);
const at = (share: number) => lags[Math.floor(share * (lags.length - 1))]!.toFixed(2);
console.log(
  `lag of 100,000 blocks/s, send to receipt: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, beside up to ${TICK_MS} ms for ` +
    'a batch',
);
console.log(
  `blocks known to the other: ${two[1]!.control.call.prefixCounter(0) >>> 0}, lost ` +
    `${two[0]!.replicator!.counts.lostPlacements}`,
);
for (const picker of two) await picker.stop();
await server.stop();
console.log(`ring of placed prompts: ${costOfRing().toFixed(0)} ns a decision`);
process.exit(0);
