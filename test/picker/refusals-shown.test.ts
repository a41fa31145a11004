import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { Snapshot } from '../../dist/operations/page/snapshot.js';
import { eventually } from '../gateway/client.ts';
import { cleanUp, dial, request, start, waiting } from './queued-requests.ts';
import { PROGRAM } from './serving.ts';

const run = promisify(execFile);

afterEach(cleanUp);

/** A picker whose two endpoints are taken and whose queue holds one request: three more are refused. */
async function saturated() {
  const { ports } = await start({ section: '  priorityBands: [{priority: 0, maxRequests: 1}]\n' });
  const client = dial(ports.grpcPort);
  const first = [request(client, 'a'), request(client, 'b')];
  await eventually('both are placed', () => first.every(({ reply }) => reply !== undefined));
  request(client, 'c');
  await eventually('one waits', async () => (await waiting(ports)) === 1);
  const refused = ['d', 'e', 'f'].map((prompt) => request(client, prompt, { 'x-request-id': `refused-${prompt}` }));
  await eventually('all others are answered', () => refused.every(({ reply }) => reply !== undefined));
  expect(refused.map(({ reply }) => reply!.status)).toEqual([429, 429, 429]);
  return `http://127.0.0.1:${ports.metricsPort}`;
}

/** The first snapshot that the page is sent. */
async function snapshotOf(url: string): Promise<Snapshot> {
  const { body } = await fetch(`${url}/ui/events`);
  let text = '';
  for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes('\n\n')) break;
  }
  return JSON.parse(text.slice('data: '.length, text.indexOf('\n\n'))) as Snapshot;
}

describe('requests that the queues refuse', () => {
  it('pointsman top counts them and lists them as refused', async () => {
    const url = await saturated();
    const { stdout } = await run(process.execPath, [PROGRAM, 'top', '--once', '--picker', url]);
    expect(stdout).toContain('refused 3 in 60 s');
    expect(stdout).toMatch(/refused-d +– .*refused with 429/);
  });

  it('the page counts them beside those that were decided', async () => {
    const { priorities } = await snapshotOf(await saturated());
    expect(priorities).toMatchObject([{ priority: 0, decided: 2, refused: 3 }]);
  });
});
