import type { Band, QueueTables } from './band.js';
import { CANDIDATE_SETS_MAX, type CandidateSets } from './candidate-sets.js';
import type { BandSnapshot, FlowSnapshot, QueueSnapshot } from './queue-contract.js';
import { NONE } from './request-slab.js';

/** @param flowsMax bound on the flows listed, those with most waiting requests */
export function bandSnapshot(band: Band, tables: QueueTables, nowMs: number, flowsMax: number): BandSnapshot {
  const { flows } = tables;
  const shown = longestQueues(flows.ofBand(band.priority), flows.waiting, flowsMax);
  return {
    priority: band.priority,
    configured: band.configured,
    fairness: band.settings.fairness.kind,
    ordering: band.settings.ordering.kind,
    waiting: band.waiting,
    running: band.running,
    bytes: band.bytes,
    tokens: band.tokens,
    requestsUsed: share(band.waiting, band.limits.requests),
    bytesUsed: share(band.bytes, band.limits.bytes),
    tokensUsed: share(band.tokens, band.limits.tokens),
    tokensPerSecond: band.drain.tokensPerSecond,
    closedClasses: band.closedSets(),
    flows: shown.map((flow) => flowSnapshot(flow, tables, nowMs)),
    flowCount: flows.countOfBand(band.priority),
  };
}

/** The flows with most waiting requests, most first. Visits each flow once, because there may be 100,000. */
function longestQueues(all: Iterable<number>, waiting: Int32Array, flowsMax: number): readonly number[] {
  const found: number[] = [];
  if (flowsMax === 0) return found;
  for (const flow of all) {
    if (found.length === flowsMax && waiting[flow]! <= waiting[found[flowsMax - 1]!]!) continue;
    if (found.length === flowsMax) found.pop();
    let place = found.length;
    while (place > 0 && waiting[found[place - 1]!]! < waiting[flow]!) place--;
    found.splice(place, 0, flow);
  }
  return found;
}

export function setSnapshots(sets: CandidateSets): QueueSnapshot['classes'] {
  return Array.from({ length: CANDIDATE_SETS_MAX }, (_, id) => ({
    id,
    slots: sets.slotsOf(id) ?? ('all' as const),
    waiting: sets.waitingIn(id),
  })).filter(({ waiting }) => waiting > 0);
}

function flowSnapshot(flow: number, { requests, lanes, flows }: QueueTables, nowMs: number): FlowSnapshot {
  let oldestMs = Number.POSITIVE_INFINITY;
  for (let lane = flows.firstLane[flow]!; lane !== NONE; lane = lanes.nextOfFlow[lane]!) {
    oldestMs = Math.min(oldestMs, requests.enqueuedMs[lanes.head[lane]!]!);
  }
  return {
    flow: flows.id[flow]!,
    waiting: flows.waiting[flow]!,
    running: flows.running[flow]!,
    headAgeMs: oldestMs === Number.POSITIVE_INFINITY ? undefined : nowMs - oldestMs,
    tag: flows.tag[flow]!,
    outputEstimate: flows.outputMean[flow]!,
  };
}

function share(used: number, limit: number): number {
  return limit === Number.POSITIVE_INFINITY ? 0 : used / limit;
}
