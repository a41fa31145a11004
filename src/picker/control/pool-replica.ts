import { endpointAddress, type SlotAssignment } from '../../contract/endpoint.js';
import type { ExportedSegment } from '../../core/index-export.js';
import { IndexLog } from '../../core/index-log.js';
import { LoadTable, type RequestLoad, SLOT_WORDS } from '../../core/load-table.js';
import type { CoreInstance } from '../../core/memory.js';
import { PlacedPrompts, sameGeneration } from '../../core/placed-prompts.js';
import { peerTag, SessionNews } from '../../core/session-news.js';
import { endpointKey } from '../../replication/endpoint-key.js';
import type { LoadSum } from '../../replication/endpoint-sums.js';
import { atPositions, exportIndex, importSegments } from '../../replication/index-transfer.js';
import type { EjectionNews, LoadRow, Placement, Spending, ToldSession, TurnNews } from '../../replication/messages.js';
import type { HeardPeers, ReplicatedPool } from '../../replication/replicated-pool.js';
import { LOCK_RETRY_MS, LockRetry } from '../../runtime/lock-retry.js';
import { poolClockMs } from '../../runtime/pool-clock.js';

/** Sessions of one piece: some 12 KiB, and half a millisecond to read or to enter. */
const SESSIONS_AT_ONCE = 256;

/** State that replicas share beside load and prompts. */
export type SharedState = Pick<
  ReplicatedPool,
  'spendings' | 'learned' | 'applySpent' | 'applyLearned' | 'peersChanged'
>;

export interface PoolReplicaOptions {
  readonly core: CoreInstance;
  readonly assignments: () => readonly SlotAssignment[];
  readonly state: SharedState;
  /** Called when a peer says that an endpoint is out: it may be dead for this picker too. */
  readonly hinted?: ((slot: number, generation: number) => void) | undefined;
}

/** Load of an endpoint as known to this replica. */
export interface KnownLoad {
  /** Name of the endpoint. */
  readonly endpoint: string;
  readonly address: string;
  readonly own: RequestLoad;
  readonly peers: ReturnType<LoadTable['peers']>;
}

interface Followed {
  readonly slot: number;
  readonly generation: number;
  readonly endpoint: bigint;
  /** Requests sent there from here. */
  charged: number;
  /** Whether the endpoint is ejected, as peers were told last. */
  out: boolean;
  /** Whether its load may differ from what was told last. */
  changed: boolean;
}

/**
 * The pool of this process for replication: slots on this side, keys of endpoints on the other. Control thread only.
 */
export class PoolReplica implements ReplicatedPool {
  readonly #options: PoolReplicaOptions;
  readonly #loads: LoadTable;
  readonly #placed: PlacedPrompts;
  readonly #turns: SessionNews;
  readonly #log: IndexLog;
  readonly #writes = new LockRetry({ pauseMsMax: LOCK_RETRY_MS });
  #byKey = new Map<bigint, Followed>();
  #bySlot = new Map<number, Followed>();
  /** Endpoints in the order of the noted words. */
  #followed: Followed[] = [];
  #noted = new Uint32Array(0);
  #changed = true;

  constructor(options: PoolReplicaOptions) {
    this.#options = options;
    this.#loads = new LoadTable(options.core);
    this.#placed = new PlacedPrompts(options.core);
    this.#turns = new SessionNews(options.core);
    this.#writes.run(() => this.#turns.begin());
    this.#log = new IndexLog(options.core);
  }

  /** Follows the endpoints that the pool has now. */
  endpointsChanged(): void {
    this.#changed = true;
    const before = this.#byKey;
    this.#byKey = new Map();
    this.#bySlot = new Map();
    this.#followed = [];
    for (const { slot, generation, endpoint } of this.#options.assignments()) {
      const key = endpointKey(endpoint);
      const known = before.get(key);
      const same = known?.slot === slot && known.generation === generation;
      const charged = known?.charged ?? 0;
      const followed = same ? known : { slot, generation, endpoint: key, charged, out: false, changed: true };
      followed.changed = true;
      this.#byKey.set(key, followed);
      this.#bySlot.set(slot, followed);
      this.#followed.push(followed);
    }
    this.#noted = new Uint32Array(SLOT_WORDS * this.#followed.length);
  }

