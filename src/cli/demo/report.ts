import type { TurnOutcome } from './load.js';

const HEAD = ['turn', 'requests', 'errors', 'mean TTFT', 'cached prompt', 'requests per server'];

/** The lines of the demo's table: one per turn, columns aligned. */
export class TurnTable {
  readonly #servers: readonly string[];
  readonly #widths = HEAD.map((title) => title.length);

  constructor(servers: readonly string[]) {
    this.#servers = servers;
  }

  head(): string {
    return this.#line(HEAD);
  }

  row({ turn, answered, errors }: TurnOutcome): string {
    const prompt = sum(answered.map((outcome) => outcome.promptTokens));
    const cached = sum(answered.map((outcome) => outcome.cachedTokens));
    const meanMs = answered.length === 0 ? 0 : sum(answered.map((outcome) => outcome.firstTokenMs)) / answered.length;
    const counts = this.#servers.map((server) => answered.filter((outcome) => outcome.server === server).length);
    const share = prompt === 0 ? 0 : (100 * cached) / prompt;
    return this.#line([
      String(turn),
      String(answered.length + errors.length),
      String(errors.length),
      `${meanMs.toFixed(0)} ms`,
      `${share.toFixed(0)} %`,
      counts.join('  '),
    ]);
  }

  #line(cells: readonly string[]): string {
    const padded = cells.map((cell, column) =>
      column === cells.length - 1 ? cell : cell.padStart(this.#widths[column]!),
    );
    return `  ${padded.join('   ')}`;
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
