import type { TurnOutcome } from './load.js';
import type { OverloadSecond } from './overload.js';
import type { PoolAnswers } from './shared-prompt.js';
import { Table } from './table.js';

const TURN_HEAD = ['turn', 'requests', 'errors', 'mean TTFT', 'cached prompt', 'requests per server'];
const SECOND_HEAD = ['second', 'answered', 'mean TTFT', ' largest', 'batch', 'refused', 'in picker', 'in servers'];

/** Width of the last column, so that a line fits a terminal of 80 columns. */
const COUNTS_CHARACTERS_MAX = 24;

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
    const counts = this.#servers.map((server) => answered.filter((outcome) => outcome.server === server).length);
    return this.#table.line([
      String(turn),
      String(answered.length + errors.length),
      String(errors.length),
      milliseconds(meanOf(answered.map((outcome) => outcome.firstTokenMs))),
      prompt === 0 ? NOTHING : `${((100 * cached) / prompt).toFixed(0)} %`,
      countsText(counts),
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
    return this.#table.line([
      `${flood ? '*' : ' '}${second}`,
      String(firstTokensMs.length),
      milliseconds(meanOf(firstTokensMs)),
      milliseconds(firstTokensMs.length === 0 ? undefined : Math.max(...firstTokensMs)),
      String(batchAnswered),
      String(refused),
      String(waiting[0]),
      String(waiting[1]),
    ]);
  }
}

const POOL_HEAD = ['mean TTFT', 'per token', 'per server'];
/** Two pools and the column of the second fit a terminal of 80 columns. */
const POOL_WIDTH = 36;
const POOL_COUNTS_MAX = 12;

/** The lines of the shared system prompt: one per second, the pools side by side. */
export class SharedPromptTable {
  readonly #servers: readonly string[];
  readonly #table = new Table(POOL_HEAD);
  readonly #answerTokens: number;

  constructor(servers: readonly string[], answerTokens: number) {
    this.#servers = servers;
    this.#answerTokens = answerTokens;
  }

  head(names: readonly string[]): string {
    return [
      `  second${names.map((name) => `  ${name.padEnd(POOL_WIDTH - 2)}`).join('')}`.trimEnd(),
      `        ${names.map(() => this.#table.head().padEnd(POOL_WIDTH)).join('')}`.trimEnd(),
    ].join('\n');
  }

  row(name: string, pools: readonly PoolAnswers[]): string {
    return `  ${name.padStart(6)}${pools.map((pool) => this.#cells(pool).padEnd(POOL_WIDTH)).join('')}`.trimEnd();
  }

  #cells({ answers }: PoolAnswers): string {
    const perToken = answers.map(({ firstTokenMs, wholeMs }) => (wholeMs - firstTokenMs) / (this.#answerTokens - 1));
    const counts = this.#servers.map((server) => answers.filter((answer) => answer.server === server).length);
    return this.#table.line([
      milliseconds(meanOf(answers.map(({ firstTokenMs }) => firstTokenMs))),
      milliseconds(meanOf(perToken)),
      countsText(counts, ' ', POOL_COUNTS_MAX),
    ]);
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Shown where there was nothing to measure. */
const NOTHING = '–';

function meanOf(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : sum(values) / values.length;
}

function milliseconds(value: number | undefined): string {
  return value === undefined ? NOTHING : `${value.toFixed(0)} ms`;
}

/** Requests of every server, or their range where there are too many servers for a line. */
function countsText(counts: readonly number[], gap = '  ', charactersMax = COUNTS_CHARACTERS_MAX): string {
  const each = counts.join(gap);
  return each.length <= charactersMax ? each : `${Math.min(...counts)} to ${Math.max(...counts)}`;
}
