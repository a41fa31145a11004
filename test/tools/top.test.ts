import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { CandidateShown, Snapshot } from '../../dist/src/operations/page/snapshot.js';
import { topText } from '../../dist/tools/top/top-text.js';
import { PROGRAM, Setting, startPicker } from '../picker/serving.ts';

const run = promisify(execFile);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(...flags: string[]): Promise<string> {
  const setting = await Setting.create([{ name: 'only', port: 21_031 }]);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  return `http://127.0.0.1:${ports.metricsPort}`;
}

function emptySnapshot(candidate: CandidateShown | null): Snapshot {
  const cache = { promptTokens: 0, matchedTokens: 0, hitRate: null, lost: {} };
  return {
    ...{ time: 0, pool: 'p', pools: null, version: '1', unready: [], windowSeconds: 60, inflight: 0, endpoints: [] },
    adaptation: { mode: 'off', arm: 'static', inWords: [], shares: null, deciders: null, times: [] },
    ...{ priorities: [], cache, queues: null, sessions: null, candidate, decisions: [], parts: [], points: [] },
  };
}

describe('pointsman top', () => {
  it('one snapshot of a picker names its endpoints, and unknown signals as such', async () => {
    const url = await serve();
    const { stdout } = await run(process.execPath, [PROGRAM, 'top', '--once', '--picker', url]);
    expect(stdout).toMatch(/^pointsman {2}pool default {2}ready/);
    expect(stdout).toMatch(/default\/only +never reached +░{10} 0 +unknown +unknown/);
    expect(stdout).toContain('no decision yet');
  });

  it('a picker without the page gets the remedy', async () => {
    const url = await serve('--ui=false');
    await expect(run(process.execPath, [PROGRAM, 'top', '--picker', url])).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('it serves no page: start it without --ui=false'),
    });
  });

  it.each(['top', 'doctor', 'why'])(
    '%s names the pool that there is in the place of an unknown --pool',
    async (verb) => {
      const url = await serve();
      const args = [verb, ...(verb === 'why' ? ['some-request'] : []), '--pool', 'defalt', '--picker', url];
      await expect(run(process.execPath, [PROGRAM, ...args])).rejects.toMatchObject({
        code: 1,
        stderr: `pointsman: --pool: there is no pool "defalt"; did you mean "default"? on ${url}\n`,
      });
    },
  );

  it('a port without a picker is answered with the flag', async () => {
    await expect(run(process.execPath, [PROGRAM, 'top', '--picker', 'http://127.0.0.1:9'])).rejects.toMatchObject({
      stderr: expect.stringContaining('--picker names its metrics port'),
    });
  });

  it('the line of a candidate configuration has its share of other picks and both costs, or why it stopped', () => {
    const all = { decisions: 1204, different: 0.184, unplaced: 3, runningCost: 0.447, candidateCost: 0.412 };
    const candidate = { file: '/etc/other.yaml', every: 1, seconds: 60, stopped: null, all, objectives: [] };
    const lineOf = (shown: CandidateShown) =>
      topText(emptySnapshot(shown), 16)
        .split('\n')
        .find((line) => line.startsWith('candidate'));
    expect(lineOf(candidate)).toBe(
      'candidate other.yaml: other picks for 18.4 % of 1204 requests, predicted cost 0.412 instead of 0.447 ' +
        'targets, unplaced 3',
    );
    expect(lineOf({ ...candidate, all: null })).toBe('candidate other.yaml: nothing decided yet');
    expect(lineOf({ ...candidate, stopped: 'other profiles' })).toBe(
      'candidate other.yaml decides no longer: other profiles',
    );
    expect(topText(emptySnapshot(null), 16)).not.toContain('candidate');
  });

  it('a part of the picker that is not well has a line, as replicas without NATS', () => {
    const parts = [
      { name: 'Shards', ok: true, text: 'none has died' },
      { name: 'Replicas', ok: false, text: 'NATS is away' },
    ];
    const text = topText({ ...emptySnapshot(null), parts }, 16);
    expect(text).toContain('\nReplicas: NATS is away\n');
    expect(text).not.toContain('Shards');
  });

  it('a pool larger than the terminal shows the busiest and says how many are left out', () => {
    const endpoint = {
      state: 'live',
      tokens: 0,
      waiting: 0,
      running: 0,
      kvUsage: 0.5,
      ageMs: 5,
      share: 0,
      hitRate: null,
      ttftMs: null,
    };
    const snapshot = {
      pool: 'p',
      unready: [],
      windowSeconds: 60,
      inflight: 45,
      endpoints: Array.from({ length: 10 }, (_, i) => ({ ...endpoint, id: `ns/e${i}`, inflight: i })),
      priorities: [],
      cache: { promptTokens: 10, matchedTokens: 5, hitRate: 0.5, lost: { 'by-load': 5 } },
      queues: null,
      sessions: null,
      candidate: null,
      decisions: [],
      parts: [],
    } as unknown as Snapshot;
    const text = topText(snapshot, 16);
    expect(text).toContain('ns/e9');
    expect(text).not.toContain('ns/e1 ');
    expect(text).toContain('and 7 more');
    expect(text).toContain('by-load 5 tokens');
  });
});
