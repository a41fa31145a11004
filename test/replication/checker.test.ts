import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LinkEvents, ReplicaLink } from '../../dist/src/replication/link.js';
import type { LoadRow, Placement } from '../../dist/src/replication/messages.js';
import type { ReplicatedPool } from '../../dist/src/replication/replicated-pool.js';
import { Replicator } from '../../dist/src/replication/replicator.js';
import { stress } from '../core/index-pool.ts';

const TICK_MS = 10;
/** A charge may be known for so long after its request, and views are equal so long after the last change. */
const BOUND_MS = 1_000;
/** The same while single messages are lost, which a connection does not do: the next full update may be lost too. */
const LOSSY_BOUND_MS = 6_000;
const ENDPOINTS = [1n, 2n, 3n];

/** Messages under way between replicas, in simulated time. Those of one sender to one receiver arrive in order. */
class Network {
  nowMs = 0;
  /** Delays and losses, by turns. */
  readonly #random: () => number;
  readonly replicas = new Map<string, Node>();
  #queue: { readonly dueMs: number; readonly to: Node; readonly bytes: Uint8Array }[] = [];
  readonly #lastDue = new Map<string, number>();
  delayMs = 5;
  loss = 0;
  lossyMs = Number.NEGATIVE_INFINITY;

  constructor(random: () => number) {
    this.#random = random;
  }

