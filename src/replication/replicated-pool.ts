import type { ReplicaPlace } from '../contract/replica-place.js';
import type { ExportedSegment } from '../core/index-export.js';
import type { LoadSum } from './endpoint-sums.js';
import type { EjectionNews, LoadRow, Placement, Spending, ToldSession, TurnNews } from './messages.js';

/** The live peers as one replica hears them, and its own place among their names. */
export interface HeardPeers extends ReplicaPlace {
  /** Live processes of peers. */
  readonly live: number;
  /** Whether peers can be heard. */
  readonly connected: boolean;
}

/** Pool as replication reads and writes it. */
export interface ReplicatedPool {
  /**
   * Whether the own load on an endpoint, or an ejection, has changed since the last call. Cheap: called in every tick.
   */
  changed(): boolean;
  /**
   * Own load on every endpoint, or at least on those whose load has changed since the last call; as `changed` found it.
   */
  loads(all: boolean): Iterable<LoadRow>;
  /** Passes the prompts placed since the last call. @returns records that were lost before they were read */
  placements(visit: (placement: Placement) => void): number;
  /** Passes the turns of sessions since the last call. @returns turns that were lost before they were read */
  turns(visit: (turn: TurnNews) => void): number;
  /** Endpoints that were ejected or taken back here since the last call. */
  ejections(): readonly EjectionNews[];
  /** Endpoints that are out now. */
  ejected(): readonly EjectionNews[];
  /** Tokens of tenants that have used some since the last call. @param all also of tenants whose bucket is not full */
  spendings(all: boolean): readonly Spending[];
  /** Learned state; undefined = not yet time to send it again. */
  learned(): Uint8Array | undefined;
  applyLoad(endpoint: bigint, load: LoadSum): void;
  applyPlacements(placements: readonly Placement[]): void;
  /** Takes the turns of a peer, in their order. */
  applyTurns(replica: string, turns: readonly TurnNews[]): void;
  /** A peer is gone, or turns of it were missed: those in flight there are no longer. */
  forgetTurns(replica: string): void;
  /** Whether sessions are counted here. */
  countsSessions(): boolean;
  /** All sessions in pieces of a bounded length, each as it is when its piece is read. */
  exportSessions(): Iterator<readonly ToldSession[], void>;
  /** Takes sessions of a peer that are not known here. */
  learnSessions(replica: string, sessions: readonly ToldSession[]): void;
  applyEjection(news: EjectionNews): void;
  applySpent(spent: readonly Spending[]): void;
  applyLearned(bytes: Uint8Array): void;
  /** Reports a change of the live peers, or of the connection to them. */
  peersChanged(peers: HeardPeers): void;
  /** Reads the prefix index; slots are positions in `endpoints`. */
  exportIndex(
    piece: (endpoints: readonly bigint[], segments: readonly ExportedSegment[]) => void | Promise<void>,
  ): Promise<void>;
  importIndex(endpoints: readonly bigint[], segments: readonly ExportedSegment[]): Promise<void>;
}
