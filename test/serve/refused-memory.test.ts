import { execFile } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { checkAddressSpace } from '../../dist/src/serve/address-space.js';
import { PROGRAM, Setting } from '../picker/serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const MIB_BYTES = 2 ** 20;

/** Runs the program under a limit on its address space until it ends. */
async function endUnder(limitMib: number, flags: readonly string[]) {
  const setting = await Setting.create([{ name: 'server', port: 20_000 }]);
  cleanups.push(() => setting.remove());
  const command = `ulimit -v ${limitMib * 1024}; exec "$0" "$@"`;
  const argv = ['-c', command, process.execPath, PROGRAM, 'serve', ...setting.flags, ...flags];
  return new Promise<{ readonly code: unknown; readonly stderr: string }>((done) => {
    execFile('/bin/sh', argv, { timeout: 60_000 }, (error, _stdout, stderr) => {
      done({ code: error === null ? 0 : error.code, stderr });
    });
  });
}

describe.skipIf(process.platform !== 'linux')('a picker whose memory cannot be had', () => {
  it('a picker whose index finds no address space names the size and the flags, and ends with 1', async () => {
    const { code, stderr } = await endUnder(3_000, ['--index-blocks=8000000', '--max-endpoints=1024']);
    expect(stderr).toMatch(
      /^pointsman: cannot reserve \d{3,4} MiB \(\d+ bytes\) of memory for the pool: lower --index/m,
    );
    expect(stderr).toContain('--index-blocks (8000000; indexBlocks of a pool of --pools), --max-endpoints (1024)');
    expect(code).toBe(1);
  });

  it('a picker whose index does not fit into one memory names the bound and the flags, and ends with 1', async () => {
    const { code, stderr } = await endUnder(8_000, ['--index-blocks=64000000']);
    expect(stderr).toMatch(
      /^pointsman: the memory of the pool would need more than the 4 GiB that one can have: lower --index-blocks \(64000000;/m,
    );
    expect(code).toBe(1);
  });

  it('a picker whose threads do not fit into its address space names --shards, and ends with 1', async () => {
    const { code, stderr } = await endUnder(4_000, ['--shards=16']);
    expect(stderr).toMatch(
      /^pointsman: --shards=16 reserves 10240 MiB of address space, and of the limit of 4000 MiB/m,
    );
    expect(stderr).toContain('lower --shards, or raise the limit to ');
    expect(code).toBe(1);
  });

  it('threads fit into an address space that has room for them, and into one without a limit', () => {
    const space = { limit: 4_000 * MIB_BYTES, used: 1_200 * MIB_BYTES };
    expect(() => checkAddressSpace(4, space)).not.toThrow();
    expect(() => checkAddressSpace(5, space)).toThrow('lower --shards, or raise the limit to 4400 MiB and more');
    expect(() => checkAddressSpace(1, { ...space, used: 3_900 * MIB_BYTES })).toThrow(
      '100 MiB are left: raise the limit',
    );
    expect(() => checkAddressSpace(64, undefined)).not.toThrow();
  });
});
