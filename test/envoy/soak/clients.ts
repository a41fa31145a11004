import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { setTimeout } from 'node:timers/promises';
import { ANSWER_DIGEST, ANSWER_HEADERS, BODY_DIGEST, digest } from './model-server.ts';

/** Size of a request's body and how often it is drawn. */
export interface BodySize {
  readonly bytes: number;
  readonly share: number;
}

export interface Traffic {
  readonly sizes: readonly BodySize[];
  /** Requests that are open at one time, at the top of a wave. */
  readonly streams: number;
  /** Requests a second. */
  readonly rate: number;
  /** Time from one top of the waves to the next; 0 = the number of open requests does not change. */
  readonly waveMs: number;
  /** Shares of the requests: reset by their client, with trailers, with an answer that is read late. */
  readonly resets: number;
  readonly trailers: number;
  readonly slowReaders: number;
}

export type Outcome = 'answered' | 'reset' | 'refused' | 'failed';

/** Streams that Envoy takes of a connection (`max_concurrent_streams` of the listener). */
const SESSION_STREAMS = 100;
/** Bodies of a session that wait: with the usual 10 MB Node.js resets streams itself (ENHANCE_YOUR_CALM). */
const SESSION_MB_MAX = 1_000;
/** Open requests at the bottom of a wave, as a share of those at its top. */
const BOTTOM = 0.02;
/** Rest of a client between two looks at the wave, and behind a failure. */
const REST_MS = 250;
const SLOW_MS = 1_000;
/** Beginnings that requests share. */
const SHARED = 16;
const SERIAL_DIGITS = 12;
const ANSWER_BYTES = 1_024;
const LARGE_ANSWER_BYTES = 200_000;
const LARGE_ANSWERS = 0.1;
const CHUNKS = 20;
/** Statuses with which the picker refuses by a documented bound: too late, too much. */
const REFUSALS = new Set([408, 429, 503]);
/** Different reasons that are told apart; all others are counted together. */
const REASONS_MAX = 50;
const REASON_CHARACTERS_MAX = 160;

/** Requests through the proxy from many clients at once, some of which go away. */
export class Clients {
  readonly outcomes: Record<Outcome, number> = { answered: 0, reset: 0, refused: 0, failed: 0 };
  /** Requests by the reason of their failure, and by that of their refusal. */
  readonly failures: Record<string, number> = {};
  readonly refusals: Record<string, number> = {};
  readonly #traffic: Traffic;
  readonly #sessions: ClientHttp2Session[];
  readonly #bodies = new Map<string, Buffer>();
  #serial = 0;
  #startedAt = 0;

