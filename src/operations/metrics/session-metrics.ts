import { SESSION_CLASSES, type SessionCounts } from '../../core/session-ledger.js';
import type { MetricsExposition } from '../telemetry/exposition.js';

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
  /** Share of the cache of an endpoint that sessions need; an endpoint with a cache of unknown size is absent. */
  usedShares(): readonly { readonly slot: number; readonly share: number }[];
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
  addGauges(exposition, figures, nameOf);
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

function addGauges(
  exposition: MetricsExposition,
  figures: SessionFigures,
  nameOf: (slot: number) => string | undefined,
): void {
  exposition.addGauge({
    name: 'pointsman_session_used_ratio',
    help: 'Share of the KV cache that sessions need on an endpoint; at 1 the engine forgets some of them.',
    labels: ['endpoint'],
    read: () =>
      figures.usedShares().flatMap(({ slot, share }) => {
        const endpoint = nameOf(slot);
        return endpoint === undefined ? [] : [{ labels: { endpoint }, value: share }];
      }),
  });
  exposition.addGauge({
    name: 'pointsman_session_keep_seconds',
    help: 'Idle time up to which a session is worth its place, by the number of its turns.',
    labels: ['turns'],
    read: () => figures.keptSeconds().map((value, kind) => ({ labels: { turns: SESSION_CLASSES[kind]! }, value })),
  });
}
