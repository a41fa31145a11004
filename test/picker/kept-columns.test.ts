import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { RequestStory } from '../../dist/src/operations/why/request-story.js';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, PROGRAM, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A picker that keeps no columns of placed requests by itself. */
async function serve(...flags: readonly string[]) {
  const setting = await Setting.create([
    { name: 'one', port: 21_411 },
    { name: 'two', port: 21_412 },
  ]);
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--decision-columns-every=0', ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const url = `http://127.0.0.1:${ports.metricsPort}`;
  let requests = 0;
  /** Whether the decision about a new request has its columns. */
  const hasColumns = async (headers: Readonly<Record<string, string>>) => {
    const id = `request-${++requests}`;
    await firstReply(ask(client, 'a prompt', { 'x-request-id': id, ...headers }));
    const story = (await (await fetch(`${url}/debug/requests/${id}`)).json()) as RequestStory;
    return story.decisions[0]!.endpoints !== null;
  };
  return { url, setting, hasColumns };
}

function why(
  ...argv: readonly string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, 'why', ...argv], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const tenant = (name: string) => ({ 'x-llm-d-inference-fairness-id': name });

describe('pointsman why --keep', () => {
  it('the scores of every decision about one tenant are kept from then on, until that is ended', async () => {
    const { url, hasColumns } = await serve('--shards=2');
    expect(await hasColumns(tenant('a'))).toBe(false);
    const { code, stdout } = await why('--keep', 'tenant=a', '--minutes', '2', '--picker', url);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'every decision about tenant a keeps its scores for 120 s, at most 1000 of each shard\n',
    });
    await eventually('they are kept', () => hasColumns(tenant('a')));
    expect(await hasColumns(tenant('b'))).toBe(false);
    expect((await why('--keep', 'tenant=a', '--minutes', '0', '--picker', url)).stdout).toBe(
      'no columns are kept on request\n',
    );
    await eventually('they are no longer kept', async () => !(await hasColumns(tenant('a'))));
  });

  it.each([
    ['tenant', 'expected one of tenant=…, model=…, session=…'],
    ['pool=x', 'expected one of tenant=…, model=…, session=…'],
  ])('the argument --keep %s is refused with what it takes', async (given, message) => {
    const { code, stderr } = await why('--keep', given);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it('a command without request and without --keep is refused with both', async () => {
    const { code, stderr } = await why();
    expect([code, stderr]).toEqual([1, expect.stringContaining('or give --keep')]);
  });
});

describe('POST /debug/columns', () => {
  it('the page does nothing for a GET', async () => {
    const { url, hasColumns } = await serve();
    expect((await fetch(`${url}/debug/columns?tenant=a`)).status).not.toBe(200);
    expect(await hasColumns(tenant('a'))).toBe(false);
  });

  it('the page takes one kind of requests, and bounded figures', async () => {
    const { url } = await serve();
    const post = async (query: string) => {
      const answer = await fetch(`${url}/debug/columns?${query}`, { method: 'POST' });
      return `${answer.status} ${(await answer.text()).trim()}`;
    };
    expect(await post('')).toMatch(/^200 {\s+"kept": \[\]\s+}$/);
    expect(await post('tenat=a')).toBe('400 tenat: is an unknown parameter; did you mean tenant?');
    expect(await post('tenant=a&model=b')).toBe('400 only one of tenant, model, session can be given');
    expect(await post(`tenant=${'a'.repeat(257)}`)).toBe('400 tenant: must have 1 to 256 characters');
    expect(await post('model=m&minutes=61')).toBe('400 minutes: must be a whole number from 0 to 60');
    expect(await post('model=m&decisions=0')).toBe('400 decisions: must be a whole number from 1 to 10000');
    for (let i = 0; i < 8; i++) expect(await post(`session=s${i}`)).toMatch(/^200 /);
    expect(await post('session=s8')).toMatch(/^409 columns of 8 kinds of requests are kept already/);
    expect(await post('session=s7&minutes=60')).toMatch(/^200 /);
  });

  it('the page asks for the token of the port', async () => {
    const { url, setting } = await serve();
    const file = join(setting.folder, 'token');
    await writeFile(file, 'secret-token-of-the-port\n');
    const guarded = await serve(`--metrics-auth-token-file=${file}`);
    const answer = await fetch(`${guarded.url}/debug/columns?tenant=a`, { method: 'POST' });
    expect([401, 403]).toContain(answer.status);
    expect((await why('--keep', 'tenant=a', '--picker', guarded.url, '--token-file', file)).code).toBe(0);
    expect((await fetch(`${url}/debug/columns?tenant=a`, { method: 'POST' })).status).toBe(200);
  });
});
