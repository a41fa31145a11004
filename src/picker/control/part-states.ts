import type { EndpointTable } from '../../core/endpoint-table.js';
import type { FeedReading } from '../../kvevents/event-feed.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { ConfigurationReload } from './configuration-reload.js';
import type { Informers } from './informers.js';
import type { EngineEvents } from './kv-events.js';
import type { PartState } from './page-snapshots.js';
import type { PoolController } from './pool-controller.js';

/** Age of signals from which the page names it; they are scraped every 50 ms and unknown after 2 s. */
const OLD_SIGNALS_MS = 1000;

/** Parts of the picker whose state the page shows. */
export interface PartSources {
  readonly table: EndpointTable;
  readonly pool: PoolController;
  readonly informers: Informers;
  readonly events: EngineEvents;
  readonly reload: ConfigurationReload | undefined;
  /** Deaths of each shard by its thread. */
  readonly shardDeaths: () => ReadonlyMap<number, number>;
  /** Endpoints that were ejected since the start. */
  readonly ejections: () => number;
}

/** The state of each part of the picker in one sentence. */
export function partStates(sources: PartSources): PartState[] {
  const { informers, events, reload } = sources;
  const ejections = sources.ejections();
  const deaths = [...sources.shardDeaths().values()].reduce((sum, count) => sum + count, 0);
  const failed = (reload?.counts.invalid ?? 0) + (reload?.counts.restart_required ?? 0);
  return [
    signals(sources),
    {
      name: 'Shards',
      ok: deaths === 0,
      text: deaths === 0 ? 'none has died' : `${deaths} have died and were started again`,
    },
    {
      name: 'Ejections',
      ok: ejections === 0,
      text: ejections === 0 ? 'no endpoint has been ejected' : `${ejections} since the start`,
    },
    {
      name: 'Scrapes',
      ok: informers.failures === 0 || signals(sources).ok,
      text: `${informers.failures} failed since the start`,
    },
    ...(events.feed === undefined ? [] : [engineEvents(events.feed.readings())]),
    ...(reload === undefined
      ? []
      : [
          {
            name: 'Configuration',
            ok: failed === 0,
            text: failed === 0 ? 'as its file says' : `${failed} reloads refused`,
          },
        ]),
  ];
}

function engineEvents(readings: readonly FeedReading[]): PartState {
  const untold = readings.filter(({ state }) => state === 'untold').length;
  const text =
    untold === 0
      ? 'engines tell what they hold'
      : `${untold} of ${readings.length} engines tell nothing of what they hold`;
  return { name: 'KV events', ok: untold === 0, text };
}

function signals({ table, pool }: PartSources): PartState {
  const readings = pool.assignments.map(({ slot }) => table.read(slot));
  const now = poolClockMs();
  const unknown = readings.filter(({ signalTimeMs }) => signalTimeMs === 0).length;
  const old = readings.filter(({ signalTimeMs }) => signalTimeMs > 0 && now - signalTimeMs > OLD_SIGNALS_MS).length;
  if (unknown + old > 0) {
    const bad = [...(unknown > 0 ? [`${unknown} unknown`] : []), ...(old > 0 ? [`${old} old`] : [])].join(', ');
    const endpoints = readings.length === 1 ? '1 endpoint' : `${readings.length} endpoints`;
    return { name: 'Signals', ok: false, text: `of ${endpoints} ${bad}` };
  }
  return {
    name: 'Signals',
    ok: true,
    text: readings.length === 0 ? 'no endpoints to scrape' : 'of all endpoints fresh',
  };
}
