import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { afterEach, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { tokenizerConfig, tokenizerJson } from '../request/tokens/model-files.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function modelFolder(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-model-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  return folder;
}

async function setting(folder: string): Promise<Setting> {
  const plugins = [
    `{type: token-producer, parameters: {local: {path: ${JSON.stringify(folder)}, timeout: 30s}}}`,
    '{type: token-load-scorer}',
  ];
  const made = await Setting.create(
    [{ name: 'a', port: 1 }],
    `plugins:\n${plugins.map((plugin) => `- ${plugin}\n`).join('')}`,
  );
  cleanups.push(() => made.remove());
  return made;
}

it("the tokens that the model's files count are what an endpoint is charged", async () => {
  const folder = await modelFolder({
    'tokenizer.json': JSON.stringify(tokenizerJson()),
    'tokenizer_config.json': JSON.stringify(tokenizerConfig),
  });
  const { picker, ports } = await startPicker([...(await setting(folder)).flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const prompt = 'hello world '.repeat(50);
  const reply = decodeReply(await firstReply(ask(client, prompt)));
  expect(reply.headers['x-gateway-destination-endpoint']).toBe('127.0.0.1:1');
  const text = `<|im_start|>user\n${prompt}<|im_end|>\n<|im_start|>assistant\n`;
  const { ids } = new Tokenizer(tokenizerJson(), tokenizerConfig).encode(text, { add_special_tokens: false });
  const count = (name: string, labels = '') => metric(ports.metricsPort, name, labels);
  await eventually('the charge', async () => (await count('pointsman_endpoint_inflight_tokens')) === ids.length);
  expect(await count('pointsman_token_requests_total', 'outcome="tokenised"')).toBe(1);
  const remembered = async (name: string) => (await count(`pointsman_tokeniser_cache_${name}`, 'shard="1"')) ?? 0;
  await eventually('the remembered text', async () => (await remembered('bytes')) > prompt.length);
  expect(await remembered('age_seconds')).toBeGreaterThan(0);
});

it.each<[string, Readonly<Record<string, string>>, string]>([
  ['has no tokenizer.json', {}, 'does not exist'],
  ['holds something else', { 'tokenizer.json': '{' }, 'is no JSON'],
])('a picker does not start when the folder %s', async (_name, files, problem) => {
  const made = await setting(await modelFolder(files));
  await expect(startPicker([...made.flags, '--shards=1'])).rejects.toThrow(new RegExp(`local.path.*${problem}`));
});
