import { type Pauses, SESSION_CLASSES, type SessionCounts, type SessionTally } from '../../core/session-ledger.js';
import type { MetricsExposition } from '../telemetry/exposition.js';
import { addThunderAgentMetrics } from './thunder-agent-metrics.js';

/** The figures that the metrics of sessions read. */
export interface SessionFigures {
  /** Undefined while sessions are not counted. */
  sessionCounts(): SessionCounts | undefined;
  /** Turns that are held; undefined as above. */
  heldTurns(): number | undefined;
  /** Called with the seconds for which a turn was held. */
  held: (seconds: number) => void;
  /** Seconds up to which an idle session is worth its room, for each class; Infinity = always. Empty as above. */
  keptSeconds(): readonly number[];
  /** Sums over all sessions; undefined as above. */
  sessionTally(): SessionTally | undefined;
  /** Seconds after which a held turn goes on without room; undefined = never, or as above. */
  longestHoldSeconds(): number | undefined;
  /** Pauses between turns; undefined as above. */
  sessionPauses(): Pauses | undefined;
}

/** Registers the metrics of sessions on the control thread. @param nameOf name of the endpoint of a slot */
export function addSessionMetrics(
  exposition: MetricsExposition,
  figures: SessionFigures,
  nameOf: (slot: number) => string | undefined,
): void {
  const counter = (
    metric: { readonly name: string; readonly help: string; readonly label: string },
    pick: (counts: SessionCounts) => Readonly<Record<string, number>>,
  ) => {
    const { name, help, label } = metric;
    const read = () => {
      const counts = figures.sessionCounts();
      return counts === undefined
        ? []
        : Object.entries(pick(counts)).map(([key, value]) => ({ labels: { [label]: key }, value }));
    };
    exposition.addCounter({ name, help, labels: [label], read });
  };
  counter(
    {
      name: 'pointsman_session_turns_total',
      help: 'Turns of sessions by how their session was found: by its last prompt alone, or by its header.',
      label: 'how',
    },
    ({ recognised }) => recognised,
  );
  counter(
    {
      name: 'pointsman_session_splits_total',
      help: 'Turns whose prompt, or whose header, does not go on from the session that the other one names.',
      label: 'cause',
    },
    ({ splits }) => splits,
  );
  counter(
    {
      name: 'pointsman_session_looks_total',
      help: 'Requests by the room that sessions leave them: their protected place, other room, none.',
      label: 'room',
    },
    ({ looks }) => looks,
  );
  counter(
    {
      name: 'pointsman_session_lapsed_total',
      help: 'Idle sessions that lost their place in a cache: given up for a turn, forgotten, or ended by their client.',
      label: 'cause',
    },
    ({ lapsed }) => lapsed,
  );
  counter(
    {
      name: 'pointsman_session_recomputed_tokens_total',
      help: 'Tokens of known sessions that were computed again, by the fate of their place.',
      label: 'cause',
    },
    ({ recomputed }) => recomputed,
  );
  exposition.addCounter({
    name: 'pointsman_session_found_tokens_total',
    help: 'Tokens of protected sessions that their turns were expected to find in the cache.',
    read: () => {
      const counts = figures.sessionCounts();
      return counts === undefined ? [] : [{ labels: {}, value: counts.found }];
    },
  });
  addHolds(exposition, figures);
  addBound(exposition, figures);
  addGauges(exposition, figures, nameOf);
  addSizes(exposition, figures);
  addThunderAgentMetrics(exposition, figures, nameOf);
}

/** A sample for each endpoint that has a name and a value. */
export function endpointSamples(
  figures: SessionFigures,
  nameOf: (slot: number) => string | undefined,
  value: (endpoint: SessionTally['endpoints'][number]) => number | undefined,
) {
  return (figures.sessionTally()?.endpoints ?? []).flatMap((each) => {
    const [endpoint, found] = [nameOf(each.slot), value(each)];
    return endpoint === undefined || found === undefined ? [] : [{ labels: { endpoint }, value: found }];
  });
}

/** Seconds: from a short wait for a turn to end, up to the longest hold by default. */
const HOLD_BUCKETS = [0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 90, 120, 150, 200, 300, 600];

function addHolds(exposition: MetricsExposition, figures: SessionFigures): void {
  figures.held = exposition.addHistogram({
    name: 'pointsman_session_hold_seconds',
    help: 'Seconds for which turns were held because no KV cache had room for their session.',
    buckets: HOLD_BUCKETS,
  });
  exposition.addGauge({
    name: 'pointsman_session_held',
    help: 'Turns that are held because no KV cache has room for their session.',
    read: () => {
      const value = figures.heldTurns();
      return value === undefined ? [] : [{ labels: {}, value }];
    },
  });
  exposition.addCounter({
    name: 'pointsman_session_forced_total',
    help: 'Held turns that went on without room, after the longest wait.',
    read: () => {
      const counts = figures.sessionCounts();
      return counts === undefined ? [] : [{ labels: {}, value: counts.forced }];
    },
  });
}

/** The bound by which holds are judged. */
function addBound(exposition: MetricsExposition, figures: SessionFigures): void {
  exposition.addGauge({
    name: 'pointsman_session_max_wait_seconds',
    help: 'Seconds after which a held turn goes on without room; no series = never.',
    read: () => {
      const value = figures.longestHoldSeconds();
      return value === undefined ? [] : [{ labels: {}, value }];
    },
  });
}

function addGauges(
  exposition: MetricsExposition,
  figures: SessionFigures,
  nameOf: (slot: number) => string | undefined,
): void {
  exposition.addGauge({
    name: 'pointsman_session_used_ratio',
    help: 'Share of the KV cache that sessions need on an endpoint; at 1 the engine forgets some of them.',
    labels: ['endpoint'],
    read: () => endpointSamples(figures, nameOf, ({ used, capacity }) => (capacity > 0 ? used / capacity : undefined)),
  });
  exposition.addGauge({
    name: 'pointsman_session_keep_seconds',
    help: 'Idle time up to which a session is worth its place, by the number of its turns.',
    labels: ['turns'],
    read: () => figures.keptSeconds().map((value, kind) => ({ labels: { turns: SESSION_CLASSES[kind]! }, value })),
  });
}

/** How many sessions there are, and how many the pool has room for. */
function addSizes(exposition: MetricsExposition, figures: SessionFigures): void {
  const gauge = (name: string, help: string, pick: (tally: SessionTally) => number | undefined) =>
    exposition.addGauge({
      name,
      help,
      read: () => {
        const tally = figures.sessionTally();
        const value = tally && pick(tally);
        return value === undefined ? [] : [{ labels: {}, value }];
      },
    });
  gauge('pointsman_session_active', 'Sessions with a turn in the last five minutes.', ({ active }) => active);
  gauge(
    'pointsman_session_mean_tokens',
    'Mean of the tokens that an active session holds alone, without the beginning that it shares with others.',
    ({ active, meanTokens }) => (active === 0 ? undefined : meanTokens),
  );
  gauge('pointsman_session_fit', 'Sessions of that mean size that the KV caches of the pool hold.', ({ fit }) => fit);
  exposition.addReadHistogram({
    name: 'pointsman_session_return_seconds',
    help: 'Seconds between the end of a turn and the next turn of its session, without the time for which it was held.',
    read: () => figures.sessionPauses(),
  });
}
