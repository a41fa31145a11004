import { afterEach, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { EnginePublisher, removed, stored } from '../kvevents/engine-publisher.ts';
import { RenderServer } from '../request/tokens/render-server.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const HOSTS = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
/** The render server makes a token of each letter. */
const tokensOf = (prompt: string) => [...prompt].map((letter) => letter.charCodeAt(0));

/** A picker that follows the events of three engines; prompts have a token for each letter, blocks four of them. */
async function serve(producer = '', plugins = ['precise-prefix-cache-producer', 'prefix-cache-scorer']) {
  const render = await RenderServer.start();
  cleanups.push(() => render.close());
  const first = await EnginePublisher.start(`tcp://${HOSTS[0]}:*`);
  const port = first.address.split(':').at(-1);
  const others = HOSTS.slice(1).map((host) => EnginePublisher.start(`tcp://${host}:${port}`));
  const engines = [first, ...(await Promise.all(others))];
  cleanups.push(() => engines.map((engine) => engine.close()));
  const parameters =
    `{tokenProcessorConfig: {blockSizeTokens: 4}, kvEventsConfig: {podDiscoveryConfig: {socketPort: ${port}}} ` +
    `${producer}}`;
  const lines = [
    `{type: token-producer, parameters: {modelName: m, vllm: {url: "${render.url}"}}}`,
    `{type: ${plugins[0]}, parameters: ${parameters}}`,
    ...(plugins.length === 1
      ? []
      : ['{type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}']),
  ];
  const setting = await Setting.create(
    HOSTS.map((address, index) => ({ name: `pod-${index}`, address, port: 1 })),
    `plugins:\n${lines.map((line) => `- ${line}\n`).join('')}schedulingProfiles: [{name: p, plugins: [{pluginRef: ` +
      `${plugins.at(-1)}}]}]\n`,
  );
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const destination = async (prompt: string) => {
    const call = ask(client, prompt);
    const reply = decodeReply(await firstReply(call));
    call.cancel();
    return HOSTS.indexOf(reply.headers['x-gateway-destination-endpoint']!.split(':')[0]!);
  };
  /** A request with its whole answer. */
  const answered = async (prompt: string) => {
    const call = ask(client, prompt);
    await firstReply(call);
    const end = collect(call);
    call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
    call.write(responseBody('{"usage":{"prompt_tokens":26,"completion_tokens":1,"total_tokens":27}}', true));
    call.end();
    await end;
  };
  const destinations = async (prompt: string) => {
    const seen: number[] = [];
    for (let i = 0; i < 4; i++) seen.push(await destination(prompt));
    return seen;
  };
  const count = (name: string, labels = '') => metric(ports.metricsPort, name, labels);
  /** Publishes until the picker has heard it. */
  const tell = (engine: number, ...events: readonly unknown[]) =>
    eventually('the message', async () => {
      const before = (await count('pointsman_kv_events_messages_total'))!;
      await engines[engine]!.send(events);
      return (await count('pointsman_kv_events_messages_total'))! > before;
    });
  return { destination, destinations, answered, count, tell };
}

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
  const { destination, destinations, answered, count, tell } = await serve();
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
  const home = await destination(PROMPT);
  expect(await destinations(PROMPT)).toEqual([home, home, home, home]);
  await tell(home, stored([1], null, tokensOf('else'), 4));
  await eventually('the first event', async () => {
    await read();
    return states[home] === 1;
  });
  expect(await count('pointsman_kv_events_engine_blocks', `endpoint="pod-${home}"`)).toBe(1);
});
