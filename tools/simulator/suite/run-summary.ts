import type { RequestOutcome, RunOutcome } from '../fleet/outcome.js';
import { type ClientSummary, clientSummary } from './client-summary.js';
import type { Suite } from './schema.js';

/** Mean and percentiles in milliseconds. */
export interface Spread {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** Results of one run after the warm-up. */
export interface RunSummary {
  readonly requests: number;
  /** Rejected, failed and timed out. */
  readonly lost: number;
  readonly ttft: Spread;
  readonly tpot: Spread;
  readonly e2e: Spread;
  /** Mean over the requests of TTFT / its objective + TPOT / its objective; an unserved one counts 20. */
  readonly cost: number;
  /** `cost` without the bound of 20 on each part of a served request: it shows very long waits. */
  readonly uncappedCost: number;
  /** `cost` by part of the workload; null = no request of it was measured. */
  readonly costByPart: readonly (number | null)[];
  /** The same by time of arrival, all of the run, in equal windows; null = nothing arrived in it. */
  readonly timeline: { readonly windowMs: number; readonly cost: readonly (number | null)[] };
  /** Requests that came per second. */
  readonly requestsPerSecond: number;
  /** Share of the requests that met both objectives; long prompts have 0.5 s + prompt / 8,000 tokens per second. */
  readonly goodput: number;
  /** Prompt tokens found in a cache, over all. */
  readonly hitRatio: number;
  /** Prompt tokens that came back from a tier below the GPU, over all. */
  readonly loadRatio: number;
  /** Expected cached tokens over found ones - 1; how far the picker's index is off. Null where nothing was found. */
  readonly overBelief: number | null;
  readonly preemptions: number;
  /** Busiest endpoint over the mean, by time of computing. */
  readonly imbalance: number;
  /** Share of the requests that waited in the picker's queues, and how long those did. */
  readonly heldShare: number;
  readonly held: Spread;
  /** Null without a fixed number of clients. */
  readonly clients: ClientSummary | null;
  /** The parts of the workload, each for itself; null = no request of it was served. */
  readonly byPart: readonly (PartSummary | null)[];
  /** Share of the later turns of sessions that were recognised as such; null = sessions are not counted. */
  readonly recognised: number | null;
}

/** Served requests of one part of a workload. */
export interface PartSummary {
  readonly turnsPerMinute: number;
  readonly hitRatio: number;
  readonly ttft: Spread;
  readonly e2e: Spread;
}

/** A request that was not served, and the bound of each part of the cost (design: min(·, 20)). */
const LOST_COST = 20;

export function summarise(outcome: RunOutcome, suite: Suite, parts: number): RunSummary {
  const measured = afterWarmup(outcome.requests, suite.warmup);
  const served = measured.filter(({ status }) => status === 'served');
  const cost = (requests: readonly RequestOutcome[]) => mean(requests.map((request) => costOf(request, suite)));
  const cached = sum(served.map(({ cachedTokens }) => cachedTokens));
  const prompts = Math.max(1, sum(served.map(({ promptTokens }) => promptTokens)));
  const held = measured.map(({ heldMs }) => heldMs).filter((ms) => ms > 0);
  return {
    requests: measured.length,
    lost: measured.length - served.length,
    ttft: spread(served.map(({ ttftMs }) => ttftMs)),
    tpot: spread(served.filter(({ outputTokens }) => outputTokens > 1).map(({ tpotMs }) => tpotMs)),
    e2e: spread(served.map(({ e2eMs }) => e2eMs)),
    cost: cost(measured),
    uncappedCost: mean(measured.map((request) => uncappedCostOf(request, suite))),
    costByPart: Array.from({ length: parts }, (_, part) => {
      const own = measured.filter((request) => request.part === part);
      return own.length === 0 ? null : cost(own);
    }),
    timeline: timelineOf(outcome.requests, suite),
    requestsPerSecond: rateOf(measured),
    goodput: mean(measured.map((request) => (metObjectives(request, suite) ? 1 : 0))),
    hitRatio: cached / prompts,
    loadRatio: sum(served.map(({ loadedTokens }) => loadedTokens)) / prompts,
    overBelief: cached === 0 ? null : sum(served.map(({ expectedTokens }) => expectedTokens)) / cached - 1,
    preemptions: outcome.preemptions,
    imbalance: Math.max(...outcome.busyMs) / Math.max(1e-9, mean(outcome.busyMs)),
    heldShare: held.length / Math.max(1, measured.length),
    held: spread(held),
    clients: clientSummary(outcome, suite.warmup.seconds * 1e3),
    byPart: Array.from({ length: parts }, (_, part) => partSummary(served.filter((request) => request.part === part))),
    recognised: recognisedShare(outcome),
  };
}

function partSummary(served: readonly RequestOutcome[]): PartSummary | null {
  if (served.length === 0) return null;
  const ends = served.map(({ arrivalMs, e2eMs }) => arrivalMs + e2eMs);
  const first = served.reduce((least, { arrivalMs }) => Math.min(least, arrivalMs), Number.POSITIVE_INFINITY);
  const last = ends.reduce((most, end) => Math.max(most, end), 0);
  return {
    turnsPerMinute: (served.length * 60_000) / Math.max(1, last - first),
    hitRatio: sum(served.map(({ cachedTokens }) => cachedTokens)) / sum(served.map(({ promptTokens }) => promptTokens)),
    ttft: spread(served.map(({ ttftMs }) => ttftMs)),
    e2e: spread(served.map(({ e2eMs }) => e2eMs)),
  };
}

function recognisedShare({ sessions, placed }: RunOutcome): number | null {
  if (sessions === undefined || placed.turns === placed.sessions) return null;
  return sessions.recognised.prompt / (placed.turns - placed.sessions);
}

function rateOf(requests: readonly RequestOutcome[]): number {
  if (requests.length < 2) return 0;
  const times = requests.map(({ arrivalMs }) => arrivalMs);
  return ((requests.length - 1) * 1e3) / Math.max(1e-9, times.at(-1)! - times[0]!);
}

/** Windows of equal length that a run is cut into. */
const WINDOWS = 100;

function timelineOf(requests: readonly RequestOutcome[], suite: Suite): RunSummary['timeline'] {
  const last = requests.reduce((latest, { arrivalMs }) => Math.max(latest, arrivalMs), 0);
  const windowMs = Math.max(1, last / WINDOWS);
  const sums = new Float64Array(WINDOWS);
  const counts = new Float64Array(WINDOWS);
  for (const request of requests) {
    const window = Math.min(WINDOWS - 1, Math.floor(request.arrivalMs / windowMs));
    sums[window]! += costOf(request, suite);
    counts[window]! += 1;
  }
  return { windowMs, cost: Array.from(sums, (sum, i) => (counts[i] === 0 ? null : sum / counts[i]!)) };
}

export function costOf(request: RequestOutcome, { slo }: Suite): number {
  if (request.status !== 'served') return LOST_COST;
  return Math.min(request.ttftMs / slo.ttftMs, LOST_COST) + Math.min(request.tpotMs / slo.tpotMs, LOST_COST);
}

function uncappedCostOf(request: RequestOutcome, { slo }: Suite): number {
  if (request.status !== 'served') return LOST_COST;
  return request.ttftMs / slo.ttftMs + request.tpotMs / slo.tpotMs;
}

function metObjectives({ status, ttftMs, tpotMs, promptTokens }: RequestOutcome, { slo }: Suite): boolean {
  const patience = Math.max(slo.ttftMs, 500 + promptTokens / 8);
  return status === 'served' && ttftMs <= patience && tpotMs <= slo.tpotMs;
}

/** Warm-up in seconds and in requests by arrival; the shorter of the two is left out. */
function afterWarmup(requests: readonly RequestOutcome[], warmup: Suite['warmup']): RequestOutcome[] {
  const sorted = [...requests].sort((a, b) => a.arrivalMs - b.arrivalMs);
  const bySeconds = sorted.findIndex(({ arrivalMs }) => arrivalMs >= warmup.seconds * 1e3);
  return sorted.slice(Math.min(bySeconds < 0 ? sorted.length : bySeconds, warmup.requests));
}

function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { mean: mean(sorted), p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : sum(values) / values.length;
}
