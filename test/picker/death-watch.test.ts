import { afterEach, describe, expect, it, vi } from 'vitest';
import { DeathWatch } from '../../dist/src/picker/control/death-watch.js';
import type { EndpointFound } from '../../dist/src/picker/control/endpoint-check.js';
import { endpointOf } from '../pool/endpoints.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A watch over two endpoints; the table is as the core's, without the pool around it. */
function watching(everyMs = 60_000) {
  const found: EndpointFound[] = ['answers', 'answers'];
  const states = [0, 1].map(() => ({ death: 0, failures: 0 }));
  const news: string[] = [];
  let nowMs = 0;
  const write = (slot: number, death: number, changed: boolean) => {
    states[slot] = { death, failures: 0 };
    return changed ? ('changed' as const) : ('same' as const);
  };
  const check = vi.fn(async ({ port }: { port: number }) => found[port - 8000]!);
  const watch = new DeathWatch({
    table: {
      get dead() {
        return states.filter(({ death }) => death !== 0).length;
      },
      read: (slot: number) => states[slot] as never,
      setAlive: (slot) => write(slot, 0, states[slot]!.death === 2),
      setDead: (slot) => write(slot, 2, states[slot]!.death !== 2),
      watchDoubts: () => {},
    },
    now: () => nowMs,
    died: ({ slot }, how) => news.push(`${slot} died: ${how}`),
    returned: ({ slot }) => news.push(`${slot} returned`),
    check,
    everyMs,
  });
  watch.start();
  cleanups.push(() => watch.stop());
  const set = [0, 1].map((slot) => ({
    slot,
    generation: 1,
    endpoint: endpointOf(`e${slot}`, '10.0.0.1', 8000 + slot),
  }));
  watch.changeEndpoints({ set, removed: [] });
  /** Looks at an endpoint and waits for what follows. */
  const look = async (slot: number) => {
    watch.check(slot, 1);
    await new Promise((done) => setImmediate(done));
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { watch, found, states, news, check, look, pass };
}

describe('an endpoint that refuses connections', () => {
  it('an endpoint that refuses connections is dead when the picker has reached it before', async () => {
    const { watch, found, news, look } = watching();
    watch.scraped(0, 1);
    found[0] = 'refused';
    await look(0);
    expect(news).toEqual(['0 died: refused']);
  });

  it('an endpoint that refuses connections and was never reached is dead while the picker reaches another one', async () => {
    const { watch, found, news, look, pass } = watching();
    found[0] = 'refused';
    await look(0);
    expect(news).toEqual([]);
    watch.scraped(1, 1);
    pass(6_000);
    await look(0);
    expect(news).toEqual([]);
    watch.scraped(1, 1);
    await look(0);
    expect(news).toEqual(['0 died: refused']);
  });

  it('an endpoint that refuses connections and was never reached is dead when requests to it fail', async () => {
    const { found, states, news, look } = watching();
    found[0] = 'refused';
    states[0]!.failures = 1;
    await look(0);
    expect(news).toEqual(['0 died: refused']);
  });

  it('an endpoint that refuses the picker and answers requests is dead again only when requests fail', async () => {
    const { watch, found, states, news, look } = watching(1);
    watch.scraped(0, 1);
    found[0] = 'refused';
    await look(0);
    states[0]!.death = 0;
    await vi.waitFor(() => expect(news).toEqual(['0 died: refused', '0 returned']));
    await look(0);
    expect(news).toHaveLength(2);
    states[0]!.failures = 1;
    await look(0);
    expect(news).toEqual(['0 died: refused', '0 returned', '0 died: refused']);
  });
});

describe('an endpoint that keeps silent', () => {
  it.each([
    ['reached before, with failing requests', true, 1, ['0 died: silent']],
    ['reached before, without failing requests', true, 0, []],
    ['never reached', false, 1, []],
  ])('an endpoint that keeps silent: %s', async (_, reached, failures, expected) => {
    const { watch, found, states, news, look } = watching();
    if (reached) watch.scraped(0, 1);
    found[0] = 'silent';
    states[0]!.failures = failures;
    await look(0);
    expect(news).toEqual(expected);
  });

  it('an endpoint that is unwell is dead when its scrapes fail too', async () => {
    const { watch, found, states, news, look } = watching();
    watch.scraped(0, 1);
    found[0] = 'unwell';
    states[0] = { death: 1, failures: 1 };
    await look(0);
    expect([news, states[0]!.death]).toEqual([[], 0]);
    states[0] = { death: 1, failures: 1 };
    watch.scrapeFailed(0, 1);
    await new Promise((done) => setImmediate(done));
    expect(news).toEqual(['0 died: unwell']);
  });
});

describe('a look at an endpoint', () => {
  it('a look at an endpoint that answers ends its doubt', async () => {
    const { states, look } = watching();
    states[0]!.death = 1;
    await look(0);
    expect(states[0]!.death).toBe(0);
  });

  it('a look at an endpoint is repeated until it is back, and no longer', async () => {
    const { watch, found, news, check, look } = watching(1);
    watch.scraped(0, 1);
    found[0] = 'refused';
    await look(0);
    const before = check.mock.calls.length;
    await vi.waitFor(() => expect(check.mock.calls.length).toBeGreaterThan(before + 3));
    found[0] = 'answers';
    await vi.waitFor(() => expect(news).toEqual(['0 died: refused', '0 returned']));
    const after = check.mock.calls.length;
    await new Promise((done) => setTimeout(done, 20));
    expect(check.mock.calls.length).toBe(after);
  });

  it('a look at an endpoint is made again when a request failed while it was under way', async () => {
    const { watch, check } = watching();
    watch.check(0, 1);
    watch.check(0, 1);
    await new Promise((done) => setImmediate(done));
    expect(check).toHaveBeenCalledTimes(2);
  });

  it('a look at an endpoint that left the pool has no effect', async () => {
    const { watch, found, news, look, check } = watching();
    watch.scraped(0, 1);
    found[0] = 'refused';
    watch.check(0, 1);
    const endpoint = endpointOf('e0', '10.0.0.1', 8000);
    watch.changeEndpoints({ set: [], removed: [{ slot: 0, generation: 1, endpoint }] });
    await look(0);
    expect(news).toEqual([]);
    expect(check).toHaveBeenCalledTimes(1);
  });
});
