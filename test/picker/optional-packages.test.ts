import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runToEnd, startServe } from './serving.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HEAD = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n';
const FLAGS = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--secure-serving=false', '--lame-duck=0s'];

/** What a configuration needs that uses an optional package. */
const USES = [
  {
    packages: ['zeromq'],
    use: 'KV events',
    plugins: `- type: precise-prefix-cache-producer
  parameters: {tokenProcessorConfig: {blockSizeTokens: 16}, kvEventsConfig: {topicFilter: "kv@", discoverPods: true}}
- type: prefix-cache-scorer
  parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}
`,
  },
  {
    packages: ['@huggingface/tokenizers', '@huggingface/jinja'],
    use: "the model's own tokenisers",
    plugins:
      '- type: token-producer\n  parameters: {modelName: m, local: {path: tokens}}\n- type: prefix-cache-scorer\n',
  },
  {
    packages: ['@marcbachmann/cel-js'],
    use: 'expressions over the usage',
    plugins: `- type: request-attribute-reporter
  parameters: {attributes: [{key: {name: total}, expression: usage.total_tokens}]}
- type: queue-scorer
`,
  },
];

let folder: string;
let endpoints: string;

/** The program, with every installed package but these. @returns its path */
async function programWithout(hidden: readonly string[]): Promise<string> {
  const target = await mkdtemp(join(folder, 'program-'));
  for (const part of ['bin', 'dist', 'package.json'])
    await cp(join(ROOT, part), join(target, part), { recursive: true });
  for (const name of await installed()) {
    if (hidden.includes(name)) continue;
    const link = join(target, 'node_modules', name);
    await mkdir(join(link, '..'), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), link);
  }
  return join(target, 'bin/pointsman.js');
}

async function installed(): Promise<readonly string[]> {
  const top = (await readdir(join(ROOT, 'node_modules'))).filter((name) => !name.startsWith('.'));
  const scoped = top.filter((name) => name.startsWith('@'));
  const inScopes = await Promise.all(
    scoped.map(async (scope) => (await readdir(join(ROOT, 'node_modules', scope))).map((name) => `${scope}/${name}`)),
  );
  return [...top.filter((name) => !name.startsWith('@')), ...inScopes.flat()];
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'optional-'));
  endpoints = join(folder, 'endpoints.yaml');
  await writeFile(endpoints, 'endpoints:\n- {name: server, address: 127.0.0.1, port: 20001}\n');
  await mkdir(join(folder, 'tokens'));
  await writeFile(join(folder, 'tokens/tokenizer.json'), '{}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('a package that few configurations need', () => {
  it('an optional dependency is a package that is in no list of dependencies', async () => {
    const { dependencies, optionalDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const names = [
      ...USES.flatMap(({ packages }) => packages),
      '@msgpack/msgpack',
      '@nats-io/kv',
      '@nats-io/transport-node',
    ];
    expect(Object.keys(optionalDependencies).sort()).toEqual(names.sort());
    expect(names.filter((name) => name in dependencies)).toEqual([]);
  });

  it('the picker serves without all of them', async () => {
    const program = await programWithout([...USES.flatMap(({ packages }) => packages), '@msgpack/msgpack']);
    const serving = await startServe([`--endpoints-file=${endpoints}`, ...FLAGS], program);
    serving.child.kill('SIGTERM');
    expect(await serving.ended).toBe(0);
  });

  it.each(USES)('the start of a configuration that needs $packages says in one line what to install', async (given) => {
    const [name] = given.packages;
    const program = await programWithout([name!]);
    const configuration = join(folder, `${given.use.replaceAll(/\W/g, '')}.yaml`);
    await writeFile(configuration, HEAD + given.plugins);
    const args = ['serve', `--config-file=${configuration}`, `--endpoints-file=${endpoints}`, ...FLAGS];
    const { code, stderr } = await runToEnd([...args, '--allow-experimental-plugins'], program);
    const last = stderr.trimEnd().split('\n').at(-1);
    expect(last).toContain(`${given.use} need the package ${name}, which is not installed: run npm install ${name}`);
    expect(last).toMatch(/^pointsman: /);
    expect(code).toBe(1);
  });
});