  send(from: Node, to: Node, bytes: Uint8Array): void {
    if (!to.connected || this.#random() < this.loss) return;
    const pair = `${from.name} ${to.name}`;
    const dueMs = Math.max(this.nowMs + this.#random() * this.delayMs, this.#lastDue.get(pair) ?? 0);
    this.#lastDue.set(pair, dueMs);
    this.#queue.push({ dueMs, to, bytes });
  }

  /** Lets time pass. @param check called after every tick */
  run(ms: number, check: () => void): void {
    for (const end = this.nowMs + ms; this.nowMs < end; ) {
      this.nowMs += TICK_MS;
      if (this.loss > 0) this.lossyMs = this.nowMs;
      const due = this.#queue.filter(({ dueMs }) => dueMs <= this.nowMs);
      this.#queue = this.#queue.filter(({ dueMs }) => dueMs > this.nowMs);
      for (const { to, bytes } of due) if (to.alive && to.connected) to.replicator.receive(bytes, this.nowMs);
      for (const node of this.replicas.values()) if (node.alive) node.tick();
      check();
    }
  }
}

/** A replica with a pool of plain numbers. */
class Node implements ReplicatedPool, ReplicaLink {
  readonly name: string;
  connected = true;
  alive = true;
  readonly own = new Map<bigint, number>(ENDPOINTS.map((endpoint) => [endpoint, 0]));
  /** Own load on every endpoint at each tick of the last seconds. */
  readonly history: { readonly atMs: number; readonly own: ReadonlyMap<bigint, number> }[] = [];
  readonly known = new Map<bigint, number>();
  readonly prompts = new Set<bigint>();
  readonly #network: Network;
  #placed: Placement[] = [];
  replicator: Replicator;

  constructor(name: string, network: Network) {
    this.name = name;
    this.#network = network;
    this.replicator = this.#start();
  }

  #start(): Replicator {
    return new Replicator({
      replica: this.name,
      epoch: 1 + this.#network.nowMs,
      seedCheck: 1,
      sharesIndex: true,
      pool: this,
      link: this,
      wallMs: () => this.#network.nowMs,
      log: () => undefined,
    });
  }

  tick(): void {
    this.history.push({ atMs: this.#network.nowMs, own: new Map(this.own) });
    while (this.history[0]!.atMs < this.#network.nowMs - LOSSY_BOUND_MS) this.history.shift();
    this.replicator.tick(this.#network.nowMs);
  }

  /** The process dies; its requests end with it. */
  kill(): void {
    this.alive = false;
    for (const endpoint of ENDPOINTS) this.own.set(endpoint, 0);
  }

  restart(): void {
    if (this.alive) return;
    this.alive = true;
    this.known.clear();
    this.prompts.clear();
    this.#placed = [];
    this.replicator = this.#start();
  }

  charge(endpoint: bigint, by: number): void {
    if (this.alive) this.own.set(endpoint, Math.max(0, this.own.get(endpoint)! + by));
  }

  place(block: bigint): void {
    if (!this.alive) return;
    this.prompts.add(block);
    this.#placed.push({ endpoint: 1n, parent: undefined, hashes: BigUint64Array.of(block), tail: undefined });
  }

  connect(connected: boolean): void {
    const before = this.connected;
    this.connected = connected;
    if (connected && !before && this.alive) this.replicator.connected(this.#network.nowMs);
  }

  // ---- the link

  open(_events: LinkEvents): void {}

  broadcast(bytes: Uint8Array): void {
    for (const other of this.#network.replicas.values()) if (other !== this) this.#network.send(this, other, bytes);
  }

  send(replica: string, bytes: Uint8Array): void {
    const other = this.#network.replicas.get(replica);
    if (other !== undefined) this.#network.send(this, other, bytes);
  }

  async close(): Promise<void> {}

  // ---- the pool

  changed(): boolean {
    return true;
  }

  loads(): Iterable<LoadRow> {
    const none = { tokens: 0, prefill: 0, prompt: 0, output: 0, pending: 0, held: 0, charged: 0 };
    return [...this.own].map(([endpoint, requests]) => ({ endpoint, requests, ...none }));
  }

  placements(visit: (placement: Placement) => void): number {
    for (const placement of this.#placed) visit(placement);
    this.#placed = [];
    return 0;
  }

  applyPlacements(placements: readonly Placement[]): void {
    for (const { hashes } of placements) for (const hash of hashes) this.prompts.add(hash);
  }

  applyLoad(endpoint: bigint, { requests }: { readonly requests: number }): void {
    this.known.set(endpoint, requests);
  }

  async exportIndex(piece: Parameters<ReplicatedPool['exportIndex']>[0]): Promise<void> {
    const hashes = [...this.prompts];
    const segments = hashes.map((hash, i) => ({
      segment: i + 1,
      parent: 0,
      parentHash: undefined,
      age: 0,
      depth: 0,
      hashes: BigUint64Array.of(hash),
      runs: [{ end: 1, slots: [0] }],
    }));
    await piece([1n], segments);
  }

  async importIndex(_endpoints: readonly bigint[], segments: Parameters<ReplicatedPool['importIndex']>[1]) {
    for (const { hashes } of segments) for (const hash of hashes) this.prompts.add(hash);
  }

  turns = () => 0;
  applyTurns = () => undefined;
  forgetTurns = () => undefined;
  countsSessions = () => false;
  exportSessions = () => [][Symbol.iterator]();
  learnSessions = () => undefined;
  ejections = () => [];
  ejected = () => [];
  spendings = () => [];
  learned = () => undefined;
  applyEjection(): void {}
  applySpent(): void {}
  applyLearned(): void {}
  peersChanged(): void {}
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant('charge' as const), by: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 6, arbitrary: fc.record({ what: fc.constant('release' as const), by: fc.integer({ min: -5, max: -1 }) }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('place' as const) }) },
  ...(['partition', 'heal', 'kill', 'restart'] as const).map((what) => ({
    weight: 1,
    arbitrary: fc.record({ what: fc.constant(what) }),
  })),
  { weight: 1, arbitrary: fc.record({ what: fc.constant('delay' as const), ms: fc.nat(150) }) },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('loss' as const), share: fc.double({ min: 0, max: 0.5, noNaN: true }) }),
  },
);
const history = fc.array(
  fc.record({ step, replica: fc.nat(3), endpoint: fc.nat(2), pauseMs: fc.integer({ min: 0, max: 400 }) }),
  { maxLength: 40 },
);

/** No replica knows more load on an endpoint than its peers have had there within the last second. */
function nothingOutlives(network: Network): void {
  const bound = network.nowMs - network.lossyMs < LOSSY_BOUND_MS ? LOSSY_BOUND_MS : BOUND_MS;
  for (const node of network.replicas.values()) {
    if (!node.alive) continue;
    for (const [endpoint, known] of node.known) {
      let most = 0;
      for (const peer of network.replicas.values()) {
        if (peer === node) continue;
        const recent = peer.history.filter(({ atMs }) => atMs >= network.nowMs - bound - TICK_MS);
        most += Math.max(0, ...recent.map(({ own }) => own.get(endpoint)!));
      }
      expect(known, `${node.name} on ${endpoint} at ${network.nowMs}`).toBeLessThanOrEqual(most);
    }
  }
}

function viewsAreEqual(network: Network): void {
  for (const node of network.replicas.values()) {
    for (const endpoint of ENDPOINTS) {
      let others = 0;
      for (const peer of network.replicas.values()) if (peer !== node) others += peer.own.get(endpoint)!;
      expect(node.known.get(endpoint) ?? 0, `${node.name} on ${endpoint}`).toBe(others);
    }
  }
}

describe('replicas under faults', () => {
  it(
    'no charge outlives its request by more than a second, none counts twice, and views are equal after a second',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          history,
          fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
          async (steps, random) => {
            const network = new Network(() => random.next().value as number);
            for (const name of ['a', 'b', 'c', 'd']) network.replicas.set(name, new Node(name, network));
            const nodes = [...network.replicas.values()];
            let block = 1n;
            const check = () => nothingOutlives(network);
            for (const { step, replica, endpoint, pauseMs } of steps) {
              const node = nodes[replica]!;
              if (step.what === 'charge' || step.what === 'release') node.charge(ENDPOINTS[endpoint]!, step.by);
              else if (step.what === 'place') node.place(block++);
              else if (step.what === 'partition') node.connect(false);
              else if (step.what === 'heal') node.connect(true);
              else if (step.what === 'kill') node.kill();
              else if (step.what === 'restart') node.restart();
              else if (step.what === 'delay') network.delayMs = step.ms;
              else if (step.what === 'loss') network.loss = step.share;
              network.run(pauseMs, check);
              // Answers with an index are sent by promises.
              await Promise.resolve();
            }
            network.delayMs = 5;
            network.loss = 0;
            for (const node of nodes) {
              node.restart();
              node.connect(true);
            }
            network.run(BOUND_MS + 200, check);
            viewsAreEqual(network);
          },
        ),
        { numRuns: 60 * stress },
      );
    },
    30_000 * stress,
  );

  it('prompts that were placed behind a partition are known to all once it has healed', async () => {
    const network = new Network(() => 0.5);
    for (const name of ['a', 'b', 'c']) network.replicas.set(name, new Node(name, network));
    const [a, b, c] = [...network.replicas.values()];
    network.run(100, () => undefined);
    a!.connect(false);
    a!.place(1n);
    b!.place(2n);
    network.run(2_000, () => undefined);
    expect([b!.prompts.has(1n), a!.prompts.has(2n), c!.prompts.has(2n)]).toEqual([false, false, true]);
    a!.connect(true);
    for (let i = 0; i < 200; i++) {
      network.run(50, () => undefined);
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const node of [a, b, c]) expect([...node!.prompts].sort()).toEqual([1n, 2n]);
  });
});
