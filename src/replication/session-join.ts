import { peerTag } from '../core/session-news.js';
import type { MessageBody, SessionsPiece, ToldSession } from './messages.js';
import type { ReplicatedPool } from './replicated-pool.js';
import type { ReplicationCounts } from './replication-counts.js';
import type { ReplicationLog } from './replication-reports.js';

/** Time without a piece after which another replica is asked. */
const PIECE_MS_MAX = 1_000;
/** Replicas that are asked, one after the other. */
const ASKED_MAX = 16;
/** Replicas that are told at one time; a further one asks another replica. */
const TOLD_AT_ONCE = 4;

export interface SessionJoinOptions {
  /** Name of this replica. */
  readonly replica: string;
  readonly seedCheck: number;
  readonly pool: Pick<ReplicatedPool, 'countsSessions' | 'exportSessions' | 'learnSessions'>;
  readonly send: (body: MessageBody, to: string) => void;
  readonly counts: ReplicationCounts;
  readonly log: ReplicationLog;
}

/**
 * Sessions for a replica that joins: it asks the others, one after the other, until one tells some. A piece is read as
 * it is sent, behind the turns before it, and what is known already stays: so nothing is taken back by a late piece. A
 * lost piece is not asked for again: its sessions are known with their next turns.
 */
export class SessionJoin {
  readonly #options: SessionJoinOptions;
  readonly #asked: string[] = [];
  #heardMs = Number.NEGATIVE_INFINITY;
  #isDone = false;
  #wasSilent = false;
  #told = 0;
  readonly #telling = new Map<string, Iterator<readonly ToldSession[], void>>();

  constructor(options: SessionJoinOptions) {
    this.#options = options;
  }

  /** Whether the sessions of a peer are known, there were none to be had, or none are counted here. */
  get joined(): boolean {
    return this.#isDone || !this.#options.pool.countsSessions();
  }

  /** Notes that there is no replica to ask. */
  settle(): void {
    this.#isDone = true;
  }

  /**
   * Asks the next replica while none has told any sessions, and sends a piece to each one that has asked.
   * @param live names of the live peers
   * @returns whether a piece was sent
   */
  tick(live: () => readonly string[], nowMs: number): boolean {
    if (!this.#options.pool.countsSessions()) this.#forget();
    else if (!this.#isDone && nowMs - this.#heardMs > PIECE_MS_MAX) this.#ask(live(), nowMs);
    const isTelling = this.#telling.size > 0;
    for (const [replica, pieces] of this.#telling) this.#tell(replica, pieces);
    return isTelling;
  }

  /** Once sessions are counted again they are asked for anew. */
  #forget(): void {
    this.#isDone = false;
    this.#asked.length = 0;
    this.#heardMs = Number.NEGATIVE_INFINITY;
    this.#wasSilent = false;
    this.#told = 0;
  }

  #ask(live: readonly string[], nowMs: number): void {
    // The last one had begun to answer, or was to.
    if (this.#heardMs > Number.NEGATIVE_INFINITY) this.#wasSilent = true;
    const next = this.#asked.length < ASKED_MAX ? live.find((name) => !this.#asked.includes(name)) : undefined;
    if (next === undefined) {
      if (this.#asked.length > 0) this.#finish(false);
      return;
    }
    this.#asked.push(next);
    this.#heardMs = nowMs;
    this.#options.send({ kind: 'request', index: false, sessions: true }, next);
  }

  /** @param isWhole whether a replica that knows those of the others has told all its sessions */
  #finish(isWhole: boolean): void {
    const { log } = this.#options;
    this.#isDone = true;
    const details = { asked: this.#asked, sessions: this.#told };
    if (!isWhole && this.#wasSilent)
      log('warn', 'a replica has not told all its sessions: they are known with their next turns', details);
    else if (this.#told > 0) log('info', 'the sessions of other replicas were taken over', details);
  }

  /** Takes a piece of the replica that was asked. */
  receive({ replica, seedCheck, last, joined, sessions }: SessionsPiece, nowMs: number): void {
    const { pool, counts } = this.#options;
    if (this.#isDone || replica !== this.#asked.at(-1)) return;
    this.#heardMs = nowMs;
    if (seedCheck === this.#options.seedCheck) {
      pool.learnSessions(replica, this.#notHere(sessions));
      this.#told += sessions.length;
      counts.sessionsTaken += sessions.length;
    }
    if (!last) return;
    if (joined && this.#told > 0) this.#finish(true);
    else this.#heardMs = Number.NEGATIVE_INFINITY;
  }

  /** What ran or waited in an earlier process of this replica has ended with it. */
  #notHere(sessions: readonly ToldSession[]): readonly ToldSession[] {
    const own = peerTag(this.#options.replica);
    return sessions.map((each) => (each.peer === own ? { ...each, begins: false, waits: false, peer: 0 } : each));
  }

  /** A replica asks. Where it cannot be told any, it hears so at once, and asks another one. */
  asked(replica: string): void {
    const { pool } = this.#options;
    const isFull = this.#telling.size >= TOLD_AT_ONCE && !this.#telling.has(replica);
    if (!pool.countsSessions() || isFull) this.#send(replica, [], true);
    else this.#telling.set(replica, pool.exportSessions());
  }

  #tell(replica: string, pieces: Iterator<readonly ToldSession[], void>): void {
    const piece = pieces.next();
    if (piece.done === true) this.#telling.delete(replica);
    this.#send(replica, piece.done === true ? [] : piece.value, piece.done === true);
  }

  #send(replica: string, sessions: readonly ToldSession[], last: boolean): void {
    const { send, seedCheck, counts } = this.#options;
    counts.sessionsSent += sessions.length;
    send({ kind: 'sessions', seedCheck, last, joined: this.#isDone, sessions }, replica);
  }
}
