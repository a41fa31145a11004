import { errorMessage } from '../runtime/error-message.js';
import { ExchangePace, INTERVAL_MS_MIN } from './exchange-pace.js';
import type { ReplicaLink } from './link.js';
import { MessageFreshness } from './message-freshness.js';
import {
  decodeMessage,
  type EjectionNews,
  encodeMessage,
  type IndexPiece,
  type LoadRow,
  type MessageBody,
  type MessageKey,
  type PieceBody,
  type Placement,
  type ReadMessage,
  type SnapshotRequest,
  type TurnNews,
  type Update,
  type UpdateBody,
} from './messages.js';
import { AllRows } from './peer-rows.js';
import { type PeerReading, PeerView } from './peer-view.js';
import type { ReplicatedPool } from './replicated-pool.js';
import { noCounts } from './replication-counts.js';
import { type ReplicationLog, ReplicationReports } from './replication-reports.js';
import { decodeSegments, encodeSegments } from './segment-records.js';
import { SessionJoin } from './session-join.js';
import { Snapshots } from './snapshots.js';
import { SpentTenants } from './spent-tenants.js';
import { ToldLoads } from './told-loads.js';
import { WireError } from './wire.js';

/** Silence of this replica after which it sends an empty update. */
const HEARTBEAT_MS = 200;
/** Interval between two full updates, which mend whatever was lost. */
const FULL_MS = 1_000;
/** Number of live peers up to which the loads of each update are applied at once. */
const PEERS_AT_ONCE = 8;
/** Endpoints with changed loads from which on they are applied at once: those of dropped rows are kept until then. */
const CHANGED_MAX = 65_536;
const NOTHING: readonly never[] = [];
/** Bound on the hashes of one update: some 256 KiB, a quarter of what NATS takes. */
const HASHES_MAX = 32_768;
/** Size of a turn beside hashes. */
const TURN_WORDS = 7;
/** Bound on the segments of one piece: some 200 KiB. */
const PIECE_SEGMENTS_MAX = 256;

export interface ReplicatorOptions {
  readonly replica: string;
  readonly epoch: number;
  readonly seedCheck: number;
  /** `messageKey` of the group; undefined = who may publish is trusted. */
  readonly key?: MessageKey | undefined;
  /** Whether prompts and the prefix index are shared; false where engines report their caches themselves. */
  readonly sharesIndex: boolean;
  readonly pool: ReplicatedPool;
  readonly link: ReplicaLink;
  /** Milliseconds since 1970, by a clock that is not set while the process runs: late messages are told by it. */
  readonly wallMs: () => number;
  readonly log: ReplicationLog;
  /** Share of one core that the exchange may take before its updates are fewer and shorter; absent = no bound. */
  readonly cpuShare?: number | undefined;
  /** Milliseconds of CPU or elapsed time, by which the share is measured; absent = `performance.now`. */
  readonly workMs?: (() => number) | undefined;
  /** From [0, 1); absent = Math.random. */
  readonly random?: (() => number) | undefined;
}

/**
 * One replica's side of the exchange. Its owner calls `tick` every 5 ms or so and passes on what the link reports. It
 * keeps no request waiting: without a link the pool is as it was without peers.
 */
export class Replicator {
  readonly counts = noCounts();
  /** Reports the time that an update was under way. */
  lag: (ms: number) => void = () => undefined;
  readonly #options: ReplicatorOptions;
  readonly #tenants = new SpentTenants();
  readonly #rows = new AllRows();
  readonly #view = new PeerView(this.#tenants, this.#rows);
  readonly #snapshots = new Snapshots();
  readonly #sessions: SessionJoin;
  readonly #told = new ToldLoads();
  readonly #freshness: MessageFreshness;
  readonly #pace: ExchangePace;
  readonly #workMs: () => number;
  readonly #random: () => number;
  /** Placements since the last update. */
  #waiting: Placement[] = [];
  #waitingHashes = 0;
  /** Turns of sessions since the last update. */
  #turns: TurnNews[] = [];
  #dueMs = Number.NEGATIVE_INFINITY;
  #sequence = 0;
  #serial = 0;
  #nowMs = 0;
  #sentMs = Number.NEGATIVE_INFINITY;
  #fullMs = Number.NEGATIVE_INFINITY;
  #live = 0;
  /** Changes of the live peers that the pool was told of. */
  #peerChanges = 0;
  #wasConnected = false;
  #exporting = false;
  readonly #reports: ReplicationReports;
  constructor(options: ReplicatorOptions) {
    this.#options = options;
    this.#freshness = new MessageFreshness(options.key !== undefined);
    this.#pace = new ExchangePace(options.cpuShare ?? 1);
    this.#reports = new ReplicationReports(options.log);
    const send = (body: MessageBody, to: string) => this.#send(body, to);
    this.#sessions = new SessionJoin({ ...options, counts: this.counts, send });
    this.#workMs = options.workMs ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
    if (!options.sharesIndex) this.#snapshots.settle();
  }

