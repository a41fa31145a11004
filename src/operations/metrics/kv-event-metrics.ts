import type { EventFeed } from '../../kvevents/event-feed.js';
import type { MetricsExposition } from '../telemetry/exposition.js';

const STATES = { waiting: 0, live: 1, replaying: 2, untold: 3 } as const;

/**
 * Registers the metrics of the engines' KV events.
 * @param labelOf name of a slot's endpoint; undefined = it has just left the pool
 */
export function addKvEventMetrics(
  exposition: MetricsExposition,
  feed: EventFeed,
  labelOf: (slot: number) => string | undefined,
): void {
  const labels = (slot: number) => ({ endpoint: labelOf(slot) ?? `slot ${slot}` });
  addCounters(exposition, feed);
  exposition.addGauge({
    name: 'llm_d_epp_kv_cache_events_active_subscribers',
    help: 'Endpoints whose KV events are followed.',
    read: () => [{ labels: {}, value: feed.readings().length }],
  });
  const gauge = (name: string, help: string, pick: (reading: ReturnType<EventFeed['readings']>[number]) => number) =>
    exposition.addGauge({
      name: `pointsman_kv_events_${name}`,
      help,
      labels: ['endpoint'],
      read: () => feed.readings().map((each) => ({ labels: labels(each.slot), value: pick(each) })),
    });
  gauge(
    'state',
    '0 nothing has come yet, 1 live, 2 lost events are being fetched, 3 requests are served and nothing comes.',
    ({ state }) => STATES[state],
  );
  exposition.addGauge({
    name: 'pointsman_kv_events_age_seconds',
    help: 'Time since the last events of an endpoint; no series before the first ones. An idle engine sends none.',
    labels: ['endpoint'],
    read: () => feed.ages().map(({ slot, ageMs }) => ({ labels: labels(slot), value: ageMs / 1_000 })),
  });
  gauge('engine_blocks', "Blocks of the engine's cache that it has told of.", ({ blocks }) => blocks);
  exposition.addGauge({
    name: 'pointsman_kv_events_tier_blocks',
    help: "Blocks of the engine's cache at each place: gpu, host, disk, remote. One may lie at several.",
    labels: ['endpoint', 'tier'],
    read: () =>
      feed
        .readings()
        .flatMap(({ slot, placed }) =>
          [...placed].map(([tier, value]) => ({ labels: { ...labels(slot), tier }, value })),
        ),
  });
}

function addCounters(exposition: MetricsExposition, { counts }: EventFeed): void {
  const counter = (name: string, help: string, read: () => number) =>
    exposition.addCounter({
      name: `pointsman_kv_events_${name}_total`,
      help,
      read: () => [{ labels: {}, value: read() }],
    });
  const split = (name: string, help: string, label: string, read: () => Iterable<readonly [string, number]>) =>
    exposition.addCounter({
      name: `pointsman_kv_events_${name}_total`,
      help,
      labels: [label],
      read: () => [...read()].map(([value, count]) => ({ labels: { [label]: value }, value: count })),
    });
  counter('messages', 'Messages of engines that were applied.', () => counts.messages);
  counter('gaps', 'Gaps in the numbers of messages.', () => counts.gaps);
  counter('restarts', 'Engines that began to count anew: their cache is gone.', () => counts.restarts);
  counter('clears', 'How often all blocks of an endpoint were forgotten.', () => counts.clears);
  split('blocks', "Blocks of the engine's cache.", 'event', () => [
    ['stored', counts.storedBlocks],
    ['removed', counts.removedBlocks],
  ]);
  split('replays', 'Questions for lost messages.', 'outcome', () => Object.entries(counts.replays));
  split('dropped', 'What engines told and was not used: blocks, or whole messages.', 'reason', () => counts.dropped);
  split('speculated_blocks', 'Blocks that were believed to be held because they were sent.', 'outcome', () => [
    ['made', counts.speculated],
    ['expired', counts.expired],
  ]);
}
