import type { SessionCounts, SessionTally, TurnsByPlace } from '../../core/session-ledger.js';
import type { MetricsExposition, Sample } from '../telemetry/exposition.js';

/** Figures of sessions; undefined while they are not counted. */
interface Figures {
  sessionCounts(): SessionCounts | undefined;
  sessionTally(): SessionTally | undefined;
}

const FAMILY = 'llm_d_epp_thunder_agent_';

/** Registers the metrics of llm-d-router's plugin thunder-agent, under their names. */
export function addThunderAgentMetrics(
  exposition: MetricsExposition,
  figures: Figures,
  nameOf: (slot: number) => string | undefined,
): void {
  addEndpoints(exposition, figures, nameOf);
  exposition.addGauge({
    name: `${FAMILY}sessions`,
    help: 'Sessions by state; paused = idle, and without a place in a cache.',
    labels: ['state'],
    read: () => {
      const tally = figures.sessionTally();
      return tally === undefined
        ? []
        : labelled('state', { running: tally.running, idle: tally.idle, paused: tally.lapsed });
    },
  });
  addTurns(exposition, figures);
}

function addEndpoints(
  exposition: MetricsExposition,
  figures: Figures,
  nameOf: (slot: number) => string | undefined,
): void {
  const each = (value: (endpoint: SessionTally['endpoints'][number]) => number) =>
    (figures.sessionTally()?.endpoints ?? []).flatMap((one) => {
      const endpoint = nameOf(one.slot);
      return endpoint === undefined || one.capacity === 0 ? [] : [{ labels: { endpoint }, value: value(one) }];
    });
  exposition.addGauge({
    name: `${FAMILY}endpoint_working_set_tokens`,
    help: 'Tokens of the KV cache of an endpoint that sessions need.',
    labels: ['endpoint'],
    read: () => each(({ used }) => used),
  });
  exposition.addGauge({
    name: `${FAMILY}endpoint_capacity_tokens`,
    help: 'Tokens that the KV cache of an endpoint holds.',
    labels: ['endpoint'],
    read: () => each(({ capacity }) => capacity),
  });
}

function addTurns(exposition: MetricsExposition, figures: Figures): void {
  const byClass = (name: string, help: string, pick: (counts: SessionCounts) => TurnsByPlace) =>
    exposition.addCounter({
      name: `${FAMILY}${name}`,
      help: `${help} by the state of their session before: admitted, paused or new.`,
      labels: ['class'],
      read: () => {
        const counts = figures.sessionCounts();
        if (counts === undefined) return [];
        const { protected: admitted, lapsed: paused, new: first } = pick(counts);
        return labelled('class', { admitted, paused, new: first });
      },
    });
  const total = (name: string, help: string, pick: (counts: SessionCounts) => number) =>
    exposition.addCounter({
      name: `${FAMILY}${name}`,
      help,
      read: () => {
        const counts = figures.sessionCounts();
        return counts === undefined ? [] : [{ labels: {}, value: pick(counts) }];
      },
    });
  byClass('releases_total', 'Turns that went to an endpoint,', ({ released }) => released);
  byClass('holds_total', 'Turns that were held,', ({ held }) => held);
  total('pauses_total', 'Idle sessions whose place was given to a turn.', ({ lapsed }) => lapsed['given-up']);
  total('resumes_total', 'Turns of sessions that had lost their place.', ({ released }) => released.lapsed);
  total('starvation_promotions_total', 'Held turns that went on after the longest wait.', ({ forced }) => forced);
}

/** One sample for each value of a label. */
function labelled(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
}
