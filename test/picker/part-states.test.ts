import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import type { EndpointReading } from '../../dist/src/core/endpoint-table.js';
import { type PartSources, partStates } from '../../dist/src/picker/control/part-states.js';
import { poolClockMs } from '../../dist/src/runtime/pool-clock.js';

/** A picker with one endpoint that was scraped so long ago. */
function sources(ageMs: number, rest: Partial<PartSources> = {}): PartSources {
  const reading = { signalTimeMs: poolClockMs() - ageMs } as EndpointReading;
  return {
    table: { read: () => reading } as unknown as PartSources['table'],
    pool: { assignments: [{ slot: 0 }] } as unknown as PartSources['pool'],
    informers: { failures: 0, polled: () => ({ isScraped: true, ageMs, intervalMs: 50, isFrozen: false }) },
    refreshMs: 50,
    stalenessMs: 2_000,
    connected: () => undefined,
    events: { feed: undefined } as unknown as PartSources['events'],
    reload: undefined,
    shardDeaths: () => new Map(),
    ejections: () => 0,
    ...rest,
  };
}

const part = (given: PartSources, name: string) => partStates(given).find((each) => each.name === name);

describe('the parts that the page shows', () => {
  it('signals are old by the interval between scrapes and by a second at least, and unknown beyond the threshold', () => {
    const slow = { refreshMs: 30_000, stalenessMs: 120_000 };
    const polled = () => ({ isScraped: true, ageMs: 0, intervalMs: 30_000, isFrozen: false });
    const slowly = { ...slow, informers: { failures: 0, polled } };
    expect(part(sources(900), 'Signals')).toMatchObject({ ok: true });
    expect(part(sources(1_500), 'Signals')).toMatchObject({ ok: false, text: 'of 1 endpoint 1 old' });
    expect(part(sources(2_500), 'Signals')).toMatchObject({ ok: false, text: 'of 1 endpoint 1 unknown' });
    expect(part(sources(60_000, slowly), 'Signals')).toMatchObject({ ok: true });
    expect(part(sources(100_000, slowly), 'Signals')).toMatchObject({ ok: false, text: 'of 1 endpoint 1 old' });
  });

  it('signals of an endpoint that is scraped more rarely by design are no older for it', () => {
    const polled = () => ({ isScraped: true, ageMs: 0, intervalMs: 1_000, isFrozen: false });
    const informers = { failures: 0, polled };
    expect(part(sources(1_500, { informers }), 'Signals')).toMatchObject({ ok: true });
    expect(part(sources(2_500, { informers }), 'Signals')).toMatchObject({ text: 'of 1 endpoint 1 old' });
  });

  it('signals of an endpoint that was never reached are unknown, and those of a frozen page are named so', () => {
    const polled = (isScraped: boolean, isFrozen: boolean) => () => ({ isScraped, ageMs: 0, intervalMs: 50, isFrozen });
    const of = (isScraped: boolean, isFrozen: boolean) =>
      part(sources(0, { informers: { failures: 0, polled: polled(isScraped, isFrozen) } }), 'Signals')?.text;
    expect([of(false, false), of(true, true)]).toEqual(['of 1 endpoint 1 unknown', 'of 1 endpoint 1 of a frozen page']);
  });

  it('signals of an endpoint that takes no connections are not told, as it is told as dead', () => {
    const of = (...deaths: readonly number[]) => {
      const pool = { assignments: deaths.map((_, slot) => ({ slot })) } as unknown as PartSources['pool'];
      const read = (slot: number) => ({ signalTimeMs: poolClockMs() - 100_000 * deaths[slot]!, death: deaths[slot] });
      return part(sources(0, { pool, table: { read } as unknown as PartSources['table'] }), 'Signals');
    };
    const [DEAD, ALIVE, IN_DOUBT] = [CORE.DEATH_DEAD, 0, 1];
    expect(of(ALIVE, DEAD)).toMatchObject({ ok: true, text: 'of all endpoints that take connections fresh' });
    expect(of(ALIVE, DEAD, IN_DOUBT)).toMatchObject({ ok: false, text: 'of 3 endpoints 1 unknown' });
    expect(of(DEAD, DEAD)).toMatchObject({ ok: false, text: 'no endpoint takes connections' });
  });

  it('replicas are not well while NATS is away, and are no part of a picker without replication', () => {
    expect(part(sources(0), 'Replicas')).toBeUndefined();
    expect(part(sources(0, { connected: () => true }), 'Replicas')).toMatchObject({ ok: true });
    expect(part(sources(0, { connected: () => false }), 'Replicas')).toMatchObject({ ok: false });
  });
});
