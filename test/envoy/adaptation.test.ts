import { afterEach, describe, expect, test } from 'vitest';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../dist/src/config/default-configuration.js';
import type { DemoStack } from '../../dist/tools/demo/demo-stack.js';
import { runShift, type ShiftPool } from '../../dist/tools/demo/shift/shift.js';
import { planTraffic } from '../../dist/tools/demo/shift/traffic.js';
import { type Backend, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody } from '../tools/gateway/client.ts';
import { envoyBinary, skipReason } from './envoy.ts';
import { startTestBed } from './test-bed.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** The servers that requests go to, one after another, through Envoy and a picker in this mode of adaptation. */
async function servedBy(mode: string, prompts: readonly string[]): Promise<string[]> {
  const servers: Backend[] = [];
  for (let index = 0; index < 4; index++) {
    servers.push(await startBackend(`s${index}`, (_received, response) => response.end('{}')));
  }
  const profile = `plugins:\n${DEFAULT_PLUGINS}${DEFAULT_PROFILES}adaptation: {mode: ${mode}}\n`;
  const bed = await startTestBed(servers, { profile, flags: ['--seed', '7', '--shards', '1'] });
  cleanups.push(() => bed.stop());
  const names: string[] = [];
  for (const prompt of prompts) {
    const counts = servers.map(({ received }) => received.length);
    expect((await ask(bed.envoy.port, { body: chatBody(prompt) })).status).toBe(200);
    names.push(servers.find(({ received }, index) => received.length > counts[index]!)!.name);
  }
  return names;
}

describe.skipIf(skipReason !== '')(`learned costs through Envoy${skipReason}`, () => {
  test('learned costs through Envoy leave every pick as it is when they are off and while they only look on', async () => {
    const prompts = Array.from({ length: 40 }, (_, i) => `${`prompt ${(i * 7) % 9}. `.repeat(200)}question ${i}`);
    const off = await servedBy('"off"', prompts);
    expect(await servedBy('shadow', prompts)).toEqual(off);
    expect(new Set(off).size).toBeGreaterThan(1);
  });

  test('learned costs through Envoy serve every request of a shifting load, move their weights and pick otherwise', async () => {
    const pool = (name: string, mode: ShiftPool['mode']): ShiftPool => ({
      name,
      mode,
      port: 0,
      grpcPort: 0,
      metricsPort: 0,
    });
    const size = { seed: 3, servers: 4, speedup: 4 };
    const plan = planTraffic({ ...size, load: 1, seconds: 4 });
    let beds: readonly DemoStack[] = [];
    const windows: number[] = [];
    const [fixed, learned] = await runShift({
      ...size,
      pools: [pool('configured', 'shadow'), pool('always', 'always')],
      plan,
      envoy: envoyBinary,
      signal: new AbortController().signal,
      windowMs: 500,
      started: (all) => {
        beds = all;
      },
      show: ({ pools }) => windows.push(pools.length),
    });
    expect(beds).toHaveLength(2);
    expect(windows.length).toBeGreaterThan(0);
    for (const run of [fixed!, learned!]) {
      expect(run.whole).toMatchObject({ answered: plan.length, failed: 0 });
      expect(run.after.samples.learned).toBeGreaterThan(plan.length / 2);
      expect(run.after.effectiveWeights).not.toEqual(run.before.effectiveWeights);
    }
    expect([fixed!.after.arm, learned!.after.arm]).toEqual(['static', 'learned']);
    const places = [fixed!, learned!].map(({ outcomes }) =>
      Object.fromEntries(
        outcomes.map(({ planned, answer }) => [`${planned.dialogue} ${planned.atMs}`, answer?.server]),
      ),
    );
    expect(places[1]).not.toEqual(places[0]);
  });
});