  /** Compares words of shared memory, a few for each endpoint: nothing is allocated while nothing happens. */
  changed(): boolean {
    let changed = this.#changed;
    this.#changed = false;
    for (let i = 0; i < this.#followed.length; i++) {
      const followed = this.#followed[i]!;
      if (!this.#loads.note(followed.slot, this.#noted, SLOT_WORDS * i)) continue;
      followed.changed = true;
      changed = true;
    }
    return changed;
  }

  /** Load of every endpoint: of this replica, and of its peers. */
  known(): readonly KnownLoad[] {
    return this.#options.assignments().map(({ slot, endpoint }) => ({
      endpoint: endpoint.name,
      address: endpointAddress(endpoint),
      own: this.#loads.own(slot),
      peers: this.#loads.peers(slot),
    }));
  }

  *loads(all: boolean): Iterable<LoadRow> {
    for (let i = 0; i < this.#followed.length; i++) {
      const followed = this.#followed[i]!;
      if (!all && !followed.changed) continue;
      followed.changed = false;
      const { endpoint, charged } = followed;
      yield { endpoint, charged, ...this.#loads.noted(this.#noted, SLOT_WORDS * i) };
    }
  }

  placements(visit: (placement: Placement) => void): number {
    return this.#placed.drain(({ slot, generation, parent, hashes, tail }) => {
      const followed = this.#bySlot.get(slot);
      if (followed === undefined || !sameGeneration(generation, followed.generation)) return;
      followed.charged++;
      followed.changed = true;
      this.#changed = true;
      if (hashes.length === 0 && tail === undefined) return;
      visit({ endpoint: followed.endpoint, parent, hashes: hashes.slice(), tail });
    });
  }

  /** The early anchor of a turn that ends is known from its begin. */
  turns(visit: (turn: TurnNews) => void): number {
    return this.#turns.drain(({ slot, generation, ...turn }) => {
      const followed = this.#bySlot.get(slot);
      if (followed?.generation !== generation) return;
      visit({ ...turn, endpoint: followed.endpoint, earlyAnchor: turn.begins ? turn.earlyAnchor : 0n });
    });
  }

  applyTurns(replica: string, turns: readonly TurnNews[]): void {
    const tag = peerTag(replica);
    for (const turn of turns) {
      const followed = this.#byKey.get(turn.endpoint);
      if (followed === undefined) continue;
      const { slot, generation } = followed;
      this.#writes.run(() => this.#turns.hear({ ...turn, slot, generation }, tag, poolClockMs()));
    }
  }

  forgetTurns(replica: string): void {
    this.#writes.run(() => this.#turns.peerGone(peerTag(replica)));
  }

  countsSessions(): boolean {
    return this.#turns.isOn;
  }

  *exportSessions(): Generator<readonly ToldSession[], void> {
    const known = this.#turns.known();
    for (let at = 0; at < known.length; at += SESSIONS_AT_ONCE) {
      yield Array.from(known.subarray(at, at + SESSIONS_AT_ONCE)).flatMap((entry) => this.#told(entry) ?? []);
    }
  }

  #told(entry: number): ToldSession | undefined {
    const placed = this.#turns.session(entry);
    if (placed === undefined) return undefined;
    const { slot, generation, ...session } = placed;
    const followed = this.#bySlot.get(slot);
    return followed?.generation === generation ? { ...session, endpoint: followed.endpoint } : undefined;
  }

  learnSessions(replica: string, sessions: readonly ToldSession[]): void {
    const tag = peerTag(replica);
    for (const session of sessions) {
      const followed = this.#byKey.get(session.endpoint);
      if (followed === undefined) continue;
      const { slot, generation } = followed;
      this.#writes.run(() => this.#turns.learn({ ...session, slot, generation }, tag, poolClockMs()));
    }
  }

  ejections(): readonly EjectionNews[] {
    const news: EjectionNews[] = [];
    for (const followed of this.#bySlot.values()) {
      const out = this.#loads.isEjected(followed.slot);
      if (out === followed.out) continue;
      followed.out = out;
      news.push({ endpoint: followed.endpoint, out });
    }
    return news;
  }

  ejected(): readonly EjectionNews[] {
    const all = [...this.#bySlot.values()];
    return all.filter(({ out }) => out).map(({ endpoint }) => ({ endpoint, out: true }));
  }

  spendings(all: boolean): readonly Spending[] {
    return this.#options.state.spendings(all);
  }

  learned(): Uint8Array | undefined {
    return this.#options.state.learned();
  }

  applyLoad(endpoint: bigint, load: LoadSum): void {
    const followed = this.#byKey.get(endpoint);
    if (followed === undefined) return;
    const { slot, generation } = followed;
    this.#writes.run(() => this.#loads.setPeers(slot, generation, load));
  }

  applyPlacements(placements: readonly Placement[]): void {
    for (const { endpoint, parent, hashes, tail } of placements) {
      const followed = this.#byKey.get(endpoint);
      if (followed !== undefined) this.#log.add(followed.slot, parent, hashes, tail);
    }
    this.#log.apply();
  }

  applyEjection({ endpoint, out }: EjectionNews): void {
    const followed = this.#byKey.get(endpoint);
    if (followed === undefined || followed.out === out) return;
    followed.out = out;
    const { slot, generation } = followed;
    this.#writes.run(() => this.#loads.setEjection(slot, generation, out, poolClockMs()));
    if (out) this.#options.hinted?.(slot, generation);
    // Where half of the pool is out already, this one stays in; that is no news for peers.
    followed.out = this.#loads.isEjected(slot);
  }

  applySpent(spent: readonly Spending[]): void {
    this.#options.state.applySpent(spent);
  }

  applyLearned(bytes: Uint8Array): void {
    this.#options.state.applyLearned(bytes);
  }

  peersChanged(peers: HeardPeers): void {
    this.#options.state.peersChanged(peers);
  }

  async exportIndex(
    piece: (endpoints: readonly bigint[], segments: readonly ExportedSegment[]) => void | Promise<void>,
  ): Promise<void> {
    const followed = [...this.#bySlot.values()];
    const endpoints = followed.map(({ endpoint }) => endpoint);
    const positions = new Map(followed.map(({ slot }, position) => [slot, position]));
    await exportIndex(this.#options.core, (segments) =>
      piece(
        endpoints,
        segments.map((each) => atPositions(each, positions)),
      ),
    );
  }

  async importIndex(endpoints: readonly bigint[], segments: readonly ExportedSegment[]): Promise<void> {
    await importSegments(this.#log, segments, (position) => this.#byKey.get(endpoints[position]!)?.slot);
  }
}
