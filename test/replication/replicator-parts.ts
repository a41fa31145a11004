import type { ReplicaLink } from '../../dist/src/replication/link.js';
import type {
  Envelope,
  LoadRow,
  Message,
  Spending,
  ToldSession,
  TurnNews,
  UpdateBody,
} from '../../dist/src/replication/messages.js';
import type { ReplicatedPool } from '../../dist/src/replication/replicated-pool.js';
import { Replicator, type ReplicatorOptions } from '../../dist/src/replication/replicator.js';

/** Start of every process here, in milliseconds since 1970. */
export const START_MS = 1_800_000_000_000;

/** A pool without load of its own, and what peers told it. */
export class HeardPool implements ReplicatedPool {
  readonly peerLoads = new Map<bigint, number>();
  readonly spent: Spending[] = [];
  readonly heardTexts: string[] = [];
  readonly out: bigint[] = [];
  placed = 0;
  /** Turns for peers. */
  own: TurnNews[] = [];
  /** Turns that peers told, and the peers whose turns were forgotten. */
  readonly turnsHeard: (readonly [replica: string, anchor: bigint])[] = [];
  readonly forgotten: string[] = [];

  /** Pieces of the sessions for peers; undefined = none are counted. */
  pieces: (readonly ToldSession[])[] | undefined;
  /** Sessions that peers told as a whole, with their peers. */
  readonly learnt: (readonly [replica: string, session: ToldSession])[] = [];

  countsSessions = () => this.pieces !== undefined;
  exportSessions = () => (this.pieces ?? [])[Symbol.iterator]();
  learnSessions: ReplicatedPool['learnSessions'] = (replica, sessions) =>
    void this.learnt.push(...sessions.map((session) => [replica, session] as const));
  changed = () => false;
  loads = (): Iterable<LoadRow> => [];
  placements: ReplicatedPool['placements'] = () => 0;
  turns: ReplicatedPool['turns'] = (visit) => {
    for (const turn of this.own.splice(0)) visit(turn);
    return 0;
  };
  applyTurns: ReplicatedPool['applyTurns'] = (replica, turns) =>
    void this.turnsHeard.push(...turns.map(({ anchor }) => [replica, anchor] as const));
  forgetTurns: ReplicatedPool['forgetTurns'] = (replica) => void this.forgotten.push(replica);
  ejections = () => [];
  ejected = () => [];
  spendings: ReplicatedPool['spendings'] = () => [];
  learned = () => undefined;
  applyLoad: ReplicatedPool['applyLoad'] = (endpoint, { requests }) => void this.peerLoads.set(endpoint, requests);
  applyPlacements: ReplicatedPool['applyPlacements'] = (placements) => {
    this.placed += placements.length;
  };
  applyEjection: ReplicatedPool['applyEjection'] = ({ endpoint }) => void this.out.push(endpoint);
  applySpent: ReplicatedPool['applySpent'] = (spent) => void this.spent.push(...spent);
  applyLearned: ReplicatedPool['applyLearned'] = (bytes) => void this.heardTexts.push(Buffer.from(bytes).toString());
  /** Places of the replica among its peers, as they were told. */
  readonly places: (readonly [place: number, replicas: number])[] = [];
  peersChanged: ReplicatedPool['peersChanged'] = ({ place, replicas }) => void this.places.push([place, replicas]);
  exportIndex = () => Promise.resolve();
  importIndex = () => Promise.resolve();
}

/** A link on which nothing comes by itself, and what was sent on it. */
export class SilentLink implements ReplicaLink {
  readonly connected = true;
  readonly sent: Uint8Array[] = [];
  open = () => undefined;
  broadcast = (bytes: Uint8Array) => void this.sent.push(bytes);
  send = (_replica: string, bytes: Uint8Array) => void this.sent.push(bytes);
  close = () => Promise.resolve();
}

/** A replica whose clock the test sets. */
export function replicaAt(options: Partial<ReplicatorOptions> = {}) {
  const pool = new HeardPool();
  const link = new SilentLink();
  const log: string[] = [];
  const clock = { ms: 1_000 };
  const replicator = new Replicator({
    replica: 'this one',
    epoch: START_MS,
    seedCheck: 7,
    sharesIndex: true,
    pool,
    link,
    wallMs: () => START_MS + clock.ms,
    log: (_level, text, details) => void log.push(`${text} ${JSON.stringify(details)}`),
    ...options,
  });
  return { replicator, pool, link, log, clock };
}

/** An update of a live peer, sent at a time of the test's clock. */
export function updateOf(
  replica: string,
  sequence: number,
  clockMs: number,
  parts: Partial<UpdateBody & Envelope> = {},
): Message {
  return {
    ...{ kind: 'update', replica, epoch: START_MS, serial: sequence, sentAtMs: START_MS + clockMs, to: '' },
    ...{ sequence, seedCheck: 7, full: false, leaves: false, loads: [], placements: [], ejections: [], spendings: [] },
    turns: [],
    learned: undefined,
    ...parts,
  };
}