  get peers(): readonly PeerReading[] {
    return this.#view.readings(this.#nowMs);
  }

  /** Whether this replica is the first by name of all live ones. */
  get isFirst(): boolean {
    return this.peers.every(({ live, replica }) => !live || this.#options.replica < replica);
  }

  /** Milliseconds between two updates of this replica. */
  get intervalMs(): number {
    return this.#pace.intervalMs;
  }

  /** Blocks from which on every placement is told; 0 = all are. */
  get leastBlocks(): number {
    return this.#pace.leastBlocks;
  }

  /** Share of one core that the exchange takes. */
  get cpuShare(): number {
    return this.#pace.usedShare;
  }

  get livePeers(): number {
    return this.#live;
  }

  /** Whether prefix index and sessions of a peer have been taken over, or there were none to be had. */
  get joined(): boolean {
    return this.#snapshots.joined && this.#sessions.joined;
  }

  /** Sends a full update on a new connection: earlier messages may have been lost. */
  connected(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#fullMs = Number.NEGATIVE_INFINITY;
    this.#sentMs = Number.NEGATIVE_INFINITY;
    this.#dueMs = Number.NEGATIVE_INFINITY;
    this.tick(nowMs);
  }

  /** Notes that no other replica listens, so the start waits for no index. */
  alone(): void {
    if (this.#live > 0) return;
    this.#snapshots.settle();
    this.#sessions.settle();
  }

  /**
   * Sends an update, frees the load of silent peers, and asks for missing updates.
   * @returns whether there was news of this replica, or a piece of its sessions
   */
  tick(nowMs: number): boolean {
    const began = this.#workMs();
    this.#nowMs = nowMs;
    const isNews = this.#publish();
    for (const replica of this.#view.expire(nowMs)) {
      this.#reports.silent(replica, nowMs);
      this.#options.pool.forgetTurns(replica);
    }
    this.#applyLoads();
    this.#ask();
    const isTelling = this.#sessions.tick(() => this.#view.liveNames(), nowMs);
    this.#pace.spent(this.#workMs() - began);
    this.#pace.look(nowMs);
    this.#reports.cost(this.#pace, nowMs);
    return isNews || isTelling;
  }

  /** Sends the last update, after which peers free the load of this replica at once. */
  leave(): void {
    this.#send({ ...this.#update({}), leaves: true, full: true, loads: [] });
  }

  // ---- sending

  /** @returns whether there was news */
  #publish(): boolean {
    const { pool } = this.#options;
    const full = this.#nowMs - this.#fullMs >= FULL_MS;
    // Before the loads, which count the requests of these records.
    this.#takePlacements();
    if (this.#nowMs < this.#dueMs && this.#waitingHashes < HASHES_MAX) {
      this.#takeTurns();
      return this.#waiting.length + this.#turns.length > 0;
    }
    const placements = this.#waiting;
    this.#waiting = [];
    const changed = pool.changed();
    const loads: readonly LoadRow[] = changed || full ? this.#told.changed(pool.loads(full), full) : NOTHING;
    // Behind them: who hears that a request has ended hears that its turn has.
    this.#takeTurns();
    const turns = this.#turns;
    this.#turns = [];
    this.#waitingHashes = 0;
    const ejections = changed ? pool.ejections() : NOTHING;
    const spendings = pool.spendings(full);
    const learned = pool.learned();
    const first = { full, loads, ejections: full ? pool.ejected() : ejections, spendings, turns, learned };
    const told = loads.length + ejections.length + spendings.length + turns.length + placements.length;
    const news = told > 0 || learned !== undefined;
    if (!news && !full && this.#nowMs - this.#sentMs < HEARTBEAT_MS) return false;
    if (full) this.#fullMs = this.#nowMs;
    if (this.#pace.intervalMs > INTERVAL_MS_MIN) this.#dueMs = this.#nowMs + this.#pace.intervalMs;
    const [some = [], ...rest] = pieces(placements);
    this.#send(this.#update({ ...first, ejections: unique([...first.ejections, ...ejections]), placements: some }));
    for (const more of rest) this.#send(this.#update({ placements: more }));
    return news;
  }

  /** Empties the ring of turns, also between two updates: it is small. */
  #takeTurns(): void {
    const lost = this.#options.pool.turns((turn) => {
      this.#turns.push(turn);
      this.#waitingHashes += TURN_WORDS;
    });
    if (lost === 0) return;
    this.#sequence++;
    this.counts.lostTurns += lost;
  }

