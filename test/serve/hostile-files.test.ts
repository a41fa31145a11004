import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { utcDay } from '../../dist/src/operations/usage/daily-usage.js';
import { encodeKeptIndex } from '../../dist/src/replication/kept-index.js';
import { TEST_CERTIFICATE, TEST_KEY } from '../ingress/tls-material.ts';
import { runToEnd, Setting, startServe } from '../picker/serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'pointsman-hostile-'));
  cleanups.push(() => rmSync(made, { recursive: true, force: true }));
  mkdirSync(join(made, 'good'));
  for (const [name, text] of [
    ['tls.crt', TEST_CERTIFICATE],
    ['tls.key', TEST_KEY],
    ['token', 'secret'],
  ] as const) {
    writeFileSync(join(made, 'good', name), text);
  }
  return made;
}

async function setting(): Promise<Setting> {
  const made = await Setting.create([{ name: 'server', port: 20_000 }]);
  cleanups.push(() => made.remove());
  return made;
}

/** What stands in the place of a file, and how the picker calls it. */
const STRANGE: readonly (readonly [what: string, make: (path: string) => unknown])[] = [
  ['a pipe', (path) => execFileSync('mkfifo', [path])],
  ['a device', (path) => symlinkSync('/dev/zero', path)],
];

/** Flags that name a file at `path`, which is not there yet; `put` makes it. */
interface Place {
  readonly flags: (path: string) => readonly string[];
  readonly path: (folder: string) => string;
}

const file = (flags: (path: string) => readonly string[]): Place => ({ flags, path: (at) => join(at, 'file') });
const inFolder = (flag: string, name: string, ...others: readonly string[]): Place => ({
  flags: (path) => [`${flag}=${dirname(path)}`, ...others],
  path: (at) => join(at, name),
});

/** A file of the folder of good files that lies beside a strange one. */
const beside = (path: string, name: string) => join(dirname(path), 'good', name);

/** Files without which a picker does not start. */
const NEEDED: Readonly<Record<string, Place>> = {
  '--config-file': file((path) => [`--config-file=${path}`]),
  '--endpoints-file': file((path) => [`--endpoints-file=${path}`]),
  '--pools': file((path) => [`--pools=${path}`]),
  '--candidate-config': file((path) => [`--candidate-config=${path}`]),
  '--client-ca-file': file((path) => ['--secure-serving=true', `--client-ca-file=${path}`]),
  '--cert-path': inFolder('--cert-path', 'tls.crt', '--secure-serving=true'),
  '--metrics-client-ca-file': file((path) => [
    `--metrics-client-ca-file=${path}`,
    `--metrics-cert-dir=${beside(path, '')}`,
  ]),
  '--metrics-cert-dir': {
    flags: (path) => [`--metrics-cert-dir=${dirname(path)}`, `--metrics-auth-token-file=${beside(path, 'token')}`],
    path: (at) => join(at, 'tls.crt'),
  },
  '--metrics-auth-token-file': file((path) => [`--metrics-auth-token-file=${path}`]),
  'the seed in --state-dir': inFolder('--state-dir', 'hash-seed'),
  'the day in --usage-dir': inFolder('--usage-dir', `usage-${utcDay(Date.now())}.ndjson`),
};

describe('a picker whose file is no file', () => {
  const cases = Object.entries(NEEDED).flatMap(([name, place]) =>
    STRANGE.map(([what, make]) => [name, what, place, make] as const),
  );

  it.each(cases)('%s names %s: the picker says so and ends with 1', async (_name, what, { flags, path }, make) => {
    const [{ flags: usual }, at] = [await setting(), folder()];
    make(path(at));
    const { code, stderr } = await runToEnd(['serve', ...usual, ...flags(path(at))]);
    expect(stderr).toContain(`is ${what}, no regular file: name a file`);
    expect(code).toBe(1);
  });

  it.each(
    ['prefix-index.bin', 'learned.json'].flatMap((name) => STRANGE.map(([what, make]) => [name, what, make] as const)),
  )('%s in --state-dir is %s: the picker starts without it, and says so', async (name, what, make) => {
    const [{ flags }, at] = [await setting(), folder()];
    make(join(at, name));
    const serve = await startServe([...flags, `--state-dir=${at}`]);
    cleanups.push(() => serve.kill());
    expect(serve.log()).toContain(`is ${what}, no regular file`);
  });

  it('a kept index of millions of tiny segments: the picker starts without it, and says so', async () => {
    const [{ flags }, at] = [await setting(), folder()];
    const seed = 'f'.repeat(16);
    writeFileSync(join(at, 'hash-seed'), `${seed}\n`);
    const tiny = (segment: number) => ({
      ...{ segment, parent: 0, parentHash: undefined, age: 0, depth: 0, runs: [] },
      hashes: BigUint64Array.of(1n),
    });
    const segments = Array.from({ length: 1_000_000 }, (_, i) => tiny(i + 1));
    const head = { blockTokens: 64, seed, savedAtMs: Date.now(), endpoints: [] };
    writeFileSync(join(at, 'prefix-index.bin'), encodeKeptIndex({ ...head, segments }));
    const serve = await startServe([...flags, `--state-dir=${at}`]);
    cleanups.push(() => serve.kill());
    expect(serve.log()).toMatch(/starts with an empty prefix index: it has more than \d+ segments/);
  });
});
