import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { askAndEnd, overConnection, runToEnd, Setting, startServe } from './serving.ts';

const PROFILE = `plugins:
- {type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 64, autoTune: false, lruCapacityPerServer: 31250}}
- type: prefix-cache-scorer
- type: max-score-picker
schedulingProfiles:
- name: default
  plugins: [{pluginRef: prefix-cache-scorer}, {pluginRef: max-score-picker}]
`;
const ENDPOINTS = Array.from({ length: 8 }, (_, i) => ({ name: `s${i}`, port: 20_000 + i }));
const PROMPTS = Array.from({ length: 40 }, (_, i) => `${`${i} tells a story of its own. `.repeat(40)}`);

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function setting(profile = PROFILE): Promise<Setting> {
  const made = await Setting.create(ENDPOINTS, profile);
  cleanups.push(() => made.remove());
  return made;
}

/** Starts a picker, asks for every prompt, and ends it. @returns destinations and the log */
async function run(flags: readonly string[], signal: NodeJS.Signals = 'SIGTERM') {
  const serve = await startServe([...flags, '--lame-duck=0s', '--drain-timeout=0s']);
  cleanups.push(() => serve.kill());
  const destinations = await overConnection(serve.grpcPort, async (client) => {
    const picked: string[] = [];
    for (const prompt of PROMPTS) {
      const { replies } = await askAndEnd(client, prompt);
      picked.push(decodeReply(replies[0]!).headers['x-gateway-destination-endpoint']!);
    }
    return picked;
  });
  serve.child.kill(signal);
  await serve.ended;
  return { destinations, log: serve.log() };
}

function same(a: readonly string[], b: readonly string[]): number {
  return a.filter((each, i) => each === b[i]).length / a.length;
}

describe('--state-dir', () => {
  it('a restarted picker sends every prompt where it was sent before', async () => {
    const { flags, folder } = await setting();
    const all = [...flags, `--state-dir=${join(folder, 'state')}`];
    const before = await run(all);
    const after = await run(all);
    expect(same(after.destinations, before.destinations)).toBe(1);
    expect(after.log).toContain('goes on with the prefix index of an earlier run');
  });

  it('a restarted picker without --state-dir knows nothing', async () => {
    const { flags } = await setting();
    const [before, after] = [await run(flags), await run(flags)];
    expect(same(after.destinations, before.destinations)).toBeLessThan(0.6);
  });

  it('the seed of the block hashes can be read by the owner only', async () => {
    const { flags, folder } = await setting();
    await run([...flags, `--state-dir=${join(folder, 'state')}`]);
    expect((await stat(join(folder, 'state/hash-seed'))).mode & 0o777).toBe(0o600);
  });

  it('a damaged file is refused with the reason, and the picker serves', async () => {
    const { flags, folder } = await setting();
    const all = [...flags, `--state-dir=${join(folder, 'state')}`];
    await run(all);
    const path = join(folder, 'state/prefix-index.bin');
    const bytes = await readFile(path);
    bytes[bytes.length - 1]! ^= 1;
    await writeFile(path, bytes);
    expect((await run(all)).log).toContain('starts with an empty prefix index: its checksum is wrong');
  });

  it('a picker that is killed while it writes its last state leaves files that the next one takes', async () => {
    const { flags, folder } = await setting();
    const state = join(folder, 'state');
    const usage = join(folder, 'usage');
    const all = [...flags, `--state-dir=${state}`, `--usage-dir=${usage}`];
    await run(all);
    for (let round = 0; round < 4; round++) {
      const serve = await startServe([...all, '--lame-duck=0s', '--drain-timeout=0s']);
      cleanups.push(() => serve.kill());
      expect(serve.log()).toContain('goes on with the prefix index of an earlier run');
      serve.child.kill('SIGTERM');
      setTimeout(() => serve.child.kill(round % 2 === 0 ? 'SIGKILL' : 'SIGTERM'), 8 * round);
      await serve.ended;
    }
    const { log } = await run(all);
    expect(log).toContain('goes on with the prefix index of an earlier run');
    expect(log).not.toMatch(/starts with an empty prefix index|learns from the beginning/);
  });

  it('another block size refuses the file', async () => {
    const first = await setting();
    const state = `--state-dir=${join(first.folder, 'state')}`;
    await run([...first.flags, state]);
    const other = await setting(PROFILE.replace('blockSizeTokens: 64', 'blockSizeTokens: 128'));
    expect((await run([...other.flags, state])).log).toContain(
      'its blocks have 64 tokens, and the configuration says 128',
    );
  });

  it('other engines get nothing of it', async () => {
    const { flags, folder, ...rest } = await setting();
    void rest;
    const made = await setting();
    const state = `--state-dir=${join(folder, 'state')}`;
    await run([...flags, state]);
    await made.writeEndpoints(ENDPOINTS.map(({ name, port }) => ({ name, port: port + 100 })));
    expect((await run([...made.flags, state])).log).not.toContain('goes on with the prefix index');
  });

  it('a path that is no folder ends the start with one line', async () => {
    const { flags, folder } = await setting();
    await writeFile(join(folder, 'file'), '');
    const { code, stderr } = await runToEnd(['serve', ...flags, `--state-dir=${join(folder, 'file')}`]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('--state-dir: ')]);
  });
});
