import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  readPlainFile,
  readPlainFileSync,
  readPlainText,
  replaceFile,
  replaceFileSync,
} from '../../dist/src/runtime/plain-file.js';

const MODULE = fileURLToPath(new URL('../../dist/src/runtime/plain-file.js', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-plain-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (name: string) => join(folder, name);

describe('a file that is read', () => {
  const both = async (path: string, bytesMax: number) => {
    const later = await readPlainFile(path, bytesMax).then(String, (error: Error) => error.message);
    let now: string;
    try {
      now = readPlainFileSync(path, bytesMax).toString();
    } catch (error) {
      now = (error as Error).message;
    }
    expect(later).toBe(now);
    return now;
  };

  it('a regular file is read whole, behind a link too, up to its bound', async () => {
    writeFileSync(at('a'), '12345678');
    symlinkSync(at('a'), at('link'));
    expect([await both(at('a'), 8), await both(at('link'), 8)]).toEqual(['12345678', '12345678']);
    expect(await both(at('a'), 7)).toBe('has 8 bytes, and at most 7 are read: is it the right file?');
  });

  it('an empty file, and one that does not tell its size, are read', async () => {
    writeFileSync(at('empty'), '');
    expect(await both(at('empty'), 10)).toBe('');
    expect(readPlainText('/proc/self/status', 65_536)).toMatch(/^Name:/);
    expect(await both('/proc/cpuinfo', 10)).toContain('at most 10 are read');
  });

  it('a pipe without a writer is refused at once', async () => {
    execFileSync('mkfifo', [at('pipe')]);
    expect(await both(at('pipe'), 10)).toBe('is a pipe, no regular file: name a file');
  });

  it('a link to a device without an end is refused', async () => {
    symlinkSync('/dev/zero', at('zero'));
    expect(await both(at('zero'), 10)).toBe('is a device, no regular file: name a file');
  });

  it('a socket and a folder are refused', async () => {
    const server = createServer().listen(at('socket'));
    expect(await both(at('socket'), 10)).toBe('is a socket, no regular file: name a file');
    server.close();
    expect(await both(folder, 10)).toBe('is a folder: name a file');
  });
});

describe('a file that is replaced', () => {
  it.each([
    ['later', replaceFile],
    ['at once', async (path: string, content: string) => replaceFileSync(path, content)],
  ])('a link beside the file is not followed (%s)', async (_when, replace) => {
    writeFileSync(at('victim'), 'precious');
    symlinkSync(at('victim'), at('state.new'));
    await replace(at('state'), 'learned');
    expect([readFileSync(at('victim'), 'utf8'), readFileSync(at('state'), 'utf8')]).toEqual(['precious', 'learned']);
    expect(readdirSync(folder).sort()).toEqual(['state', 'state.new', 'victim']);
  });

  it('a file that cannot be replaced is named in the error, which has the same text when it comes again', async () => {
    const path = join(at('gone'), 'state');
    const failures = [
      replaceFile(path, 'x'),
      replaceFile(path, 'x'),
      Promise.resolve().then(() => replaceFileSync(path, 'x')),
    ].map((failure) => failure.catch((error: Error) => error.message));
    const text = `ENOENT: no such file or directory, open '${path}'`;
    expect(await Promise.all(failures)).toEqual([text, text, text]);
  });

  it('a file that many replace at once has the content of one of them, and nothing is left beside it', async () => {
    const contents = Array.from({ length: 8 }, (_, writer) => String(writer).repeat(300_000));
    await Promise.all(contents.map((content) => replaceFile(at('state'), content)));
    expect(contents).toContain(readFileSync(at('state'), 'utf8'));
    expect(readdirSync(folder)).toEqual(['state']);
  });

  it('what a killed process left beside the file is removed an hour later', async () => {
    const now = Date.now() / 1000;
    for (const [name, ageS] of [
      ['state.0123456789abcdef.new', 3_700],
      ['state.fedcba9876543210.new', 60],
      ['stateless.new', 3_700],
    ] as const) {
      writeFileSync(at(name), 'half');
      utimesSync(at(name), now, now - ageS);
    }
    await replaceFile(at('state'), 'whole');
    expect(readdirSync(folder).sort()).toEqual(['state', 'state.fedcba9876543210.new', 'stateless.new']);
  });

  const hasMounts = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

  it.skipIf(!hasMounts)('a full disk leaves the old file whole, and no part of the new one', async () => {
    const script = `
      const { replaceFile, replaceFileSync } = await import(${JSON.stringify(MODULE)});
      await replaceFile('/mnt/state', 'old');
      const codes = [];
      await replaceFile('/mnt/state', Buffer.alloc(1 << 20)).catch((error) => codes.push(error.code));
      try { replaceFileSync('/mnt/state', Buffer.alloc(1 << 20)); } catch (error) { codes.push(error.code); }
      const { readdirSync, readFileSync } = await import('node:fs');
      console.log(JSON.stringify([codes, readdirSync('/mnt'), readFileSync('/mnt/state', 'utf8')]));`;
    const command = `mount -t tmpfs -o size=64k none /mnt && exec "$0" --input-type=module -e "$1"`;
    const { stdout } = await promisify(execFile)('unshare', ['-rm', 'sh', '-c', command, process.execPath, script]);
    expect(JSON.parse(stdout)).toEqual([['ENOSPC', 'ENOSPC'], ['state'], 'old']);
  });

  it('a process that is killed while it writes leaves the old file whole', async () => {
    const old = 'o'.repeat(100);
    writeFileSync(at('state'), old);
    const script = `
      import { replaceFile } from ${JSON.stringify(MODULE)};
      setImmediate(() => process.kill(process.pid, 'SIGKILL'));
      await replaceFile(${JSON.stringify(at('state'))}, Buffer.alloc(256 << 20, 'n'));`;
    const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', script]);
    expect(signal).toBe('SIGKILL');
    expect(readFileSync(at('state'), 'utf8')).toBe(old);
  });

  it.each([
    ['later', 'replaceFile'],
    ['at once', 'replaceFileSync'],
  ])('a writer that is killed at any moment leaves the old content or the new one (%s)', async (_when, replace) => {
    const size = 4 << 20;
    const script = `
      import { ${replace} } from ${JSON.stringify(MODULE)};
      const contents = ['a', 'b'].map((letter) => Buffer.alloc(${size}, letter));
      for (let i = 0; ; i++) {
        await ${replace}(${JSON.stringify(at('state'))}, contents[i % 2]);
        if (i === 0) process.send('written');
      }`;
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      for (let round = 0; round < 6; round++) {
        const writer = spawn(process.execPath, ['--input-type=module', '-e', script], {
          stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
        });
        await once(writer, 'message');
        const ended = once(writer, 'close');
        // Moments of one write and the next, so that the signals fall into every part of it.
        setTimeout(() => writer.kill(signal), 1 + 3 * round);
        await ended;
        const content = readFileSync(at('state'));
        const first = content[0]!;
        expect(content.length).toBe(size);
        expect(content.equals(Buffer.alloc(size, first))).toBe(true);
      }
    }
  });
});