  /** Empties the ring of placed prompts, also between two updates: it is small. */
  #takePlacements(): void {
    const lost = this.#options.pool.placements((placement) => {
      if (!this.#pace.tells(placement.hashes.length, this.#random())) {
        this.counts.untoldPlacements++;
        return;
      }
      this.#waiting.push(placement);
      this.#waitingHashes += placement.hashes.length + 3;
    });
    if (lost === 0) return;
    // A number that is never sent: peers see the gap and ask for the index.
    this.#sequence++;
    this.counts.lostPlacements += lost;
  }

  #update(parts: Partial<UpdateBody>): UpdateBody {
    this.#sequence++;
    return {
      kind: 'update',
      sequence: this.#sequence,
      seedCheck: this.#options.seedCheck,
      full: false,
      leaves: false,
      loads: [],
      placements: [],
      ejections: [],
      spendings: [],
      turns: [],
      learned: undefined,
      ...parts,
    };
  }

  /** @param to name of the receiver; the empty text = all */
  #send(body: MessageBody, to = ''): void {
    const { link, replica, epoch, wallMs, key } = this.#options;
    this.#sentMs = this.#nowMs;
    if (!link.connected) return;
    const envelope = { replica, epoch, serial: ++this.#serial, sentAtMs: wallMs(), to };
    const bytes = encodeMessage({ ...envelope, ...body }, key, this.#view.readByAll);
    this.counts.sentMessages++;
    this.counts.sentBytes += bytes.length;
    if (to === '') link.broadcast(bytes);
    else link.send(to, bytes);
  }

  // ---- receiving

  /** Applies a message of another replica. */
  receive(bytes: Uint8Array, nowMs: number): void {
    const began = this.#workMs();
    this.#receive(bytes, nowMs);
    this.#pace.spent(this.#workMs() - began);
  }

  #receive(bytes: Uint8Array, nowMs: number): void {
    this.#nowMs = nowMs;
    this.counts.receivedMessages++;
    this.counts.receivedBytes += bytes.length;
    const message = this.#read(bytes);
    if (message === undefined) return;
    if (message.kind === 'update') this.#receiveUpdate(message);
    else if (message.kind === 'request') void this.#answer(message);
    else if (message.kind === 'sessions') this.#sessions.receive(message, nowMs);
    else void this.#receivePiece(message);
  }

  /** @returns undefined for a message that is refused, and for one of this replica */
  #read(bytes: Uint8Array): ReadMessage | undefined {
    const { replica, key, wallMs } = this.#options;
    try {
      const message = decodeMessage(bytes, key);
      if (message.replica === replica) return undefined;
      if (message.to !== '' && message.to !== replica)
        throw new WireError('it was sent to another replica', 'repeated');
      this.#freshness.check(message, wallMs());
      return message;
    } catch (error) {
      this.counts.badMessages[error instanceof WireError ? error.reason : 'unreadable']++;
      this.#reports.unreadable(errorMessage(error), this.#nowMs);
      return undefined;
    }
  }

  /** Counts the tenants and loads that have given way to those of an update. */
  #noteForgotten(replica: string): void {
    const { counts } = this;
    if (this.#tenants.forgotten > counts.forgottenTenants) this.#reports.forgottenTenants(replica, this.#nowMs);
    if (this.#rows.forgotten > counts.forgottenLoads) this.#reports.forgottenLoads(replica, this.#nowMs);
    counts.forgottenTenants = this.#tenants.forgotten;
    counts.forgottenLoads = this.#rows.forgotten;
  }

  #receiveUpdate(update: Update & Pick<ReadMessage, 'reads'>): void {
    const { pool, wallMs, seedCheck, sharesIndex } = this.#options;
    const { replica, epoch } = update;
    const lagMs = wallMs() - update.sentAtMs;
    const { ignored, appeared, gap, spent } = this.#view.receive(update, this.#nowMs, lagMs);
    if (ignored) {
      this.#reports.crowded(replica, this.#nowMs);
      return;
    }
    this.lag(lagMs);
    this.#noteForgotten(replica);
    if (gap) this.counts.gaps++;
    if ((gap || appeared) && !update.full) this.#askForLoads(replica);
    if (appeared) {
      this.#reports.heard(replica, epoch, this.#nowMs);
      this.#snapshots.heard(replica);
      // Notes that a replica does not know this one's load: the next update is a full one.
      this.#fullMs = Number.NEGATIVE_INFINITY;
    }
    for (const news of update.ejections) pool.applyEjection(news);
    if (gap || appeared || update.leaves) pool.forgetTurns(replica);
    if (update.turns.length > 0 && update.seedCheck === seedCheck) pool.applyTurns(replica, update.turns);
    if (spent.length > 0) pool.applySpent(spent);
    if (update.learned !== undefined) pool.applyLearned(update.learned);
    const isSameSeed = update.seedCheck === seedCheck;
    if (sharesIndex && !isSameSeed) this.#reports.otherSeed(replica, this.#nowMs);
    if (!sharesIndex || !isSameSeed) this.#view.completedAll();
    else if (update.placements.length > 0) pool.applyPlacements(update.placements);
    // With many peers the next tick applies what all of them have told.
    if (this.#live <= PEERS_AT_ONCE || this.#rows.sums.changed > CHANGED_MAX) this.#applyLoads();
  }

  /** Asks for a full update after a gap or a silence, so that no charge outlives its request by long. */
  #askForLoads(replica: string): void {
    this.#send({ kind: 'request', index: false, sessions: false }, replica);
  }

  #applyLoads(): void {
    const { pool } = this.#options;
    for (const endpoint of this.#view.takeChanged()) pool.applyLoad(endpoint, this.#view.load(endpoint));
    const { live, changes } = this.#view;
    const { connected } = this.#options.link;
    if (changes === this.#peerChanges && connected === this.#wasConnected) return;
    this.#live = live;
    this.#peerChanges = changes;
    this.#wasConnected = connected;
    pool.peersChanged({ live, connected, ...this.#view.placeOf(this.#options.replica) });
  }

  /** Applies the load of peers on endpoints that are new in the pool. */
  endpointsChanged(): void {
    for (const endpoint of this.#view.endpoints()) {
      this.#options.pool.applyLoad(endpoint, this.#view.load(endpoint));
    }
  }

  // ---- snapshots

  #ask(): void {
    if (!this.#options.sharesIndex) return;
    const replica = this.#snapshots.next(this.#view.incomplete(), this.#nowMs);
    if (replica === undefined) return;
    // The first index includes every placement up to now, so gaps before this request need no second index.
    if (!this.#snapshots.joined) this.#view.completedAll();
    this.#send({ kind: 'request', index: true, sessions: false }, replica);
  }

  /** Sends a full update, and the prefix index in pieces, to the replica that asked. One index at a time. */
  async #answer({ replica, index, sessions }: SnapshotRequest): Promise<void> {
    const { pool, log } = this.#options;
    this.#fullMs = Number.NEGATIVE_INFINITY;
    if (sessions) this.#sessions.asked(replica);
    if (!index || this.#exporting || !this.#options.sharesIndex) return;
    this.#exporting = true;
    this.counts.snapshotsSent++;
    try {
      let number = 0;
      const sequence = this.#sequence;
      let before: Pick<PieceBody, 'endpoints' | 'segments'> = { endpoints: [], segments: new Uint8Array(0) };
      const send = (last: boolean) =>
        this.#send({ kind: 'piece', sequence, number: number++, last, ...before }, replica);
      await pool.exportIndex((endpoints, segments) => {
        for (let at = 0; at < segments.length; at += PIECE_SEGMENTS_MAX) {
          if (before.segments.length > 0) send(false);
          before = { endpoints, segments: encodeSegments(segments.slice(at, at + PIECE_SEGMENTS_MAX)) };
        }
      });
      send(true);
    } catch (error) {
      log('warn', `the prefix index cannot be sent: ${errorMessage(error)}`, { replica });
    } finally {
      this.#exporting = false;
    }
  }

  async #receivePiece({ replica, epoch, sequence, number, last, endpoints, segments }: IndexPiece): Promise<void> {
    if (!this.#snapshots.piece(replica, number, this.#nowMs)) return;
    const { pool, log } = this.#options;
    try {
      const decoded = decodeSegments(segments);
      this.#snapshots.keep(endpoints, decoded);
      if (!last) return;
      for (const part of this.#snapshots.take()) await pool.importIndex(part.endpoints, part.segments);
      this.counts.snapshotsTaken++;
      this.#snapshots.finish(this.#nowMs);
      this.#view.completed(replica, epoch, sequence);
      log('info', 'the prefix index of a replica was taken over', { replica });
    } catch (error) {
      this.counts.badMessages.unreadable++;
      this.#snapshots.fail(this.#nowMs);
      log('warn', `the prefix index of a replica cannot be used: ${errorMessage(error)}`, { replica });
    }
  }
}

/** Placements in lists of a bounded size. */
function pieces(placements: readonly Placement[]): Placement[][] {
  const lists: Placement[][] = [];
  let hashes = Number.POSITIVE_INFINITY;
  for (const placement of placements) {
    hashes += placement.hashes.length + 3;
    if (hashes > HASHES_MAX) {
      lists.push([]);
      hashes = placement.hashes.length + 3;
    }
    lists.at(-1)!.push(placement);
  }
  return lists;
}

/** Last entry for each endpoint. */
function unique(news: readonly EjectionNews[]): EjectionNews[] {
  return [...new Map(news.map((each) => [each.endpoint, each])).values()];
}
