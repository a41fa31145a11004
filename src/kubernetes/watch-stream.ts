import type { IncomingMessage } from 'node:http';
import { type KeptFields, KeptFieldsReader } from './kept-fields.js';

/** One event of a watch; `object` is a resource, or a Status with type ERROR. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: unknown;
}

export interface WatchStreamOptions {
  /** Events in order, as many as one piece of the stream has completed. */
  readonly events: (events: readonly WatchEvent[]) => void;
  /** Bytes have come. */
  readonly heard: () => void;
  /** Time without a byte after which the connection counts as dead; asked again whenever it may have run out. */
  readonly silenceMs: () => number;
  /** Fields of the objects that are read; undefined = all. */
  readonly fields?: KeptFields | undefined;
}

/** Reason why a watch stream was given up. */
export class BrokenStream extends Error {
  readonly kind: 'silence' | 'line too long' | 'not JSON' | 'connection';

  constructor(kind: BrokenStream['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Bound on a line: an object in etcd has at most 1.5 MiB, which JSON escapes can make longer. */
const LINE_BYTES_MAX = 4 * 1024 * 1024;
const NEWLINE = 10;
/** Time in a turn of the event loop after which the rest of a burst waits for the next one: other work goes between. */
const TURN_MS = 8;

/**
 * Reads a watch to its end. Resolves when the server ended it, rejects with BrokenStream or an error of `events`; the
 * connection is closed then.
 */
export function readWatch(response: IncomingMessage, options: WatchStreamOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const lines = new EventLines(options.fields);
    let heardMs = performance.now();
    const listen = () => {
      const left = options.silenceMs() - (performance.now() - heardMs);
      if (left > 0) silence = setTimeout(listen, left);
      else stop(new BrokenStream('silence', `no byte for ${options.silenceMs() / 1000} s`));
    };
    let silence = setTimeout(listen, options.silenceMs());
    let spentMs = 0;
    let turn: NodeJS.Immediate | undefined;
    const nextTurn = () => {
      turn = undefined;
      spentMs = 0;
      response.resume();
    };
    const spend = (ms: number) => {
      spentMs += ms;
      turn ??= setImmediate(nextTurn);
      if (spentMs >= TURN_MS) response.pause();
    };
    const stop = (error?: Error) => {
      clearTimeout(silence);
      clearImmediate(turn);
      response.removeAllListeners('data');
      if (error === undefined) resolve();
      else {
        reject(error);
        response.destroy();
      }
    };
    response.on('data', (piece: Buffer) => {
      heardMs = performance.now();
      options.heard();
      const events: WatchEvent[] = [];
      try {
        try {
          lines.take(piece, events);
        } finally {
          // Lines before a broken one count.
          if (events.length > 0) options.events(events);
        }
        spend(performance.now() - heardMs);
      } catch (error) {
        stop(error as Error);
      }
    });
    response.on('end', () => stop());
    response.on('error', (error) => stop(new BrokenStream('connection', error.message)));
    response.on('close', () => stop(new BrokenStream('connection', 'the connection was closed')));
  });
}

/** Bytes → events, one JSON object a line. */
export class EventLines {
  readonly #reader: KeptFieldsReader | undefined;
  #rest: Buffer[] = [];
  #restBytes = 0;

  /** @param fields of the objects; undefined = all */
  constructor(fields?: KeptFields) {
    this.#reader = fields && new KeptFieldsReader({ type: true, object: fields });
  }

  /** Adds the events that a piece completes. @throws BrokenStream on a line that is too long or no JSON */
  take(piece: Buffer, events: WatchEvent[]): void {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      const line = this.#line(piece.subarray(start, end));
      if (line.length > 0) events.push(this.#event(line));
      start = end + 1;
    }
    this.#keep(piece.subarray(start));
  }

  #event(line: Buffer): WatchEvent {
    try {
      return (this.#reader === undefined ? JSON.parse(line.toString('utf8')) : this.#reader.parse(line)) as WatchEvent;
    } catch {
      throw new BrokenStream('not JSON', `a line that is no JSON: ${line.toString('utf8', 0, 80)}`);
    }
  }

  #line(last: Buffer): Buffer {
    if (this.#restBytes === 0) return last;
    const line = Buffer.concat([...this.#rest, last]);
    this.#rest = [];
    this.#restBytes = 0;
    return line;
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#restBytes += piece.length;
    if (this.#restBytes > LINE_BYTES_MAX)
      throw new BrokenStream('line too long', `an event of more than ${LINE_BYTES_MAX} bytes`);
    this.#rest.push(piece);
  }
}
