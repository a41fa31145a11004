import { afterEach, expect, it } from 'vitest';
import { removed, stored } from '../kvevents/engine-publisher.ts';
import { eventually } from '../tools/gateway/client.ts';
import { HOSTS, serveTold, tokensOf } from './told-engines.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const serve = (producer?: string, plugins?: string[]) => serveTold(cleanups, producer, plugins);

const PROMPT = 'a prompt of several blocks';

it.each([[['precise-prefix-cache-producer', 'prefix-cache-scorer']], [['precise-prefix-cache-scorer']]])(
  'a prompt goes where the engine says that its blocks are: %s',
  async (plugins) => {
    const { destinations, count, tell } = await serve('', plugins);
    await tell(2, stored([1, 2, 3], null, tokensOf(PROMPT.slice(0, 12)), 4));
    await eventually('the blocks', async () => (await destinations(PROMPT)).every((to) => to === 2));
    expect(await count('pointsman_kv_events_engine_blocks', 'endpoint="pod-2"')).toBe(3);
    expect(await count('pointsman_kv_events_state', 'endpoint="pod-2"')).toBe(1);
    expect(await count('llm_d_epp_kv_cache_events_active_subscribers')).toBe(3);
    await tell(1, stored([1, 2, 3, 4], null, tokensOf(PROMPT.slice(0, 16)), 4));
    await eventually('the longer match', async () => (await destinations(PROMPT)).every((to) => to === 1));
    await tell(1, removed([4, 3, 2, 1]));
    await eventually('the removal', async () => (await destinations(PROMPT)).every((to) => to === 2));
  },
);

it('a prompt goes where having it costs least, by the tiers on which its blocks are', async () => {
  const weights = ', indexerConfig: {kvCacheBackendConfigs: [{name: cpu, weight: 0.5}]}';
  const { destinations, count, tell } = await serve(weights);
  const all = [1, 2, 3, 4, 5, 6];
  await tell(1, stored(all, null, tokensOf(PROMPT.slice(0, 24)), 4), stored(all, null, [], 4, null, 'CPU'));
  await tell(2, stored([1, 2, 3, 4], null, tokensOf(PROMPT.slice(0, 16)), 4));
  await eventually('six blocks on the GPU', async () => (await destinations(PROMPT)).every((to) => to === 1));
  await tell(1, removed([6, 5, 4, 3, 2, 1], 'GPU'));
  await eventually('six blocks in the host', async () => (await destinations(PROMPT)).every((to) => to === 2));
  expect(await count('pointsman_kv_events_tier_blocks', 'endpoint="pod-1",tier="host"')).toBe(6);
  expect(await count('pointsman_kv_events_tier_blocks', 'endpoint="pod-1",tier="gpu"')).toBe(0);
  await tell(2, removed([4, 3, 2], 'GPU'));
  await eventually('more in the host', async () => (await destinations(PROMPT)).every((to) => to === 1));
});

it('what was sent somewhere counts for nothing while the engine says nothing', async () => {
  const { destination, count } = await serve();
  for (let i = 0; i < 6; i++) await destination(PROMPT);
  expect(await count('pointsman_prefix_index', 'what="memberships"')).toBe(0);
});

it('what was sent counts with speculative indexing until its time is over', async () => {
  const { destination, destinations, count } = await serve(', speculativeIndexing: true, speculativeTTL: 1s');
  const home = await destination(PROMPT);
  expect(await count('pointsman_kv_events_speculated_blocks_total', 'outcome="made"')).toBe(6);
  expect(await destinations(PROMPT)).toEqual([home, home, home, home]);
  await eventually(
    'the expiry',
    async () => (await count('pointsman_kv_events_speculated_blocks_total', 'outcome="expired"')) === 6,
  );
  expect(await count('pointsman_prefix_index', 'what="memberships"')).toBe(0);
});

it('what was sent counts for an engine that serves and tells nothing, until its first event', async () => {
  const { destination, destinations, answered, count, tell, doctor } = await serve();
  const states: (number | undefined)[] = [];
  const read = async () => {
    for (const index of HOSTS.keys())
      states[index] = await count('pointsman_kv_events_state', `endpoint="pod-${index}"`);
  };
  // Each of the three engines has served prompts for longer than an event takes.
  await eventually(
    'the judgement of all engines',
    async () => {
      for (let i = 0; i < 6; i++) await answered(PROMPT);
      await read();
      return states.every((state) => state === 3);
    },
    25_000,
  );
  expect(await doctor()).toContain(
    'error KV events: pod-0, pod-1, pod-2 served requests and told of no KV block; what is sent there counts as held',
  );
  const home = await destination(PROMPT);
  expect(await destinations(PROMPT)).toEqual([home, home, home, home]);
  await tell(home, stored([1], null, tokensOf('else'), 4));
  await eventually('the first event', async () => {
    await read();
    return states[home] === 1;
  });
  expect(await count('pointsman_kv_events_engine_blocks', `endpoint="pod-${home}"`)).toBe(1);
});
