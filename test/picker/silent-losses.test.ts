// Losses of hits and requests that nobody would notice: each is staged with a running picker, and the doctor names it.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { Recording } from '../engines/recordings.ts';
import { eventually } from '../tools/gateway/client.ts';
import { Setting, startPicker } from './serving.ts';
import { doctorLines, serveTold } from './told-engines.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PROMPT = 'a prompt of several blocks';

it('a render server that refuses all prompts of a precise producer is an error of the doctor', async () => {
  const { render, destination, count, doctor } = await serveTold(cleanups);
  render.behave = (_call, response) => {
    response.statusCode = 403;
    response.end('{"error":"start the server with --enable-scale-out"}');
  };
  for (let i = 0; i < 3; i++) await destination(PROMPT);
  expect(await count('pointsman_token_requests_total', 'outcome="failed"')).toBe(3);
  expect(await doctor()).toContain(
    'error token sources: no prompt gets its tokens (3 prompts since the start), so none matches the blocks that ' +
      'engines tell of',
  );
  render.behave = (call, response) => render.answer(call, response);
  await destination(PROMPT);
  expect((await doctor()).join()).not.toContain('error token sources');
});

it('tokens that engines count otherwise are a warning of the doctor with both counts of a prompt', async () => {
  const { answered, count, doctor } = await serveTold(cleanups);
  for (let i = 0; i < 19; i++) await answered(PROMPT);
  await answered(PROMPT, 31);
  await eventually('all counts', async () => (await count('pointsman_token_counts_total', 'agreement="same"')) === 19);
  // One in twenty is 5 %, which is no exception yet.
  expect((await doctor()).join()).not.toContain('token counts');
  await answered(PROMPT, 31);
  await eventually('the last', async () => (await count('pointsman_token_counts_total', 'agreement="differs"')) === 2);
  expect(await doctor()).toContain(
    'warning token counts: 2 of 21 prompts have other token counts at the engine; the last one 31 there and 26 here',
  );
});

it('speculated blocks that no engine confirms are a warning of the doctor', async () => {
  const { destination, count, doctor } = await serveTold(cleanups, ', speculativeIndexing: true, speculativeTTL: 1s');
  await destination('x'.repeat(480));
  const expired = () => count('pointsman_kv_events_speculated_blocks_total', 'outcome="expired"');
  await eventually('the expiry', async () => (await expired()) === 120);
  expect(await doctor()).toContain(
    'warning KV events: engines have not confirmed 120 of 120 blocks that were sent to them',
  );
});

it.each([
  ['sleeps', 'asleep', (page: string) => page, 'note sleep: the engines of 1 of 2 endpoints sleep and get no requests'],
  [
    'refuses requests',
    'idle',
    (page: string, scrape: number) => page.replace(/(reason="max_num_queued_reqs"\}) 0\.0/, `$1 ${scrape}.0`),
    'warning refused requests: the engines of 1 of 2 endpoints refuse requests',
  ],
])('an engine of vLLM that %s is named by the doctor', async (_, name, pageAt, expected) => {
  const recorded = (page: string) => new Recording('vllm-0.32.0').page(page);
  const serveEngine = async (host: string, page: (scrape: number) => string) => {
    let scrapes = 0;
    const server = createServer((_request, answer) => answer.end(page(scrapes++))).listen(0, host);
    await once(server, 'listening');
    cleanups.push(() => server.close());
    return (server.address() as AddressInfo).port;
  };
  const idle = recorded('idle');
  const troubled = recorded(name);
  const setting = await Setting.create([
    { name: 'idle', port: await serveEngine('127.0.0.1', () => idle) },
    { name: 'troubled', port: await serveEngine('127.0.0.1', (scrape) => pageAt(troubled, scrape)) },
  ]);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  await eventually('the line of the doctor', async () =>
    (await doctorLines(ports.metricsPort)).some((line) => line.startsWith(`${expected}: troubled`)),
  );
});
