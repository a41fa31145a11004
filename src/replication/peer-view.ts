import type { LoadRow, Update } from './messages.js';
import { UsualLag } from './usual-lag.js';

/** Load of all live peers on an endpoint. */
export type LoadSum = Omit<LoadRow, 'endpoint'>;

/** Silence after which the load of a peer no longer counts; with the checks' interval well below one second. */
export const SILENCE_MS = 700;
/** Silence after which a peer is forgotten. */
const FORGET_MS = 60_000;
/** Age of a process, at its first update, up to which all tokens used there count as new. */
const YOUNG_MS = 10_000;
/** Bound on the peers. A further one takes the place of the one that has been silent for longest; without one it is ignored. */
export const PEERS_MAX = 64;
/** Bound on the rows of a peer. */
const ROWS_MAX = 4_096;
/** Bound on the tenants of a peer. */
const TENANTS_MAX = 100_000;
/** Bound on updates beyond a gap that are remembered; with more the gap is closed by a snapshot alone. */
const BEYOND_MAX = 1_024;

interface Row {
  readonly sequence: number;
  readonly load: LoadRow;
  /** Requests of `load.charged` that were reported by `load()` already. */
  told: number;
}

interface Peer {
  readonly replica: string;
  readonly epoch: number;
  heardMs: number;
  live: boolean;
  /** All updates up to this one were received, or are in a snapshot. */
  complete: number;
  /** The last update received. */
  highest: number;
  /** Updates received beyond a gap. */
  readonly beyond: Set<number>;
  /** Sequence of the last full update. */
  fullAt: number;
  /** Sequence of the update that ended its last silence: rows of earlier ones do not count. */
  countsFrom: number;
  readonly rows: Map<bigint, Row>;
  readonly spent: Map<string, number>;
  /** Whether the peer is known since its start: all tokens of tenants in its first update are new. */
  readonly fromStart: boolean;
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
  /** Whether the update is dropped: an earlier process of the replica sent it, or there is no place for the peer. */
  readonly ignored: boolean;
  /** Whether it is dropped because as many peers as there may be are heard. */
  readonly crowded: boolean;
  /** Whether the peer was unknown, silent, or another process: its load counts from its next full update on. */
  readonly appeared: boolean;
  /** Whether updates before this one are newly missing. */
  readonly gap: boolean;
  /** Tokens that tenants have used at the peer since its last update about them. */
  readonly spent: readonly { readonly tenant: string; readonly tokens: number }[];
}

const IGNORED: Receipt = { ignored: true, crowded: false, appeared: false, gap: false, spent: [] };
const CROWDED: Receipt = { ...IGNORED, crowded: true };
const NONE_CHANGED: readonly bigint[] = [];
const NONE_SILENT: readonly string[] = [];
const NONE_MISSING: readonly { readonly replica: string; readonly epoch: number }[] = [];
const NONE: LoadSum = { requests: 0, tokens: 0, prefill: 0, prompt: 0, output: 0, pending: 0, held: 0, charged: 0 };

/**
 * State of the peers by their updates. Every row is the whole load of one peer on one endpoint, with the number of its
 * update: the newest row counts, once, so updates may come late, twice or not at all. Has no clock and no timers.
 */
export class PeerView {
  readonly #peers = new Map<string, Peer>();
  readonly #changed = new Set<bigint>();

