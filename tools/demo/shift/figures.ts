import type { RequestOutcome } from './run.js';

/** Figures of a set of requests. Times in milliseconds; NaN without an answer. */
export interface Figures {
  readonly answered: number;
  readonly failed: number;
  readonly firstTokenP50: number;
  readonly firstTokenP99: number;
  /** Share of the prompt tokens that the servers had cached. */
  readonly cached: number;
  /** Requests of the fullest server beside those of the emptiest one; infinite when one got none. */
  readonly imbalance: number;
  /** Share of the requests that the first server got: the one that slows down. */
  readonly firstServer: number;
  /** Mean of (time to first token / its target + time per further token / its target). */
  readonly cost: number;
}

/** Targets of a request: the exchange rate between first and further tokens. Milliseconds. */
export interface Targets {
  readonly firstOutputTargetMs: number;
  readonly perTokenTargetMs: number;
}

export function figuresOf(
  outcomes: readonly RequestOutcome[],
  servers: readonly string[],
  { firstOutputTargetMs, perTokenTargetMs }: Targets,
): Figures {
  const answers = outcomes.flatMap(({ planned, answer }) => (answer === undefined ? [] : [{ planned, answer }]));
  const firstTokens = answers.map(({ answer }) => answer.firstTokenMs).sort((a, b) => a - b);
  const costs = answers.map(({ planned, answer: { firstTokenMs, wholeMs } }) => {
    const perTokenMs = (wholeMs - firstTokenMs) / Math.max(1, planned.answerTokens - 1);
    return firstTokenMs / firstOutputTargetMs + perTokenMs / perTokenTargetMs;
  });
  const perServer = servers.map((server) => answers.filter(({ answer }) => answer.server === server).length);
  return {
    answered: answers.length,
    failed: outcomes.length - answers.length,
    firstTokenP50: quantile(firstTokens, 0.5),
    firstTokenP99: quantile(firstTokens, 0.99),
    cached:
      sum(answers.map(({ answer }) => answer.cachedTokens)) / sum(answers.map(({ answer }) => answer.promptTokens)),
    imbalance: Math.max(...perServer) / Math.min(...perServer),
    firstServer: perServer[0]! / answers.length,
    cost: sum(costs) / costs.length,
  };
}

/** The smallest value with at least this share of the sorted values at or below it; NaN of none. */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
