import type { ReplicaPlace } from '../contract/replica-place.js';
import type { LoadSum } from './endpoint-sums.js';
import { EARLIER_VERSION, type Envelope, type MessageVersion, type UpdateBody, VERSION } from './messages.js';
import { AllRows, type PeerRows } from './peer-rows.js';
import { type PeerTenants, SpentTenants } from './spent-tenants.js';

/** Silence after which the load of a peer no longer counts; with the checks' interval well below one second. */
export const SILENCE_MS = 700;
/** Interval whose least lag is kept, together with that of the interval before. */
const LAG_INTERVAL_MS = 10_000;
/** Silence after which a peer is forgotten. */
const FORGET_MS = 60_000;
/** Age of a process, at its first update, up to which all tokens used there count as new. */
const YOUNG_MS = 10_000;
/** Bound on the peers. A further peer replaces the one that has been silent for longest, if one is silent. */
export const PEERS_MAX = 256;
/** Bound on updates beyond a gap that are remembered; with more the gap is closed by a snapshot alone. */
const BEYOND_MAX = 1_024;

/** Update of a peer, with the fields that identify it. */
export type PeerUpdate = UpdateBody &
  Pick<Envelope, 'replica' | 'epoch' | 'sentAtMs'> & {
    /** Latest version of messages that the peer reads; absent = VERSION. */
    readonly reads?: MessageVersion;
  };

/** Full updates far behind the last one after which that is taken for forged, and the peer begins anew. */
const FAR_BEHIND_MAX = 3;

/** A process of another replica. */
interface Peer {
  readonly replica: string;
  readonly epoch: number;
  /** Latest version of messages that it reads. */
  readonly reads: MessageVersion;
  heardMs: number;
  live: boolean;
  /** Number up to which all updates were received, or are in a snapshot. */
  complete: number;
  /** The last update received. */
  highest: number;
  /** Updates received beyond a gap. */
  readonly beyond: Set<number>;
  /** Sequence of the last full update. */
  fullAt: number;
  /** Full updates in a row that came far behind the highest update. */
  farBehind: number;
  /** Sequence of the update that ended its last silence: rows of earlier ones do not count. */
  countsFrom: number;
  readonly rows: PeerRows;
  readonly tenants: PeerTenants;
  lagMs: number;
  readonly usualLag: UsualLag;
  gaps: number;
}

/** A peer as plain data. */
export interface PeerReading {
  readonly replica: string;
  readonly epoch: number;
  readonly live: boolean;
  readonly silentMs: number;
  /** Time between sending and receipt of its last update, by both clocks. */
  readonly lagMs: number;
  readonly gaps: number;
  /** Whether updates of the peer are missing. */
  readonly incomplete: boolean;
}

/** Changes by one update. */
export interface Receipt {
  /** Whether the update is dropped: as many peers as there may be are heard. */
  readonly ignored: boolean;
  /** Whether the peer was unknown or silent: its load counts from its next full update on. */
  readonly appeared: boolean;
  /** Whether updates before this one are newly missing. */
  readonly gap: boolean;
  /** Tokens that tenants have used at the peer since its last update about them. */
  readonly spent: readonly { readonly tenant: string; readonly tokens: number }[];
}

const IGNORED: Receipt = { ignored: true, appeared: false, gap: false, spent: [] };
const NONE_SILENT: readonly string[] = [];
const NONE_MISSING: readonly { readonly replica: string; readonly epoch: number }[] = [];
/**
 * State of the peers by their updates. Every row is the whole load of one peer on one endpoint, with the number of its
 * update: the newest row counts, once, so updates may come late, twice or not at all. Each process of a replica is a
 * peer of its own and counts while it is heard, so none can be ended by a message in the name of another. Has no clock
 * and no timers.
 */
export class PeerView {
  readonly #peers = new Map<string, Peer>();
  readonly #rows: AllRows;
  readonly #tenants: SpentTenants;
  #live = 0;
  #changes = 0;
  /** Live peers that read no messages of VERSION. */
  #earlier = 0;

  /** @param tenants what tenants have used at peers @param rows loads of the peers */
  constructor(tenants = new SpentTenants(), rows = new AllRows()) {
    this.#tenants = tenants;
    this.#rows = rows;
  }

