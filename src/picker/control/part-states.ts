import { CORE } from '../../core/core-names.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import type { FeedReading } from '../../kvevents/event-feed.js';
import { signalsState } from '../../operations/health-report.js';
import { counted } from '../../runtime/counted.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { ConfigurationReload } from './configuration-reload.js';
import type { Informers } from './informers.js';
import type { EngineEvents } from './kv-events.js';
import type { PartState } from './page-snapshots.js';
import type { PoolController } from './pool-controller.js';

/** Parts of the picker whose state the page shows. */
export interface PartSources {
  readonly table: EndpointTable;
  readonly pool: PoolController;
  readonly informers: Pick<Informers, 'failures' | 'polled'>;
  /** Milliseconds from one scrape of an endpoint to the next. */
  readonly refreshMs: number;
  /** Age from which on signals are unknown. */
  readonly stalenessMs: number;
  /** Whether NATS is connected; undefined = without replication. */
  readonly connected: () => boolean | undefined;
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
    ...replicas(sources),
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

function signals(sources: PartSources): PartState {
  const { table, pool, informers } = sources;
  const now = poolClockMs();
  const { length } = pool.assignments;
  // What takes no connections is told as dead.
  const asked = pool.assignments.filter(({ slot }) => table.read(slot).death !== CORE.DEATH_DEAD);
  const readings = asked.map(({ slot }) => {
    const polled = informers.polled(slot);
    const { signalTimeMs } = table.read(slot);
    const byDesignMs = Math.max(0, (polled?.intervalMs ?? 0) - sources.refreshMs);
    const isReached = signalTimeMs > 0 && polled?.isScraped !== false;
    return {
      state: signalsState(isReached ? now - signalTimeMs - byDesignMs : undefined, sources),
      isFrozen: polled?.isFrozen === true,
    };
  });
  const unknown = readings.filter(({ state }) => state === 'unknown').length;
  const old = readings.filter(({ state }) => state === 'old').length;
  const frozen = readings.filter(({ isFrozen }) => isFrozen).length;
  if (unknown + old + frozen > 0) {
    const counts = [[unknown, 'unknown'] as const, [old, 'old'] as const, [frozen, 'of a frozen page'] as const];
    const bad = counts
      .filter(([count]) => count > 0)
      .map(([count, name]) => `${count} ${name}`)
      .join(', ');
    return { name: 'Signals', ok: false, text: `of ${counted(length, 'endpoint')} ${bad}` };
  }
  if (length === 0) return { name: 'Signals', ok: true, text: 'no endpoints to scrape' };
  if (asked.length === 0) return { name: 'Signals', ok: false, text: 'no endpoint takes connections' };
  const fresh = asked.length === length ? 'of all endpoints fresh' : 'of all endpoints that take connections fresh';
  return { name: 'Signals', ok: true, text: fresh };
}

function replicas({ connected }: PartSources): readonly PartState[] {
  const isConnected = connected();
  if (isConnected === undefined) return [];
  const apart = 'NATS is away: what other replicas charge and place is not known';
  return [{ name: 'Replicas', ok: isConnected, text: isConnected ? 'NATS is connected' : apart }];
}
