import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HeldBytes } from '../../../dist/src/ingress/byte-budget.js';
import { LeanTransport } from '../../../dist/src/ingress/transports/http2/lean.js';

const BINARY = process.env.H2SPEC_BIN ?? resolve(import.meta.dirname, '../../../.tools/h2spec/h2spec');
const required = process.env.POINTSMAN_REQUIRE_H2SPEC === '1';
const found = existsSync(BINARY);
const skipReason =
  found || required ? '' : ' (skipped: no h2spec found; run scripts/install-h2spec.sh or set H2SPEC_BIN)';

/** Cases that node:http2 passes and the lean transport does not, each with its reason. */
const WORSE: Readonly<Record<string, string>> = {};

type Verdict = 'passed' | 'skipped' | 'failed';

/** Verdicts by section and title. */
async function verdicts(port: number): Promise<Map<string, Verdict>> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-h2spec-'));
  const report = join(folder, 'report.xml');
  // Its exit code says whether every case passed, which is what the report is read for.
  await new Promise<void>((done) => {
    execFile(BINARY, ['-h', '127.0.0.1', '-p', String(port), '-o', '2', '-j', report], () => done());
  });
  const xml = await readFile(report, 'latin1');
  await rm(folder, { recursive: true });
  const cases = xml.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*>([\s\S]*?)<\/testcase>/g);
  return new Map(
    [...cases].map(([, section, title, content]) => {
      const verdict = /<skipped/.test(content!) ? 'skipped' : /<(error|failure)/.test(content!) ? 'failed' : 'passed';
      return [`${section} ${title}`, verdict] as const;
    }),
  );
}

describe.skipIf(!found && !required)(`h2spec${skipReason}`, () => {
  const transport = new LeanTransport();
  const node = createServer({ settings: { maxConcurrentStreams: 100 } });
  let lean: Map<string, Verdict>;
  let peer: Map<string, Verdict>;

  beforeAll(async () => {
    const port = await transport.listen(
      {
        ...{ host: '127.0.0.1', port: 0, reusePort: false, maxReceiveBytes: 4_194_304, maxSendBytes: 4_194_304 },
        ...{ streamsMax: 100, stallMs: 60_000, budget: new HeldBytes(1e9) },
      },
      () => ({ message: () => {}, halfClosed: () => {}, overflowed: () => {}, stalled: () => {}, closed: () => {} }),
    );
    // A server that does what the lean one does with requests that are no gRPC calls: a short answer at their end.
    node.on('sessionError', () => undefined);
    node.on('stream', (stream) => {
      stream.on('error', () => undefined);
      stream.resume();
      stream.on('end', () => {
        if (stream.destroyed) return;
        stream.respond({ ':status': 415, 'content-type': 'text/plain' });
        stream.end('this port takes gRPC calls: content-type application/grpc\n');
      });
    });
    await new Promise<void>((done) => node.listen(0, '127.0.0.1', done));
    [lean, peer] = await Promise.all([verdicts(port), verdicts((node.address() as AddressInfo).port)]);
  }, 180_000);

  afterAll(async () => {
    await transport.close();
    node.close();
  });

  it('h2spec runs all of its cases', () => {
    expect(lean.size).toBeGreaterThan(140);
    expect([...lean.keys()]).toEqual([...peer.keys()]);
  });

  it('h2spec finds the lean transport no worse than node:http2, but for the cases that are named', () => {
    const worse = [...lean].filter(([title, verdict]) => verdict === 'failed' && peer.get(title) === 'passed');
    expect(worse.map(([title]) => title).sort()).toEqual(Object.keys(WORSE).sort());
  });

  it('h2spec finds it better in others', () => {
    const failed = (all: Map<string, Verdict>): number =>
      [...all.values()].filter((verdict) => verdict === 'failed').length;
    expect(failed(lean)).toBeLessThanOrEqual(failed(peer));
  });
});
