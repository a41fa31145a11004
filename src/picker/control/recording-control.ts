import type { ServerResponse } from 'node:http';
import type { SlotAssignment, SlotUpdate } from '../../contract/endpoint.js';
import { FRAME, jsonFrame } from '../../contract/recorded-frames.js';
import { CORE } from '../../core/core-names.js';
import type { TapCounts } from '../../core/decision-tap.js';
import {
  type RecordedEndpoint,
  type RecordingHeader,
  type RecordingTrailer,
  recordingHead,
} from '../../operations/recording/recording-format.js';
import type { Route } from '../../operations/telemetry/metrics-server.js';
import type { FromPool, ToPool } from '../messages.js';

const SECONDS_DEFAULT = 10;
const SECONDS_MAX = 300;
const MIB_DEFAULT = 32;
const MIB_MAX = 256;
/** Bound on the wait for the shards to begin: the head of the answer says that all of them record. */
const BEGIN_MS = 2_000;
/** Bound on the wait for the last frames of the shards. */
const LAST_FRAMES_MS = 2_000;

export interface RecordingControlOptions {
  /** Facts of the pool at the beginning of a recording. */
  readonly facts: () => Omit<RecordingHeader, 'startedMs' | 'seconds' | 'endpoints' | 'layout'>;
  readonly assignments: () => readonly SlotAssignment[];
  readonly shards: number;
  readonly broadcast: (message: ToPool) => void;
  /** Whether the decision log is kept: without one the end of a request cannot be told from that of another. */
  readonly logged: boolean;
  readonly nowMs: () => number;
}

/** A recording that is under way. */
interface Recording {
  readonly number: number;
  readonly response: ServerResponse;
  readonly seconds: number;
  readonly beganMs: number;
  readonly timer: NodeJS.Timeout;
  /** Shards that record. */
  begun: number;
  /** Whether frames wait for the shards to begin. */
  held: boolean;
  /** Shards that have sent their last frames. */
  over: number;
  decisions: number;
  dropped: number;
}

type Recorded = Extract<FromPool, { kind: 'recorded' }>;

/**
 * `POST /debug/recording?seconds=n&mib=m`: the decisions of the next seconds as a file, without prompts. One recording
 * at a time; the bytes are divided among the shards, and a shard that has used up its part stops. Control thread only.
 */
export class RecordingControl {
  readonly #options: RecordingControlOptions;
  #numbers = 0;
  #current: Recording | undefined;

  constructor(options: RecordingControlOptions) {
    this.#options = options;
  }

  readonly route: Route = (request, response) => {
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const seconds = wholeNumber(query.get('seconds'), SECONDS_DEFAULT, SECONDS_MAX);
    const mib = wholeNumber(query.get('mib'), MIB_DEFAULT, MIB_MAX);
    if (seconds === undefined) return plain(response, 400, `seconds: must be a whole number from 1 to ${SECONDS_MAX}`);
    if (mib === undefined) return plain(response, 400, `mib: must be a whole number from 1 to ${MIB_MAX}`);
    if (!this.#options.logged) return plain(response, 409, 'nothing is recorded without --decision-log-size');
    if (this.#current !== undefined)
      return plain(response, 409, 'a recording is under way: come back when it has ended');
    this.#begin(response, seconds, mib * 2 ** 20);
  };

  #begin(response: ServerResponse, seconds: number, bytesMax: number): void {
    const { facts, assignments, broadcast, shards, nowMs } = this.#options;
    const number = ++this.#numbers;
    const timer = setTimeout(() => this.#ask(), seconds * 1000);
    const beganMs = nowMs();
    const counts = { begun: 0, over: 0, decisions: 0, dropped: 0 };
    const current = { number, response, seconds, beganMs, timer, held: true, ...counts };
    this.#current = current;
    response.on('close', () => this.#closed(number));
    response.cork();
    setTimeout(() => release(current), BEGIN_MS).unref();
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="decisions.bin"',
    });
    const header: RecordingHeader = {
      ...facts(),
      layout: CORE.LAYOUT_VERSION,
      startedMs: beganMs,
      seconds,
      endpoints: assignments().map(recordedEndpoint),
    };
    response.write(recordingHead(header));
    broadcast({ kind: 'record', recording: number, bytesMax: Math.floor(bytesMax / shards) });
  }

  /** Asks the shards for their last frames. */
  #ask(): void {
    const current = this.#current;
    if (current === undefined) return;
    this.#options.broadcast({ kind: 'record', recording: current.number, bytesMax: undefined });
    setTimeout(() => this.#end(current), LAST_FRAMES_MS).unref();
  }

  /** Notes that a shard records from now on. */
  began(recording: number): void {
    const current = this.#current;
    if (current?.number === recording && ++current.begun === this.#options.shards) release(current);
  }

  /** Writes frames of a shard to the reader. */
  receive({ recording, frames, counts }: Recorded): void {
    const current = this.#current;
    if (current?.number !== recording) return;
    if (frames.length > 0) current.response.write(frames);
    if (counts !== undefined) this.#count(current, counts);
  }

  #count(current: Recording, { decisions, dropped }: TapCounts): void {
    current.decisions += decisions;
    current.dropped += dropped;
    if (++current.over === this.#options.shards) this.#end(current);
  }

  /** Records changed endpoints. */
  changeEndpoints({ set }: SlotUpdate): void {
    if (this.#current === undefined || set.length === 0) return;
    this.#current.response.write(jsonFrame(FRAME.endpoints, set.map(recordedEndpoint)));
  }

  #end(current: Recording): void {
    if (this.#current !== current) return;
    const { decisions, dropped, over, beganMs } = current;
    const { shards, nowMs } = this.#options;
    const trailer: RecordingTrailer = {
      decisions,
      dropped,
      missingShards: shards - over,
      seconds: (nowMs() - beganMs) / 1000,
    };
    this.#current = undefined;
    current.response.end(jsonFrame(FRAME.trailer, trailer));
  }

  /** Stops the shards once the reader has left. */
  #closed(number: number): void {
    const current = this.#current;
    if (current?.number !== number) return;
    clearTimeout(current.timer);
    this.#current = undefined;
    this.#options.broadcast({ kind: 'record', recording: number, bytesMax: undefined });
  }

  /** Ends the recording that is under way. */
  stop(): void {
    const current = this.#current;
    if (current === undefined) return;
    clearTimeout(current.timer);
    this.#end(current);
  }
}

/** Sends what was held; once only, since Node.js counts. */
function release(recording: Recording): void {
  if (!recording.held) return;
  recording.held = false;
  recording.response.uncork();
}

function recordedEndpoint({ slot, generation, endpoint }: SlotAssignment): RecordedEndpoint {
  return { slot, generation, endpoint };
}

function wholeNumber(text: string | null, initial: number, max: number): number | undefined {
  if (text === null) return initial;
  const number = Number(text);
  return Number.isInteger(number) && number >= 1 && number <= max ? number : undefined;
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}
