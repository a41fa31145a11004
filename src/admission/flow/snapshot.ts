import type { Band, QueueTables } from './band.js';
import { CLASSES, type ClassTable } from './class-table.js';
import type { BandSnapshot, FlowSnapshot, QueueSnapshot } from './queue-contract.js';
import { NONE } from './request-slab.js';

/** @param mostFlows flows to tell of, those with most waiting */
export function bandSnapshot(band: Band, tables: QueueTables, nowMs: number, mostFlows: number): BandSnapshot {
  const { flows } = tables;
  const all = [...flows.ofBand(band.priority)];
  const shown = all.sort((a, b) => flows.waiting[b]! - flows.waiting[a]!).slice(0, mostFlows);
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
    tokensPerSecond: band.drain.tokensPerSecond,
    closedClasses: band.closedClasses(),
    flows: shown.map((flow) => flowSnapshot(flow, tables, nowMs)),
    flowCount: all.length,
  };
}

export function classSnapshots(classes: ClassTable): QueueSnapshot['classes'] {
  return Array.from({ length: CLASSES }, (_, id) => ({
    id,
    slots: classes.slotsOf(id) ?? ('all' as const),
    waiting: classes.waitingIn(id),
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
