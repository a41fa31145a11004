import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { findings } from '../../dist/src/config/findings.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { createLogger } from '../../dist/src/operations/log.js';
import { readRecording } from '../../dist/src/operations/recording/recording-reader.js';
import { readUsageLines } from '../../dist/src/operations/usage/daily-usage.js';
import { KeptState } from '../../dist/src/picker/control/kept-state.js';
import { BUILTIN_ENGINES } from '../../dist/src/pool/engines/builtin-engines.js';
import { chartFolder, helm, helmSkipReason, KUBERNETES_VERSION } from '../charts/helm.ts';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { firstReply } from '../ingress/proxy-client.ts';
import { ask, overConnection, PROGRAM, startServe } from '../picker/serving.ts';
import { configurationsOf, fixture, STATE_FILES, savedNow, VERSIONS } from './fixtures.ts';
import { EngineDoubles, flagsOf, MISSING_TOKENS, PROMPTS, root, USED } from './served-pool.ts';
import { type StableNames, stableNames } from './stable-names.ts';

const run = promisify(execFile);
const pointsman = (...args: readonly string[]) => run(process.execPath, [PROGRAM, ...args]);
const text = (path: string) => readFileSync(join(root, path), 'utf8');
const DAY_MS = 86_400_000;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pointsman-compatibility-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the fixtures of earlier versions', () => {
  it('the fixtures hold this version and every version that the changelog has a section of', () => {
    const { version } = JSON.parse(text('package.json')) as { readonly version: string };
    const released = [...text('CHANGELOG.md').matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, name]) => name!);
    expect(VERSIONS).toEqual([...new Set([version, ...released])].sort());
  });

  it.each(VERSIONS)('the fixtures of %s hold every kind of state file', (version) => {
    expect(readdirSync(fixture(version, 'state')).sort()).toEqual([...STATE_FILES]);
  });
});

