import type { CandidateShown, DecisionShown, EndpointShown, Snapshot } from '../../src/operations/page/snapshot.js';
import { columns } from '../command-line/text-columns.js';

/** Width of a bar, in characters. */
const BAR = 10;

/**
 * A snapshot as lines for a terminal: figures, endpoints, cache, queues, last decisions.
 * @param rows lines of the terminal; fewer endpoints and decisions are listed in a small one
 */
export function topText(snapshot: Snapshot, rows: number): string {
  const { endpoints, cache, queues, priorities, windowSeconds } = snapshot;
  const perSecond = priorities.reduce((sum, { decided }) => sum + decided, 0) / windowSeconds;
  const refused = priorities.reduce((sum, each) => sum + each.refused, 0);
  const live = endpoints.filter(({ state }) => state === 'live').length;
  const main = [...priorities].sort((a, b) => b.decided - a.decided)[0];
  const head = [
    `pointsman  pool ${snapshot.pool}  ` +
      `${snapshot.unready.length === 0 ? 'ready' : `not ready: ${snapshot.unready.join(', ')}`}`,
    `requests/s ${round(perSecond)}  first token ${ms(main?.ttft.p50 ?? null)} (95 % ${ms(main?.ttft.p95 ?? null)})  ` +
      (`from cache ${percent(cache.hitRate)}  in flight ${snapshot.inflight}  waiting ${queues?.waiting ?? 0}  ` +
        `refused ${refused} in ${windowSeconds} s  `) +
      `endpoints ${live}/${endpoints.length}`,
    lossText(snapshot),
    ...snapshot.parts.filter(({ ok }) => !ok).map(({ name, text }) => `${name}: ${text}`),
    ...(snapshot.candidate === null ? [] : [candidateText(snapshot.candidate)]),
  ];
  const listed = Math.max(3, Math.floor((rows - head.length - 6) / 2));
  return [...head, '', ...endpointLines(endpoints, listed), '', ...decisionLines(snapshot, listed)].join('\n');
}

function lossText({ cache }: Snapshot): string {
  const causes = Object.entries(cache.lost).sort(([, a], [, b]) => b - a);
  if (causes.length === 0) return 'computed anew: nothing';
  return `computed anew: ${causes.map(([cause, tokens]) => `${cause} ${tokens} tokens`).join(', ')}`;
}

function candidateText({ file, stopped, all }: CandidateShown): string {
  const name = `candidate ${file.slice(file.lastIndexOf('/') + 1)}`;
  if (stopped !== null) return `${name} decides no longer: ${stopped}`;
  if (all === null) return `${name}: nothing decided yet`;
  const { decisions, different, unplaced, runningCost, candidateCost } = all;
  const cost =
    runningCost === null || candidateCost === null
      ? ''
      : `, predicted cost ${candidateCost.toFixed(3)} instead of ${runningCost.toFixed(3)} targets`;
  return (
    `${name}: other picks for ${(different * 100).toFixed(1)} % of ${decisions} requests${cost}, unplaced ` +
    `${unplaced}`
  );
}

function endpointLines(endpoints: readonly EndpointShown[], listed: number): string[] {
  if (endpoints.length === 0) return ['no endpoints: discovery has found none yet'];
  const most = Math.max(1, ...endpoints.map(({ inflight }) => inflight));
  const busiest = [...endpoints].sort((a, b) => b.inflight - a.inflight || a.id.localeCompare(b.id));
  const rows = busiest
    .slice(0, listed)
    .map(({ id, state, inflight, waiting, kvUsage, hitRate, ttftMs, ageMs }) => [
      id,
      state,
      `${bar(inflight / most)} ${inflight}`,
      waiting === null ? 'unknown' : String(waiting),
      kvUsage === null ? 'unknown' : percent(kvUsage),
      percent(hitRate),
      ms(ttftMs),
      ageMs === null ? 'unknown' : ms(ageMs),
    ]);
  const heads = ['endpoint', 'state', 'in flight', 'queue', 'KV', 'hit rate', 'first token', 'signals'];
  const rest = endpoints.length - rows.length;
  return [...columns([heads, ...rows]), ...(rest > 0 ? [`and ${rest} more`] : [])];
}

function decisionLines({ decisions }: Snapshot, listed: number): string[] {
  if (decisions.length === 0) return ['no decision yet'];
  const rows = decisions
    .slice(0, listed)
    .map((decision) => [
      new Date(decision.time * 1000).toISOString().slice(11, 19),
      decision.requestId ?? decision.id,
      decision.endpoint ?? (decision.end === 'rejected' ? '–' : decision.status),
      `${decision.matchedTokens}/${decision.promptTokens}`,
      ms(decision.ttftMs),
      resultOf(decision),
    ]);
  return columns([['time', 'request', 'endpoint', 'cached', 'first token', 'result'], ...rows]);
}

function resultOf({ end, status, httpStatus }: DecisionShown): string {
  if (end === 'rejected') return `refused with ${httpStatus}`;
  return end ?? (status === 'waiting' ? 'waits' : 'running');
}

function bar(share: number): string {
  const full = Math.round(Math.min(1, share) * BAR);
  return '█'.repeat(full) + '░'.repeat(BAR - full);
}

function ms(value: number | null): string {
  if (value === null) return '–';
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

function percent(value: number | null): string {
  return value === null ? '–' : `${Math.round(value * 100)} %`;
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}
