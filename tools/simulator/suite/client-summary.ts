import type { RequestOutcome, RunOutcome } from '../fleet/outcome.js';

/** What a fixed number of clients got, between the end of the warm-up and the end of the run. */
export interface ClientSummary {
  readonly clients: number;
  /** Turns that ended, per minute. */
  readonly turnsPerMinute: number;
  /** Clients of which no turn ended. */
  readonly withoutTurn: number;
  /** Time that a client's finished turns and pauses would take on an idle fleet, over the time: mean and smallest. */
  readonly progress: number;
  readonly leastProgress: number;
  /** Jain's index of the clients' progress: 1 = all have the same. */
  readonly fairness: number;
}

/** @returns null for a run without a fixed number of clients */
export function clientSummary({ requests, clients, endMs }: RunOutcome, warmupMs: number): ClientSummary | null {
  if (clients === 0) return null;
  const windowMs = endMs - warmupMs;
  const progress = new Float64Array(clients);
  const turns = new Uint32Array(clients);
  for (const request of requests) {
    if (request.client < 0 || !endedAfter(request, warmupMs)) continue;
    turns[request.client]!++;
    progress[request.client]! += (request.thinkMs + request.aloneMs) / windowMs;
  }
  const total = turns.reduce((sum, count) => sum + count, 0);
  const sum = progress.reduce((all, own) => all + own, 0);
  const squares = progress.reduce((all, own) => all + own * own, 0);
  return {
    clients,
    turnsPerMinute: (total * 60_000) / windowMs,
    withoutTurn: turns.filter((count) => count === 0).length,
    progress: sum / clients,
    leastProgress: Math.min(...progress),
    fairness: squares === 0 ? 0 : (sum * sum) / (clients * squares),
  };
}

function endedAfter({ status, arrivalMs, e2eMs }: RequestOutcome, ms: number): boolean {
  return status === 'served' && arrivalMs + e2eMs >= ms;
}
