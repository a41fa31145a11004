import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isLoopback, localPages, TokenFile } from '../../dist/src/operations/telemetry/page-access.js';

const reader = (path: string, isLocal: boolean, token?: string) => ({ path, verb: 'get' as const, isLocal, token });

describe('pages without authentication', () => {
  it('/metrics is open, and every other page answers this machine alone', () => {
    const status = (path: string, isLocal: boolean) => localPages(reader(path, isLocal)).status;
    expect([status('/metrics', false), status('/metrics', true)]).toEqual([200, 200]);
    expect([status('/debug/decisions', true), status('/none', true)]).toEqual([200, 200]);
    expect([status('/debug/decisions', false), status('/none', false), status('/', false)]).toEqual([403, 403, 403]);
  });

  it('the addresses of this machine are those of the loopback network, also as an IPv6 socket shows them', () => {
    expect(['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'].map(isLoopback)).toEqual([true, true, true, true]);
    const others = ['10.0.0.1', '::ffff:10.0.0.1', '::', '1127.0.0.1', 'fe80::127.0.0.1', '', undefined];
    expect(others.filter(isLoopback)).toEqual([]);
  });
});

describe('--metrics-auth-token-file', () => {
  let folder: string;
  let file: string;
  const problems: string[] = [];

  beforeEach(async () => {
    problems.length = 0;
    folder = await mkdtemp(join(tmpdir(), 'pointsman-token-'));
    file = join(folder, 'token');
    await writeFile(file, 'first\n');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const open = () => new TokenFile(file, (problem) => problems.push(problem));
  const status = async (access: TokenFile, token?: string) =>
    (await access.mayRead(reader('/metrics', true, token))).status;

  it('every page needs the token, from this machine too', async () => {
    const access = open();
    const asked = await Promise.all([undefined, 'other', 'first', 'firs', 'first2'].map((t) => status(access, t)));
    expect(asked).toEqual([401, 403, 200, 403, 403]);
  });

  it('a changed file is followed, written in place or renamed', async () => {
    const access = open();
    await writeFile(file, 'other');
    expect([await status(access, 'first'), await status(access, 'other')]).toEqual([403, 200]);
    await writeFile(`${file}.next`, 'third');
    await rename(`${file}.next`, file);
    expect([await status(access, 'other'), await status(access, 'third')]).toEqual([403, 200]);
  });

  it('a file that has gone or is empty leaves the last token, and is reported once', async () => {
    const access = open();
    await rm(file);
    expect([await status(access, 'first'), await status(access, 'first')]).toEqual([200, 200]);
    expect(problems).toEqual([expect.stringContaining('the token stays as it was')]);
    await writeFile(file, '\n');
    expect([await status(access, 'first'), await status(access, '')]).toEqual([200, 403]);
    await writeFile(file, 'again');
    expect([await status(access, 'first'), await status(access, 'again')]).toEqual([403, 200]);
  });

  it.each([
    ['an empty file', ' \n', 'is empty: write the token into it'],
    ['a file of two tokens', 'a\nb\n', 'has blanks or line breaks in its token: remove them'],
  ])('%s is an error at the start that names the flag', async (_, text, problem) => {
    await writeFile(file, text);
    expect(open).toThrow(`--metrics-auth-token-file: ${file} ${problem}`);
  });

  it('a missing file is an error at the start that names the flag', async () => {
    await rm(file);
    expect(open).toThrow(`--metrics-auth-token-file: ${file} does not exist: create it or correct the path`);
  });
});
