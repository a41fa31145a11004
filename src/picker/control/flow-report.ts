import type { Room } from '../../core/capacity-gate.js';
import type { SessionCounts } from '../../core/session-ledger.js';
import type { FlowEvent } from '../../flow-control/flow-events.js';
import type { HeldTurn } from '../../flow-control/held-turns.js';
import type { QueueSnapshot } from '../../flow-control/queue-contract.js';

/** Flows listed per band, those with most waiting requests first. */
export const FLOWS_SHOWN = 20;

/** One endpoint with the state of its gate. */
export interface EndpointRoom extends Room {
  readonly endpoint: string;
  readonly inflight: number;
  readonly saturation: number | undefined;
  /** Tokens that sessions need there; undefined while they are not counted. */
  readonly sessionTokens: number | undefined;
}

/** Sources of the debug page. */
export interface FlowReportSources {
  readonly mode: string;
  readonly snapshot: QueueSnapshot;
  /** Share of every endpoint that a band may fill, by priority. */
  readonly ceilings: ReadonlyMap<number, number>;
  readonly saturation: number | undefined;
  /** Share of every endpoint that this picker may fill. */
  readonly share: number;
  readonly endpoints: readonly EndpointRoom[];
  readonly events: readonly FlowEvent[];
  /** Undefined while they are not counted. */
  readonly sessions: SessionCounts | undefined;
  /** Turns that are held, and those of them that have waited longest. */
  readonly held: { readonly count: number; readonly longest: readonly HeldTurn[] };
}

/**
 * The state of flow control as JSON: bands, flows, heads, ages, saturation, ceilings, and the reason why the head
 * waits.
 */
export function flowReport(sources: FlowReportSources): object {
  const { mode, snapshot, ceilings, saturation, share, endpoints, events, sessions, held } = sources;
  return {
    mode,
    saturation,
    share,
    whyTheHeadWaits: snapshot.waiting === 0 ? undefined : whyItWaits(sources),
    ...snapshot,
    bands: snapshot.bands.map((band) => ({ ...band, ceiling: ceilings.get(band.priority) ?? 1 })),
    endpoints: endpoints.map((room) => ({
      ...room,
      // JSON has no infinity: a limit that was never lowered is left out.
      limit: Number.isFinite(room.limit) ? room.limit : undefined,
      closedBy: closedBy(mode, share, room),
    })),
    recent: events,
    sessions: sessions && { ...sessions, held: held.count, longestHeld: held.longest },
  };
}

/** The condition that keeps requests of the lowest band from an endpoint; empty = none. */
function closedBy(mode: string, share: number, room: EndpointRoom): readonly string[] {
  if (mode !== 'learned') return (room.saturation ?? 0) >= 1 ? ['saturation'] : [];
  const reasons: string[] = [];
  if (room.pendingRequests > 0 && room.pendingTokens >= room.window * share)
    reasons.push('unanswered prompts fill one step');
  if (room.foreignQueue) reasons.push('the engine queues requests of others');
  else if (room.inflight > 0 && room.inflight + 1 > room.limit * share) reasons.push('learned limit of requests');
  if (room.capacity > 0 && (room.saturation ?? 0) >= 1 && reasons.length === 0) reasons.push('KV cache');
  return reasons;
}

function whyItWaits({ mode, share, endpoints, snapshot, held }: FlowReportSources): string {
  if (endpoints.length === 0) return 'the pool has no endpoints';
  const closed = endpoints.filter((room) => closedBy(mode, share, room).length > 0).length;
  if (closed === endpoints.length) return 'no endpoint has room';
  if (held.count === snapshot.waiting) return 'no KV cache has room for the sessions of the turns that are held';
  return `${closed} of ${endpoints.length} endpoints have no room: it waits for those, or for room enough`;
}
