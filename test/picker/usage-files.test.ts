import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger, type Logger } from '../../dist/src/operations/log.js';
import { readUsageLines, utcDay } from '../../dist/src/operations/usage/daily-usage.js';
import { NO_USAGE, type TenantTotals } from '../../dist/src/operations/usage/tenant-usage.js';
import { UsageFiles } from '../../dist/src/picker/control/usage-files.js';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { ask, metric, Setting, startPicker } from './serving.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pointsman-usage-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const used = (tokens: number): TenantTotals => ({ ...NO_USAGE, requests: 1, inputTokens: tokens });
const NOON = Date.parse('2026-11-22T12:00:00Z');
const DAY_MS = 86_400_000;

/** A process that counts, with a clock of its own. */
function counting(options: { days?: number; folder?: string; log?: Logger } = {}) {
  const clock = { now: NOON, tokens: 0 };
  const files = new UsageFiles({
    folder: options.folder ?? folder,
    days: options.days ?? 31,
    poolName: 'llama',
    read: () => new Map(clock.tokens === 0 ? [] : [['a', used(clock.tokens)]]),
    now: () => clock.now,
    log: options.log ?? createLogger({ verbosity: 0, zapLogLevel: 'panic' }),
  });
  return { files, clock };
}

async function tokensOf(day: string): Promise<number | undefined> {
  return readUsageLines(await readFile(join(folder, `usage-${day}.ndjson`), 'utf8')).get('a')?.inputTokens;
}

describe('the files of --usage-dir', () => {
  it('a restart on the same day goes on with the counts of the day', async () => {
    const first = counting();
    await first.files.start();
    first.clock.tokens = 100;
    await first.files.stop();
    const second = counting();
    await second.files.start();
    second.clock.tokens = 30;
    await second.files.stop();
    expect(await tokensOf('2026-11-22')).toBe(130);
  });

  it('a new day gets a file of its own, and the last one keeps its counts', async () => {
    const { files, clock } = counting();
    await files.start();
    clock.tokens = 100;
    clock.now += DAY_MS;
    await files.tick();
    clock.tokens = 130;
    await files.stop();
    expect([await tokensOf('2026-11-22'), await tokensOf('2026-11-23')]).toEqual([100, 30]);
  });

  it('files are kept for the given days, and files of others stay', async () => {
    for (const name of ['usage-2026-11-19.ndjson', 'usage-2026-11-21.ndjson', 'notes.txt']) {
      await writeFile(join(folder, name), '');
    }
    const { files, clock } = counting({ days: 2 });
    await files.start();
    expect((await readdir(folder)).sort()).toEqual(['notes.txt', 'usage-2026-11-21.ndjson', 'usage-2026-11-22.ndjson']);
    clock.now += DAY_MS;
    await files.stop();
    expect((await readdir(folder)).sort()).toEqual(['notes.txt', 'usage-2026-11-22.ndjson', 'usage-2026-11-23.ndjson']);
  });

  it('usage that cannot be written is logged once with the name of its file, and shown until it is written', async () => {
    const lines: unknown[] = [];
    const log = { child: () => log, error: (fields: object, text: string) => lines.push({ ...fields, text }) };
    const { files, clock } = counting({ log: log as unknown as Logger });
    await files.start();
    expect(files.isUnsaved).toBe(false);
    await rm(folder, { recursive: true });
    clock.tokens = 100;
    await files.tick();
    await files.tick();
    expect(files.isUnsaved).toBe(true);
    const file = join(folder, 'usage-2026-11-22.ndjson');
    expect(lines).toEqual([{ file, text: expect.stringMatching(/^cannot keep the usage of tenants.*ENOENT/) }]);
    await mkdir(folder);
    await files.tick();
    expect(files.isUnsaved).toBe(false);
    expect(await tokensOf('2026-11-22')).toBe(100);
  });

  it('a damaged file is kept under another name', async () => {
    await writeFile(join(folder, 'usage-2026-11-22.ndjson'), '{"tenant":"a"');
    const { files, clock } = counting();
    await files.start();
    clock.tokens = 1;
    await files.stop();
    expect(await tokensOf('2026-11-22')).toBe(1);
    expect(await readdir(folder)).toContain(`usage-2026-11-22.ndjson.damaged-${NOON}`);
  });

  it('a folder that cannot be used ends the start with the flag', async () => {
    await writeFile(join(folder, 'file'), '');
    const { files } = counting({ folder: join(folder, 'file', 'folder') });
    await expect(files.start()).rejects.toThrow('--usage-dir: ');
  });

  it('a picker counts tokens by tenant in its file and in its metrics', async () => {
    const setting = await Setting.create([{ name: 'one', port: 21_211 }]);
    const { picker, ports } = await startPicker([...setting.flags, `--usage-dir=${folder}`, '--shards=2']);
    const client = dialPicker(ports.grpcPort);
    for (const tenant of ['a', 'b', 'a']) {
      const call = ask(client, 'a prompt', { 'x-llm-d-inference-fairness-id': tenant });
      decodeReply(await firstReply(call));
      const collected = collect(call);
      call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
      const usage =
        '{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":40}}';
      call.write(responseBody(`{"usage":${usage}}`, true));
      call.end();
      await collected;
    }
    const stream = ask(client, 'a prompt', { 'x-llm-d-inference-fairness-id': 'b' });
    decodeReply(await firstReply(stream));
    const ended = collect(stream);
    stream.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
    stream.write(responseBody('data: {"choices":[{}]}\n\ndata: {"choices":[{}]}\n\ndata: [DONE]\n\n', true));
    stream.end();
    await ended;
    const tokens = (labels: string) => metric(ports.metricsPort, 'pointsman_tenant_tokens_total', labels);
    expect(await tokens('fairness_id="a",kind="input"')).toBe(200);
    expect(await tokens('fairness_id="b",kind="cached"')).toBe(40);
    expect(await tokens('fairness_id="b",kind="output"')).toBe(7);
    expect(await tokens('fairness_id="b",kind="output_estimated"')).toBe(2);
    expect(await metric(ports.metricsPort, 'pointsman_tenant_requests_total', 'fairness_id="a"')).toBe(2);
    client.close();
    const day = utcDay(Date.now());
    await picker.stop(0);
    await setting.remove();
    const found = readUsageLines(await readFile(join(folder, `usage-${day}.ndjson`), 'utf8'));
    expect(found.get('a')).toMatchObject({ requests: 2, inputTokens: 200, outputTokens: 14, cachedTokens: 80 });
    expect(found.get('b')).toMatchObject({ requests: 2, inputTokens: 100, estimatedOutputTokens: 2 });
  });
});
