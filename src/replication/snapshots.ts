import type { ExportedSegment } from '../core/index-export.js';

/** Time without a piece after which another replica is asked. */
const PIECE_MS_MAX = 1_000;
/** Pause before the index of a replica is asked for once more; doubles with every time, up to PAUSE_MS_MAX. */
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 10_000;
/** Time after which an index that was taken over resets the pause. */
const CALM_MS = 30_000;
/** Bound on the segments of one index: four million blocks and more. */
const SEGMENTS_MAX = 131_072;

/** Segments with the endpoints that their slots are positions of. */
export interface IndexPart {
  readonly endpoints: readonly bigint[];
  readonly segments: readonly ExportedSegment[];
}

/**
 * Chooses the replica that is asked for its prefix index, and the time. One at a time: at the start the first replica
 * that is heard, later a replica with missing updates.
 */
export class Snapshots {
  readonly #candidates: string[] = [];
  #joined = false;
  #from: string | undefined;
  #nextPiece = 0;
  #heardMs = 0;
  #parts: IndexPart[] = [];
  #segments = 0;
  #pauseMs = PAUSE_MS;
  #notBeforeMs = 0;
  #finishedMs = 0;

  /** Whether an index has been taken over, or no replica has one. */
  get joined(): boolean {
    return this.#joined;
  }

  settle(): void {
    this.#joined = true;
  }

  /** Notes a new replica: it may be asked for its index while none has been taken over. */
  heard(replica: string): void {
    if (!this.#joined && !this.#candidates.includes(replica)) this.#candidates.push(replica);
  }

  /** The replica to ask now; undefined = none. @param incomplete replicas of which updates are missing */
  next(incomplete: readonly { readonly replica: string }[], nowMs: number): string | undefined {
    if (this.#from !== undefined && nowMs - this.#heardMs > PIECE_MS_MAX) this.fail(nowMs);
    if (this.#from !== undefined || nowMs < this.#notBeforeMs) return undefined;
    const replica = this.#joined ? incomplete[0]?.replica : (this.#candidates.shift() ?? incomplete[0]?.replica);
    if (replica === undefined) return undefined;
    if (nowMs - this.#finishedMs > CALM_MS) this.#pauseMs = PAUSE_MS;
    this.#from = replica;
    this.#heardMs = nowMs;
    this.#nextPiece = 0;
    this.#drop();
    return replica;
  }

  /** @returns whether the piece is the next one of the index that was asked for */
  piece(replica: string, number: number, nowMs: number): boolean {
    if (replica !== this.#from) return false;
    if (number !== this.#nextPiece) {
      this.fail(nowMs);
      return false;
    }
    this.#nextPiece++;
    this.#heardMs = nowMs;
    return true;
  }

  /** @throws RangeError when the index is larger than any that this version makes */
  keep(endpoints: readonly bigint[], segments: readonly ExportedSegment[]): void {
    this.#segments += segments.length;
    if (this.#segments > SEGMENTS_MAX) throw new RangeError('it has too many segments');
    this.#parts.push({ endpoints, segments });
  }

  /** Returns the received pieces as one part, so that parents are found across pieces. */
  take(): readonly IndexPart[] {
    // No piece arrives while the index is entered: that silence is no failure.
    this.#heardMs = Number.POSITIVE_INFINITY;
    const parts = this.#parts;
    const first = parts.find(({ endpoints }) => endpoints.length > 0)?.endpoints ?? [];
    this.#drop();
    return [{ endpoints: first, segments: parts.flatMap(({ segments }) => segments) }];
  }

  /** Notes that the index has been taken over. */
  finish(nowMs: number): void {
    this.#joined = true;
    this.#from = undefined;
    this.#candidates.length = 0;
    this.#finishedMs = nowMs;
    this.#pause(nowMs);
  }

  /** Drops the index that was asked for, and pauses. */
  fail(nowMs: number): void {
    this.#from = undefined;
    this.#drop();
    this.#pause(nowMs);
  }

  #pause(nowMs: number): void {
    this.#notBeforeMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(PAUSE_MS_MAX, 2 * this.#pauseMs);
  }

  #drop(): void {
    this.#parts = [];
    this.#segments = 0;
  }
}