  /**
   * Applies an update. One that was under way for longer than usual counts as heard when it was sent: what a slow
   * connection delivers late is no sign of life.
   * @param lagMs time between sending and receipt, by both clocks
   */
  receive(update: PeerUpdate, nowMs: number, lagMs = 0): Receipt {
    const before = this.#peers.get(processOf(update));
    if (before === undefined && !this.#makeRoom()) return IGNORED;
    const peer = before ?? this.#meet(update);
    peer.lagMs = lagMs;
    peer.heardMs = Math.max(peer.heardMs, nowMs - peer.usualLag.excess(lagMs, nowMs));
    const live = !update.leaves && nowMs - peer.heardMs <= SILENCE_MS;
    const appeared = live && (peer !== before || !peer.live);
    // Load that the peer reported before its silence may have ended.
    if (live && !peer.live && peer === before) peer.countsFrom = update.sequence;
    this.#setLive(peer, live);
    if (appeared) this.#forgetEarlier(peer);
    if (isFarBehind(peer, update)) this.#beginAnew(peer, update.sequence);
    const gap = noteSequence(peer, update.sequence);
    this.#takeLoads(peer, update);
    return { ignored: false, appeared, gap, spent: this.#tenants.take(peer.tenants, update.spendings) };
  }

  /** Names of the live peers. */
  liveNames(): string[] {
    return [...this.#peers.values()].filter(({ live }) => live).map(({ replica }) => replica);
  }

  /** Notes that the prefix index of the peer at its update `sequence` has been taken over. */
  completed(replica: string, epoch: number, sequence: number): void {
    const peer = this.#peers.get(processOf({ replica, epoch }));
    if (peer === undefined) return;
    peer.complete = Math.max(peer.complete, sequence);
    peer.highest = Math.max(peer.highest, sequence);
    advance(peer);
  }

  /** Notes that an index taken over from one peer includes all updates of all peers so far. */
  completedAll(): void {
    for (const peer of this.#peers.values()) this.completed(peer.replica, peer.epoch, peer.highest);
  }

  /** Frees the load of peers that have been silent. @returns the replicas of which no other process is heard */
  expire(nowMs: number): readonly string[] {
    let silent: string[] | undefined;
    for (const peer of this.#peers.values()) {
      const silence = nowMs - peer.heardMs;
      if (silence > FORGET_MS) this.#forget(peer);
      if (!peer.live || silence <= SILENCE_MS) continue;
      this.#setLive(peer, false);
      silent ??= [];
      silent.push(peer.replica);
    }
    if (silent === undefined) return NONE_SILENT;
    const heard = new Set(this.liveNames());
    return silent.filter((replica) => !heard.has(replica));
  }

  /** Endpoints whose load may have changed since the last call. */
  takeChanged(): readonly bigint[] {
    return this.#rows.sums.takeChanged();
  }

  /** Load of all live peers on an endpoint; `charged` counts the requests sent there since the last call. */
  load(endpoint: bigint): LoadSum {
    return this.#rows.sums.take(endpoint);
  }

  /** Endpoints in the reports of live peers. */
  endpoints(): Set<bigint> {
    return new Set([...this.#peers.values()].flatMap(({ live, rows }) => (live ? [...rows.byEndpoint.keys()] : [])));
  }

  /** Live peers. */
  get live(): number {
    return this.#live;
  }

  /** Peers that were heard first or again, and those that fell silent, since the start. */
  get changes(): number {
    return this.#changes;
  }

  /** Place of a replica among the live peers, by the order of names. */
  placeOf(replica: string): ReplicaPlace {
    const others = new Set(this.liveNames());
    others.delete(replica);
    let place = 0;
    for (const name of others) if (name < replica) place++;
    return { place, replicas: others.size + 1 };
  }

  /** Version of messages that every live peer reads; the earlier one while none is live. */
  get readByAll(): MessageVersion {
    return this.#live > 0 && this.#earlier === 0 ? VERSION : EARLIER_VERSION;
  }

  /** Live peers of which updates are missing. */
  incomplete(): readonly { readonly replica: string; readonly epoch: number }[] {
    let isComplete = true;
    for (const { complete, highest } of this.#peers.values()) isComplete &&= complete >= highest;
    if (isComplete) return NONE_MISSING;
    return [...this.#peers.values()].filter(({ live, complete, highest }) => live && complete < highest);
  }

  /** Every replica by the process of it that was heard last. */
  readings(nowMs: number): PeerReading[] {
    const latest = new Map<string, Peer>();
    for (const peer of this.#peers.values()) {
      if (peer.heardMs >= (latest.get(peer.replica)?.heardMs ?? Number.NEGATIVE_INFINITY))
        latest.set(peer.replica, peer);
    }
    return [...latest.values()].map(({ replica, epoch, live, heardMs, lagMs, gaps, complete, highest }) => ({
      replica,
      epoch,
      live,
      silentMs: nowMs - heardMs,
      lagMs,
      gaps,
      incomplete: complete < highest,
    }));
  }

  #meet({ replica, epoch, sentAtMs, reads = VERSION }: PeerUpdate): Peer {
    const peer: Peer = {
      replica,
      epoch,
      reads,
      heardMs: Number.NEGATIVE_INFINITY,
      live: false,
      complete: 0,
      highest: 0,
      beyond: new Set(),
      fullAt: 0,
      farBehind: 0,
      countsFrom: 0,
      rows: this.#rows.open(),
      tenants: this.#tenants.open(sentAtMs - epoch < YOUNG_MS),
      lagMs: 0,
      usualLag: new UsualLag(),
      gaps: 0,
    };
    this.#peers.set(processOf(peer), peer);
    return peer;
  }

  /** Drops all that the peer said with higher numbers. */
  #beginAnew(peer: Peer, sequence: number): void {
    this.#rows.clear(peer.rows);
    peer.beyond.clear();
    peer.complete = sequence - 1;
    peer.highest = sequence - 1;
    peer.fullAt = 0;
    peer.countsFrom = 0;
  }

  /** Forgets silent processes of a replica of which another one is heard. */
  #forgetEarlier(heard: Peer): void {
    for (const peer of this.#peers.values()) {
      if (peer.replica === heard.replica && !peer.live) this.#forget(peer);
    }
  }

  /** @returns whether there is a place for one more peer */
  #makeRoom(): boolean {
    if (this.#peers.size < PEERS_MAX) return true;
    let quietest: Peer | undefined;
    for (const peer of this.#peers.values()) {
      if (!peer.live && peer.heardMs <= (quietest?.heardMs ?? Number.POSITIVE_INFINITY)) quietest = peer;
    }
    if (quietest === undefined) return false;
    this.#forget(quietest);
    return true;
  }

  #forget(peer: Peer): void {
    if (!this.#peers.delete(processOf(peer))) return;
    if (peer.live) this.#countLive(peer, -1);
    peer.live = false;
    this.#tenants.close(peer.tenants);
    this.#rows.close(peer.rows);
  }

  /** Counts the rows of a peer that is heard again, and no row of one that is silent. */
  #setLive(peer: Peer, live: boolean): void {
    if (live === peer.live) return;
    peer.live = live;
    this.#countLive(peer, live ? 1 : -1);
    this.#rows.setHeard(peer.rows, live);
    const { sums } = this.#rows;
    for (const row of peer.rows.byEndpoint.values()) sums.set(row, row.load, counts(peer, row.sequence));
  }

  #countLive({ reads }: Peer, by: number): void {
    this.#live += by;
    this.#changes++;
    if (reads === EARLIER_VERSION) this.#earlier += by;
  }

  #takeLoads(peer: Peer, { full, loads, sequence }: PeerUpdate): void {
    if (sequence < peer.fullAt) return;
    for (const load of loads) {
      const row = this.#rows.rowOf(peer.rows, load);
      if (row === undefined || row.sequence > sequence) continue;
      row.sequence = sequence;
      this.#rows.sums.set(row, load, counts(peer, sequence));
    }
    if (!full) return;
    peer.fullAt = sequence;
    this.#rows.dropBefore(peer.rows, sequence);
  }
}

function counts({ live, countsFrom }: Peer, sequence: number): boolean {
  return live && sequence >= countsFrom;
}

/** Key of a process among all processes of all replicas. */
function processOf({ replica, epoch }: Pick<Envelope, 'replica' | 'epoch'>): string {
  return `${epoch} ${replica}`;
}

/**
 * Whether a peer continues with full updates far behind one that must have been forged: no connection reorders as many.
 */
function isFarBehind(peer: Peer, { full, sequence }: PeerUpdate): boolean {
  if (!full) return false;
  peer.farBehind = peer.highest - sequence > BEYOND_MAX ? peer.farBehind + 1 : 0;
  if (peer.farBehind < FAR_BEHIND_MAX) return false;
  peer.farBehind = 0;
  return true;
}

/** @returns whether updates before this one are missing that were not missed before */
function noteSequence(peer: Peer, sequence: number): boolean {
  const gap = peer.highest > 0 && sequence > peer.highest + 1;
  peer.highest = Math.max(peer.highest, sequence);
  if (sequence > peer.complete && peer.beyond.size < BEYOND_MAX) peer.beyond.add(sequence);
  advance(peer);
  if (gap) peer.gaps++;
  return gap;
}

function advance(peer: Peer): void {
  for (const sequence of peer.beyond) if (sequence <= peer.complete) peer.beyond.delete(sequence);
  while (peer.beyond.delete(peer.complete + 1)) peer.complete++;
}

/**
 * Least lag of the messages of one sender within the last 10 to 20 s. The clocks of two machines differ by an unknown
 * constant, so only the excess of a lag over the least one is time under way.
 */
class UsualLag {
  #leastMs = Number.POSITIVE_INFINITY;
  #leastBeforeMs = Number.POSITIVE_INFINITY;
  #sinceMs = Number.NEGATIVE_INFINITY;

  /** Notes the lag of a message. @returns milliseconds by which it exceeds the least one */
  excess(lagMs: number, nowMs: number): number {
    if (nowMs - this.#sinceMs > LAG_INTERVAL_MS) {
      this.#leastBeforeMs = this.#leastMs;
      this.#leastMs = lagMs;
      this.#sinceMs = nowMs;
    }
    this.#leastMs = Math.min(this.#leastMs, lagMs);
    return lagMs - Math.min(this.#leastMs, this.#leastBeforeMs);
  }
}
