import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, type ProxyClient } from '../ingress/proxy-client.ts';
import { metric, type Ports, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const RULES = `objectives:
- {name: important, priority: 5}
rewrites:
- name: adapters
  models: [base]
  targets: [{model: lora-a, weight: 1}, {model: lora-b, weight: 1}]
- name: split
  models: [food]
  targets: [{model: food-v1, weight: 3}, {model: food-v2, weight: 1}]
`;

async function start(...flags: string[]): Promise<ProxyClient> {
  return (await startWithPorts(...flags)).client;
}

async function startWithPorts(...flags: string[]): Promise<{ readonly client: ProxyClient; readonly ports: Ports }> {
  const setting = await Setting.create([{ name: 'a', port: 20_001 }]);
  cleanups.push(() => setting.remove());
  const file = join(setting.folder, 'endpoints.yaml');
  await writeFile(`${file}.next`, (await readFile(file, 'utf8')) + RULES);
  await rename(`${file}.next`, file);
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  return { client, ports };
}

/** Status of the answer (0 = routed) and the body that goes on, as text. */
async function ask(client: ProxyClient, body: object): Promise<{ status: number; body: string }> {
  const call = client.process();
  const collected = collect(call);
  call.write(requestHeaders({ ':path': '/v1/completions' }));
  call.write(requestBody(JSON.stringify(body)));
  call.end();
  const replies = (await collected).replies.map(decodeReply);
  return { status: replies[0]!.status, body: replies.map((reply) => reply.body.toString()).join('') };
}

describe('--require-model-match', () => {
  it('--require-model-match answers 404 to a model that nothing names, and routes the named ones', async () => {
    const client = await start('--require-model-match');
    expect(await ask(client, { model: 'unheard', prompt: 'x' })).toMatchObject({
      status: 404,
      body: expect.stringContaining('model "unheard" is not served here: no objective and no rewrite rule names it'),
    });
    expect((await ask(client, { model: 'important', prompt: 'x' })).status).toBe(0);
    expect(JSON.parse((await ask(client, { model: 'food', prompt: 'x' })).body).model).toMatch(/^food-v[12]$/);
  });

  it('--require-model-match is off by default: unknown models are forwarded', async () => {
    const client = await start();
    expect((await ask(client, { model: 'unheard', prompt: 'x' })).status).toBe(0);
  });
});

describe('--seed', () => {
  async function targets(seed: number): Promise<string[]> {
    const client = await start(`--seed=${seed}`);
    const models: string[] = [];
    for (let i = 0; i < 40; i++)
      models.push(JSON.parse((await ask(client, { model: 'food', prompt: 'x' })).body).model);
    return models;
  }

  it('--seed gives the same row of rewritten models, in about the weights of the rule', async () => {
    const first = await targets(7);
    expect(await targets(7)).toEqual(first);
    expect(await targets(8)).not.toEqual(first);
    const share = first.filter((model) => model === 'food-v1').length / first.length;
    expect(share).toBeGreaterThan(0.5);
    expect(share).toBeLessThan(0.95);
  });
});

describe('a split of one model over two adapters', () => {
  it('a split of one model over two adapters counts by the asked and the serving model, and hides the second', async () => {
    const { client, ports } = await startWithPorts('--seed=3');
    const served = new Map<string, number>();
    for (let i = 0; i < 12; i++) {
      const call = client.process();
      const collected = collect(call);
      call.write(requestHeaders({ ':path': '/v1/completions', 'x-llm-d-inference-objective': 'important' }));
      call.write(requestBody('{"model":"base","prompt":"x"}'));
      call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
      call.write(responseBody('{"model":"lora-a","choices":[]}'.replace('lora-a', i % 2 ? 'lora-a' : 'lora-b'), true));
      call.end();
      const replies = (await collected).replies.map(decodeReply);
      const asked = replies.filter(({ kind }) => kind === 'requestBody').map(({ body }) => body.toString());
      const { model } = JSON.parse(asked.join('')) as { model: string };
      served.set(model, (served.get(model) ?? 0) + 1);
      const answer = replies.filter(({ kind }) => kind === 'responseBody').map(({ body }) => body.toString());
      if (model === (i % 2 ? 'lora-a' : 'lora-b')) expect(JSON.parse(answer.join('')).model).toBe('base');
    }
    expect([...served.keys()].sort()).toEqual(['lora-a', 'lora-b']);
    for (const [model, count] of served) {
      const requests = `model_name="base",priority="5",target_model_name="${model}"`;
      expect(await metric(ports.metricsPort, 'llm_d_epp_request_total', requests)).toBe(count);
      const rewrites = `model_name="base",model_rewrite_name="adapters",target_model="${model}"`;
      expect(await metric(ports.metricsPort, 'llm_d_epp_model_rewrite_decisions_total', rewrites)).toBe(count);
    }
  });
});