describe.each(VERSIONS)('files of version %s', (version) => {
  const state = (name: (typeof STATE_FILES)[number]) => fixture(version, 'state', name);
  const configuration = (name: string) => fixture(version, 'configurations', name);

  it.each(configurationsOf(version))('the configuration %s has no errors', (name) => {
    const options = { registry: builtinPlugins, allowExperimental: true, engines: BUILTIN_ENGINES };
    const { errors } = findings({ file: configuration(name) }, options);
    expect(errors.map(({ message }) => message)).toEqual([]);
  });

  it.each(['endpoints.yaml', 'endpoints-labelled.yaml'])('the endpoints file %s is read', async (name) => {
    const args = [configuration('prefix-and-load.yaml'), '--endpoints', configuration(name), '--json'];
    expect(JSON.parse((await pointsman('lint', ...args)).stdout)).toMatchObject({ errors: [] });
  });

  it('the pools file is read', async () => {
    const { stdout } = await pointsman('lint', '--pools', configuration('pools.yaml'));
    expect(stdout).toMatch(/\b0 errors/);
  });

  it('plugins that were written for it are loaded', async () => {
    const plugins = readdirSync(configuration('plugins')).filter((name) => name.endsWith('.js'));
    const flags = plugins.flatMap((name) => ['--plugin', configuration(`plugins/${name}`)]);
    const { stdout } = await pointsman('lint', configuration('plugins/tenants.yaml'), ...flags);
    expect(stdout).toMatch(/\b0 errors/);
  });

  it.skipIf(helmSkipReason !== '').each(['gateway', 'standalone'] as const)(
    `the values of the chart %s are taken${helmSkipReason}`,
    async (chart) => {
      const values = ['--values', fixture(version, 'charts', `${chart}.yaml`)];
      const servers = ['--set-json', 'router.modelServers={"matchLabels":{"app":"vllm"}}'];
      const { stdout } = await helm(
        'template',
        'rel',
        chartFolder(chart),
        ...values,
        ...servers,
        '--kube-version',
        KUBERNETES_VERSION,
      );
      expect(stdout).toContain('kind: Deployment');
    },
  );

  it.each(Object.keys(stableNames()) as (keyof StableNames)[])('no name among its %s is gone', (kind) => {
    const before = JSON.parse(readFileSync(fixture(version, 'names.json'), 'utf8')) as StableNames;
    const now = new Set(stableNames()[kind]);
    expect(before[kind].length).toBeGreaterThan(3);
    expect(before[kind].filter((name) => !now.has(name))).toEqual([]);
  });

  it.each(['learned.json', 'learned-classes.json'] as const)('the learned costs of %s are used', async (name) => {
    const { stdout } = await pointsman('weights', 'export', '--state-file', state(name));
    const { model } = JSON.parse(readFileSync(state(name), 'utf8')) as { model: { outputTokens: number } };
    const { adaptation } = parse(stdout) as { adaptation: { prior: Readonly<Record<string, unknown>> } };
    expect(Number(adaptation.prior.outputTokens) / model.outputTokens).toBeCloseTo(1, 1);
  });

  it('the levels of buckets that JetStream keeps are restored', async () => {
    const restored: { readonly tenant: string; readonly tokens: number }[] = [];
    const kept = new KeptState({
      store: {
        get: async (name) => (name === 'tenants' ? readFile(state('tenants.json')) : undefined),
        put: async () => {},
      },
      state: {
        learned: () => undefined,
        restoreLearned: () => undefined,
        missing: () => [],
        restore: (missing) => restored.push(...missing),
      },
      writes: () => false,
      log: createLogger({ verbosity: 0, zapLogLevel: 'panic' }),
    });
    await kept.start();
    await kept.stop();
    expect(Object.fromEntries(restored.map(({ tenant, tokens }) => [tenant, tokens]))).toEqual(MISSING_TOKENS);
  });

  it('the recording becomes a trace with every request of it', async () => {
    const trace = join(folder, `${version}.jsonl`);
    await pointsman('replay', state('recording.bin'), '--trace', trace);
    const requests = Object.values(USED).reduce((sum, used) => sum + used.requests, 0);
    expect((await readFile(trace, 'utf8')).trimEnd().split('\n')).toHaveLength(requests);
  });

  it('the recording is replayed, or refused by the version that can replay it', async () => {
    const args = ['replay', state('recording.bin'), '--config', configuration('prefix-and-load.yaml'), '--json'];
    const { header } = readRecording(readFileSync(state('recording.bin')));
    if (header.layout === CORE.LAYOUT_VERSION) {
      expect(JSON.parse((await pointsman(...args)).stdout)).toMatchObject({ reproduced: 1 });
    } else {
      const refusal = `recorded by version ${version}, whose states this version cannot read: replay it with that one`;
      await expect(pointsman(...args)).rejects.toThrow(refusal);
    }
  });

  describe('a picker that goes on with its state', () => {
    /** Starts a picker over copies of the state files, asks for every prompt, and ends it. */
    async function restore() {
      const own = await mkdtemp(join(folder, 'picker-'));
      const [kept, usage] = [join(own, 'state'), join(own, 'usage')];
      await Promise.all([kept, usage].map((path) => mkdir(path)));
      for (const name of ['learned.json', 'hash-seed'] as const) await copyFile(state(name), join(kept, name));
      await writeFile(join(kept, 'prefix-index.bin'), savedNow(state('prefix-index.bin'), Date.now()));
      // Two days, so that midnight changes nothing.
      const days = [0, DAY_MS].map((ms) => new Date(Date.now() + ms).toISOString().slice(0, 10));
      for (const day of days) await copyFile(state('usage.ndjson'), join(usage, `usage-${day}.ndjson`));
      const engines = await EngineDoubles.start();
      onTestFinished(() => engines.stop());
      const picker = await startServe([...flagsOf(own), `--state-dir=${kept}`, `--usage-dir=${usage}`]);
      onTestFinished(() => picker.kill());
      await overConnection(picker.grpcPort, async (client) => {
        for (const prompt of PROMPTS) {
          const call = ask(client, prompt, { 'x-llm-d-inference-fairness-id': 'blue' });
          decodeReply(await firstReply(call));
          call.end();
        }
      });
      const page = await fetch(`http://127.0.0.1:${picker.metricsPort}/debug/decisions`);
      const { decisions } = (await page.json()) as { decisions: readonly { readonly matchedBlocks: number }[] };
      picker.child.kill('SIGTERM');
      await picker.ended;
      const files = await Promise.all(days.map((day) => readFile(join(usage, `usage-${day}.ndjson`), 'utf8')));
      return { log: picker.log(), decisions, usage: files.map(readUsageLines) };
    }

    it('a picker finds every prompt in the kept index, and adds to the usage of the day', async () => {
      const { log, decisions, usage } = await restore();
      expect(log).toContain('goes on with the prefix index of an earlier run');
      expect(log).not.toMatch(/starts with an empty prefix index|is not used|learning starts anew|damaged/);
      expect(decisions.map(({ matchedBlocks }) => matchedBlocks > 0)).toEqual(PROMPTS.map(() => true));
      const requests = usage.map((tenants) => tenants.get('blue')!.requests);
      expect(Math.max(...requests)).toBe(USED.blue!.requests + PROMPTS.length);
      expect(usage[0]!.get('green')).toMatchObject(USED.green!);
    });
  });
});

describe('a state file of a later version', () => {
  it.each([['learned.json', '"version":1', '"version":9', /version 9/]] as const)(
    '%s is refused by its version',
    async (name, from, to, message) => {
      const later = join(folder, `later-${name}`);
      const newest = VERSIONS.at(-1)!;
      await writeFile(later, readFileSync(fixture(newest, 'state', name), 'utf8').replace(from, to));
      await expect(pointsman('weights', 'export', '--state-file', later)).rejects.toThrow(message);
    },
  );
});
