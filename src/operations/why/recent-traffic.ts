import type { DecisionRecord } from '../../core/decision-log.js';
import type { ShownDecision, ShownEndpoint } from './request-story.js';
import type { EndpointLoad, Leaning, RecentTraffic } from './traffic-figures.js';

/** Ended requests from which on a median counts. */
const ENDED_MIN = 5;
/** Decisions with columns that are looked at, from the whole window. */
const EXPLAINED_MAX = 10;

/** Sources of the figures. */
export interface TrafficSources {
  /** Records of the window, newest first. */
  readonly records: readonly DecisionRecord[];
  readonly windowSeconds: number;
  /** Endpoints of the pool by slot. */
  readonly endpoints: ReadonlyMap<number, string>;
  /** A decision with its columns; undefined when they are not kept. */
  readonly explain: (record: DecisionRecord) => ShownDecision | undefined;
}

export function recentTraffic({ records, windowSeconds, endpoints, explain }: TrafficSources): RecentTraffic {
  const first = records.filter(({ further }) => !further);
  const decided = first.filter(({ status, slot }) => status === 'decided' && slot !== undefined);
  const bySlot = Map.groupBy(decided, ({ slot }) => slot!);
  const loads = [...endpoints]
    .map(([slot, endpoint]) => ({ slot, ...loadOf(endpoint, bySlot.get(slot) ?? []) }))
    .sort((a, b) => b.decided - a.decided);
  const most = loads[0];
  return {
    windowSeconds,
    decided: decided.length,
    refused: refusalsOf(first),
    endpoints: loads.map(({ slot: _slot, ...load }) => load),
    ...leaningOf(most === undefined ? [] : (bySlot.get(most.slot) ?? []), explain),
  };
}

function loadOf(endpoint: string, records: readonly DecisionRecord[]): EndpointLoad {
  const ended = records.filter(({ end }) => end === 'completed');
  const firstMs = ended.flatMap(({ firstOutputMs }) => firstOutputMs ?? []);
  const isWhole = firstMs.length < ENDED_MIN;
  const whole = ended.filter(({ firstOutputMs }) => firstOutputMs === undefined);
  const times = isWhole ? whole.map(({ durationMs }) => durationMs) : firstMs;
  return {
    endpoint,
    decided: records.length,
    failed: records.filter(({ end }) => end === 'failed').length,
    medianMs: times.length < ENDED_MIN ? null : median(times),
    isWhole,
  };
}

function refusalsOf(records: readonly DecisionRecord[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { end, bound, httpStatus } of records) {
    if (end !== 'rejected') continue;
    const name = bound?.by ?? `status ${httpStatus}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

function leaningOf(
  records: readonly DecisionRecord[],
  explain: TrafficSources['explain'],
): Pick<RecentTraffic, 'leaning' | 'explained'> {
  const tokens = {
    matchedTokens: median(records.map((each) => Math.min(each.matchedBlocks * each.blockTokens, each.promptTokens))),
    promptTokens: median(records.map(({ promptTokens }) => promptTokens)),
  };
  const votes = new Map<string, number>();
  let explained = 0;
  for (const record of spread(records.filter(({ columns }) => columns !== 0))) {
    const endpoints = explain(record)?.endpoints;
    if (endpoints == null) continue;
    for (const [name, vote] of votesOf(endpoints)) votes.set(name, (votes.get(name) ?? 0) + vote);
    explained++;
  }
  const [name, vote] = [...votes].sort(([, a], [, b]) => b - a)[0] ?? ['', 0];
  if (vote <= 0) return { leaning: null, explained };
  const [kind, plugin] = [name.slice(0, name.indexOf(' ')), name.slice(name.indexOf(' ') + 1)];
  return { leaning: { kind: kind as Leaning['kind'], name: plugin, ...tokens }, explained };
}

/** As many as are looked at, at even distances. */
function spread(records: readonly DecisionRecord[]): readonly DecisionRecord[] {
  const step = Math.max(1, records.length / EXPLAINED_MAX);
  const number = Math.min(records.length, EXPLAINED_MAX);
  return Array.from({ length: number }, (_, i) => records[Math.floor(i * step)]!);
}

/** Reasons for the pick: each scorer's lead over the other candidates, or the filter that left no other endpoint. */
function votesOf(endpoints: readonly ShownEndpoint[]): readonly (readonly [string, number])[] {
  const pick = endpoints.find(({ rank }) => rank === 1);
  const others = endpoints.filter(({ rank, removedBy }) => rank !== 1 && removedBy === null);
  if (pick === undefined) return [];
  if (others.length === 0) {
    const removed = endpoints.filter(({ removedBy }) => removedBy !== null);
    return removed.map(({ removedBy }) => [`filter ${removedBy}`, 1 / removed.length] as const);
  }
  return pick.scores.map(({ scorer, weight, score }, i) => {
    const mean = others.reduce((sum, { scores }) => sum + (scores[i]?.score ?? 0), 0) / others.length;
    return [`scorer ${scorer}`, weight * ((score ?? 0) - mean)] as const;
  });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}