  /**
   * Applies an update. One that was under way for longer than usual counts as heard when it was sent: what a slow connection delivers
   * late is no sign of life.
   * @param lagMs time between sending and receipt, by both clocks
   */
  receive(update: Update, nowMs: number, lagMs = 0): Receipt {
    const before = this.#peers.get(update.replica);
    if (before !== undefined && update.epoch < before.epoch) return IGNORED;
    if (before === undefined && !this.#makeRoom()) return CROWDED;
    const peer = before?.epoch === update.epoch ? before : this.#meet(update, before);
    peer.lagMs = lagMs;
    peer.heardMs = Math.max(peer.heardMs, nowMs - peer.usualLag.excess(lagMs, nowMs));
    const live = !update.leaves && nowMs - peer.heardMs <= SILENCE_MS;
    const appeared = live && (peer !== before || !peer.live);
    if (live !== peer.live) this.#mark(peer);
    // Load that the peer reported before its silence may have ended.
    if (live && !peer.live && peer === before) peer.countsFrom = update.sequence;
    peer.live = live;
    const gap = noteSequence(peer, update.sequence);
    this.#takeLoads(peer, update);
    return { ignored: false, crowded: false, appeared, gap, spent: takeSpendings(peer, update) };
  }

  /** Notes that the prefix index of the peer at its update `sequence` has been taken over. */
  completed(replica: string, epoch: number, sequence: number): void {
    const peer = this.#peers.get(replica);
    if (peer?.epoch !== epoch) return;
    peer.complete = Math.max(peer.complete, sequence);
    peer.highest = Math.max(peer.highest, sequence);
    advance(peer);
  }

  /** Notes that an index taken over from one peer includes all updates of all peers so far. */
  completedAll(): void {
    for (const peer of this.#peers.values()) this.completed(peer.replica, peer.epoch, peer.highest);
  }

  /** Frees the load of peers that have been silent. @returns their names */
  expire(nowMs: number): readonly string[] {
    let silent: string[] | undefined;
    for (const peer of this.#peers.values()) {
      const silence = nowMs - peer.heardMs;
      if (silence > FORGET_MS) this.#peers.delete(peer.replica);
      if (!peer.live || silence <= SILENCE_MS) continue;
      peer.live = false;
      this.#mark(peer);
      silent ??= [];
      silent.push(peer.replica);
    }
    return silent ?? NONE_SILENT;
  }

  /** Endpoints whose load may have changed since the last call. */
  takeChanged(): readonly bigint[] {
    if (this.#changed.size === 0) return NONE_CHANGED;
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** Load of all live peers on an endpoint; `charged` counts the requests sent there since the last call. */
  load(endpoint: bigint): LoadSum {
    const sum = { ...NONE };
    for (const { live, rows, countsFrom } of this.#peers.values()) {
      const row = rows.get(endpoint);
      if (!live || row === undefined || row.sequence < countsFrom) continue;
      const { load } = row;
      sum.requests += load.requests;
      sum.tokens += load.tokens;
      sum.prefill += load.prefill;
      sum.prompt += load.prompt;
      sum.output += load.output;
      sum.pending += load.pending;
      sum.held += load.held;
      sum.charged += Math.max(0, load.charged - row.told);
      row.told = Math.max(row.told, load.charged);
    }
    return sum;
  }

  /** Endpoints that live peers have told of. */
  endpoints(): Set<bigint> {
    return new Set([...this.#peers.values()].flatMap(({ live, rows }) => (live ? [...rows.keys()] : [])));
  }

  /** Live peers. */
  get live(): number {
    let live = 0;
    for (const peer of this.#peers.values()) live += Number(peer.live);
    return live;
  }

  /** Live peers of which updates are missing. */
  incomplete(): readonly { readonly replica: string; readonly epoch: number }[] {
    let isComplete = true;
    for (const { complete, highest } of this.#peers.values()) isComplete &&= complete >= highest;
    if (isComplete) return NONE_MISSING;
    return [...this.#peers.values()].filter(({ live, complete, highest }) => live && complete < highest);
  }

  readings(nowMs: number): PeerReading[] {
    return [...this.#peers.values()].map(({ replica, epoch, live, heardMs, lagMs, gaps, complete, highest }) => ({
      replica,
      epoch,
      live,
      silentMs: nowMs - heardMs,
      lagMs,
      gaps,
      incomplete: complete < highest,
    }));
  }

  #meet({ replica, epoch, sentAtMs }: Update, before: Peer | undefined): Peer {
    if (before !== undefined) this.#mark(before);
    const peer: Peer = {
      replica,
      epoch,
      heardMs: Number.NEGATIVE_INFINITY,
      live: false,
      complete: 0,
      highest: 0,
      beyond: new Set(),
      fullAt: 0,
      countsFrom: 0,
      rows: new Map(),
      spent: new Map(),
      fromStart: sentAtMs - epoch < YOUNG_MS,
      lagMs: 0,
      usualLag: new UsualLag(),
      gaps: before?.gaps ?? 0,
    };
    this.#peers.set(replica, peer);
    return peer;
  }

  /** @returns whether there is a place for one more peer */
  #makeRoom(): boolean {
    if (this.#peers.size < PEERS_MAX) return true;
    let quietest: Peer | undefined;
    for (const peer of this.#peers.values()) {
      if (!peer.live && peer.heardMs <= (quietest?.heardMs ?? Number.POSITIVE_INFINITY)) quietest = peer;
    }
    return quietest !== undefined && this.#peers.delete(quietest.replica);
  }

  #mark({ rows }: Peer): void {
    for (const endpoint of rows.keys()) this.#changed.add(endpoint);
  }

  #takeLoads(peer: Peer, { full, loads, sequence }: Update): void {
    const { rows } = peer;
    if (sequence < peer.fullAt) return;
    for (const load of loads) {
      const before = rows.get(load.endpoint);
      if (before !== undefined && before.sequence > sequence) continue;
      if (before === undefined && rows.size >= ROWS_MAX) continue;
      rows.set(load.endpoint, { sequence, load, told: before?.told ?? 0 });
      this.#changed.add(load.endpoint);
    }
    if (!full) return;
    peer.fullAt = sequence;
    for (const [endpoint, row] of rows) {
      if (row.sequence >= sequence) continue;
      rows.delete(endpoint);
      this.#changed.add(endpoint);
    }
  }
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

/** New tokens of each tenant. The sums only grow, so a late update adds nothing. */
function takeSpendings({ spent, fromStart }: Peer, { spendings }: Update): { tenant: string; tokens: number }[] {
  const news: { tenant: string; tokens: number }[] = [];
  for (const { tenant, tokens } of spendings) {
    const known = spent.get(tenant);
    const before = known ?? 0;
    if (!(tokens > before) || (known === undefined && spent.size >= TENANTS_MAX)) continue;
    spent.set(tenant, tokens);
    if (known === undefined && !fromStart) continue;
    news.push({ tenant, tokens: tokens - before });
  }
  return news;
}