  constructor(port: number, traffic: Traffic) {
    this.#traffic = traffic;
    const sessions = Math.ceil(traffic.streams / SESSION_STREAMS);
    this.#sessions = Array.from({ length: sessions }, () => {
      const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: SESSION_MB_MAX });
      session.on('error', (error) => this.#failed(`connection: ${error.message}`));
      return session;
    });
  }

  /** Sends requests until the signal comes, and waits for the last answers. */
  async run(signal: AbortSignal): Promise<void> {
    this.#startedAt = performance.now();
    await Promise.all(Array.from({ length: this.#traffic.streams }, (_, index) => this.#client(index, signal)));
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
  }

  async #client(index: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const level = this.#level();
      if (index >= level) await setTimeout(REST_MS);
      else await this.#count(index, level);
    }
  }

  async #count(index: number, level: number): Promise<void> {
    // A connection that is gone takes no request.
    const outcome = await this.#exchange(index, level).catch((error: Error) => this.#failed(error.message));
    this.outcomes[outcome]++;
    if (outcome === 'failed') await setTimeout(REST_MS);
  }

  /** Requests that are to be open now. */
  #level(): number {
    const { streams, waveMs } = this.#traffic;
    if (waveMs === 0) return streams;
    const phase = ((performance.now() - this.#startedAt) % waveMs) / waveMs;
    const height = 1 - Math.abs(2 * phase - 1);
    return streams * (BOTTOM + (1 - BOTTOM) * height);
  }

  async #exchange(index: number, level: number): Promise<Outcome> {
    const { traffic, session } = { traffic: this.#traffic, session: this.#sessions[index % this.#sessions.length]! };
    const chunks = Math.random() < 0.5 ? 1 : CHUNKS;
    const body = this.#body(this.#size(), chunks > 1);
    // Little's law: so many open requests at this rate stay so long.
    const ms = Math.max(CHUNKS, Math.random() * 2_000 * (level / traffic.rate));
    const stream = session.request(
      {
        ':method': 'POST',
        ':path': '/v1/chat/completions',
        'content-type': 'application/json',
        [ANSWER_HEADERS.bytes]: Math.random() < LARGE_ANSWERS ? LARGE_ANSWER_BYTES : ANSWER_BYTES,
        [ANSWER_HEADERS.ms]: Math.round(ms),
        [ANSWER_HEADERS.chunks]: chunks,
      },
      { waitForTrailers: Math.random() < traffic.trailers },
    );
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-soak-end': 'yes' }));
    if (Math.random() < traffic.resets) resetWithin(stream, ms);
    if (Math.random() < traffic.slowReaders) readLate(stream);
    stream.end(body);
    return this.#outcome(stream, digest(body));
  }

  #outcome(stream: ClientHttp2Stream, sent: string): Promise<Outcome> {
    let status = 0;
    let received = '';
    let announced = '';
    const pieces: Buffer[] = [];
    stream.on('response', (headers) => {
      status = Number(headers[':status']);
      received = String(headers[BODY_DIGEST]);
    });
    stream.on('trailers', (trailers) => {
      announced = String(trailers[ANSWER_DIGEST]);
    });
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    let broken = '';
    stream.on('error', (error) => {
      broken = error.message;
    });
    return new Promise((resolve) => {
      stream.on('close', () => {
        if (stream.rstCode === constants.NGHTTP2_CANCEL) return resolve('reset');
        if (broken !== '') return resolve(this.#failed(`stream: ${broken}`));
        const answer = Buffer.concat(pieces);
        if (REFUSALS.has(status)) return resolve(this.#refused(`status ${status}: ${answer}`));
        if (status !== 200) return resolve(this.#failed(`status ${status}: ${answer}`));
        if (received !== sent) return resolve(this.#failed('the body arrived with other bytes'));
        if (announced !== digest(answer)) return resolve(this.#failed('the answer arrived with other bytes'));
        resolve('answered');
      });
    });
  }

  #failed(why: string): Outcome {
    count(this.failures, why);
    return 'failed';
  }

  #refused(why: string): Outcome {
    count(this.refusals, why);
    return 'refused';
  }

  #size(): number {
    const { sizes } = this.#traffic;
    let drawn = Math.random() * sizes.reduce((sum, { share }) => sum + share, 0);
    for (const { bytes, share } of sizes) {
      drawn -= share;
      if (drawn < 0) return bytes;
    }
    return sizes[0]!.bytes;
  }

  /** A chat whose first half is one of a few, and whose second half begins with a number of its own. */
  #body(bytes: number, stream: boolean): Buffer {
    const serial = this.#serial++;
    const shared = serial % SHARED;
    const key = `${bytes} ${stream} ${shared}`;
    let body = this.#bodies.get(key);
    if (body === undefined) {
      const content = `${String(shared)
        .padStart(4, 's')
        .padEnd(bytes / 2, 'a')}${'n'.repeat(bytes / 2)}`;
      body = Buffer.from(JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content }] }));
      this.#bodies.set(key, body);
    }
    const own = Buffer.from(body);
    own.write(String(serial).padStart(SERIAL_DIGITS, '0'), body.indexOf('n'.repeat(SERIAL_DIGITS)), 'latin1');
    return own;
  }
}

/** Mean bytes of a body. */
export function meanBytes(sizes: readonly BodySize[]): number {
  const shares = sizes.reduce((sum, { share }) => sum + share, 0);
  return sizes.reduce((sum, { bytes, share }) => sum + bytes * share, 0) / shares;
}

function count(reasons: Record<string, number>, why: string): void {
  const reason = why.slice(0, REASON_CHARACTERS_MAX);
  const key = reason in reasons || Object.keys(reasons).length < REASONS_MAX ? reason : 'others';
  reasons[key] = (reasons[key] ?? 0) + 1;
}

function resetWithin(stream: ClientHttp2Stream, ms: number): void {
  const timer = globalThis.setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), Math.random() * ms);
  stream.on('close', () => clearTimeout(timer));
}

/** The answer is left where it is for a while: the windows on its way close. */
function readLate(stream: ClientHttp2Stream): void {
  stream.on('response', () => {
    stream.pause();
    const timer = globalThis.setTimeout(() => stream.resume(), SLOW_MS);
    stream.on('close', () => clearTimeout(timer));
  });
}
