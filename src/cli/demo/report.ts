import type { TurnOutcome } from './load.js';
import type { OverloadSecond } from './overload.js';
import { Table } from './table.js';

const TURN_HEAD = ['turn', 'requests', 'errors', 'mean TTFT', 'cached prompt', 'requests per server'];
const SECOND_HEAD = [
  'second',
  'interactive',
  'mean TTFT',
  'largest',
  'batch done',
  'refused',
  'wait in Pointsman',
  'wait in the servers',
];

/** The lines of the demo's table: one per turn, columns aligned. */
export class TurnTable {
  readonly #servers: readonly string[];
  readonly #table = new Table(TURN_HEAD);

  constructor(servers: readonly string[]) {
    this.#servers = servers;
  }

  head(): string {
    return this.#table.head();
  }

  row({ turn, answered, errors }: TurnOutcome): string {
    const prompt = sum(answered.map((outcome) => outcome.promptTokens));
    const cached = sum(answered.map((outcome) => outcome.cachedTokens));
    const meanMs = answered.length === 0 ? 0 : sum(answered.map((outcome) => outcome.firstTokenMs)) / answered.length;
    const counts = this.#servers.map((server) => answered.filter((outcome) => outcome.server === server).length);
    const share = prompt === 0 ? 0 : (100 * cached) / prompt;
    return this.#table.line([
      String(turn),
      String(answered.length + errors.length),
      String(errors.length),
      `${meanMs.toFixed(0)} ms`,
      `${share.toFixed(0)} %`,
      counts.join('  '),
    ]);
  }
}

/** The lines of the overload: one per second. */
export class OverloadTable {
  readonly #table = new Table(SECOND_HEAD);

  head(): string {
    return this.#table.head();
  }

  /** @param waiting requests that wait in the picker, and in all servers together */
  row(
    { second, flood, firstTokensMs, batchAnswered, refused }: OverloadSecond,
    waiting: readonly [number, number],
  ): string {
    const mean = firstTokensMs.length === 0 ? 0 : sum(firstTokensMs) / firstTokensMs.length;
    return this.#table.line([
      `${flood ? '*' : ' '}${second}`,
      String(firstTokensMs.length),
      `${mean.toFixed(0)} ms`,
      `${Math.max(0, ...firstTokensMs).toFixed(0)} ms`,
      String(batchAnswered),
      String(refused),
      String(waiting[0]),
      String(waiting[1]),
    ]);
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
