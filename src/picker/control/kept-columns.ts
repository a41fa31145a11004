import type { ServerResponse } from 'node:http';
import { KEPT_BY, type KeptColumns } from '../../contract/kept-columns.js';
import type { Route } from '../../operations/telemetry/metrics-server.js';
import { nearestName } from '../../runtime/nearest-name.js';
import type { ToPool } from '../messages.js';

const MINUTES_DEFAULT = 5;
const MINUTES_MAX = 60;
const DECISIONS_DEFAULT = 1_000;
const DECISIONS_MAX = 10_000;
/** Kinds of requests that keep their columns at one time. */
const WANTED_MAX = 8;
const VALUE_CHARACTERS_MAX = 256;
/** Parameters of the page; `pool` chooses the pool that is told. */
const PARAMETERS: readonly string[] = [...KEPT_BY, 'minutes', 'decisions', 'pool'];
/** Interval in which shards are told again: a restarted one has been told nothing. */
const TELL_AGAIN_MS = 5_000;

export interface ColumnKeeperOptions {
  readonly broadcast: (message: ToPool) => void;
  /** Whether the decision log is kept. */
  readonly logged: boolean;
  /** Milliseconds of the pool clock. */
  readonly nowMs: () => number;
  readonly log: { info(fields: object, message: string): void };
}

/**
 * `POST /debug/columns?tenant=…&minutes=n&decisions=m`, or `model`, or `session`: decisions about these requests keep
 * their columns for a while. Bounded in time, in number, and by the room for columns. Without a name it tells
 * what is kept. Control thread only.
 */
export class ColumnKeeper {
  readonly #options: ColumnKeeperOptions;
  #wanted: readonly KeptColumns[] = [];
  #numbers = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ColumnKeeperOptions) {
    this.#options = options;
  }

  readonly route: Route = (request, response) => {
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const unknown = [...query.keys()].find((key) => !PARAMETERS.includes(key));
    if (unknown !== undefined) {
      const nearest = nearestName(unknown, PARAMETERS);
      const hint = nearest === undefined ? `expected ${PARAMETERS.join(', ')}` : `did you mean ${nearest}?`;
      return plain(response, 400, `${unknown}: is an unknown parameter; ${hint}`);
    }
    const named = KEPT_BY.filter((by) => query.has(by));
    if (named.length > 1) return plain(response, 400, `only one of ${KEPT_BY.join(', ')} can be given`);
    if (named.length === 0) return this.#answer(response);
    const by = named[0]!;
    const value = query.get(by)!;
    if (value === '' || value.length > VALUE_CHARACTERS_MAX)
      return plain(response, 400, `${by}: must have 1 to ${VALUE_CHARACTERS_MAX} characters`);
    const minutes = wholeNumber(query.get('minutes'), MINUTES_DEFAULT, 0, MINUTES_MAX);
    if (minutes === undefined) return plain(response, 400, `minutes: must be a whole number from 0 to ${MINUTES_MAX}`);
    const decisions = wholeNumber(query.get('decisions'), DECISIONS_DEFAULT, 1, DECISIONS_MAX);
    if (decisions === undefined)
      return plain(response, 400, `decisions: must be a whole number from 1 to ${DECISIONS_MAX}`);
    if (!this.#options.logged) return plain(response, 409, 'no columns are kept without --decision-log-size');
    const others = this.#current().filter((each) => each.by !== by || each.value !== value);
    if (minutes > 0 && others.length >= WANTED_MAX)
      return plain(
        response,
        409,
        `columns of ${WANTED_MAX} kinds of requests are kept already: end one with minutes=0`,
      );
    const untilMs = this.#options.nowMs() + minutes * 60_000;
    const fresh: KeptColumns = { number: ++this.#numbers, by, value, untilMs, decisions };
    this.#want(minutes === 0 ? others : [...others, fresh]);
    this.#options.log.info({ [by]: value, minutes, decisions }, 'columns of decisions are kept on request');
    return this.#answer(response);
  };

  stop(): void {
    clearInterval(this.#timer);
  }

  #current(): readonly KeptColumns[] {
    const now = this.#options.nowMs();
    return this.#wanted.filter(({ untilMs }) => untilMs > now);
  }

  #want(wanted: readonly KeptColumns[]): void {
    this.#wanted = wanted;
    this.#tell();
    this.#timer ??= setInterval(() => this.#tellAgain(), TELL_AGAIN_MS).unref();
  }

  #tellAgain(): void {
    this.#wanted = this.#current();
    this.#tell();
    if (this.#wanted.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tell(): void {
    this.#options.broadcast({ kind: 'keepColumns', wanted: this.#wanted });
  }

  #answer(response: ServerResponse): void {
    const now = this.#options.nowMs();
    const kept = this.#current().map(({ by, value, untilMs, decisions }) => ({
      ...{ [by]: value, secondsLeft: Math.ceil((untilMs - now) / 1_000), decisionsOfEachShard: decisions },
    }));
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(`${JSON.stringify({ kept }, undefined, 2)}\n`);
  }
}

function wholeNumber(text: string | null, initial: number, min: number, max: number): number | undefined {
  if (text === null) return initial;
  const number = text === '' ? Number.NaN : Number(text);
  return Number.isInteger(number) && number >= min && number <= max ? number : undefined;
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}
