import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { needOfPool } from '../../dist/src/picker/pool-memory.js';
import { checkAddressSpace } from '../../dist/src/serve/address-space.js';
import { boundsOf } from '../../dist/src/serve/bounds-flags.js';
import { parseServeFlags, type ServeFlags } from '../../dist/src/serve/flags.js';
import { PROGRAM, Setting } from '../picker/serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const MIB_BYTES = 2 ** 20;
const BOUNDS = boundsOf(parseServeFlags(['--endpoints-file=servers.yaml'], {}) as ServeFlags);

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
      /^pointsman: --shards=1 reserves 640 MiB of address space, the pool \d{4} MiB and the rest 128 MiB,/m,
    );
    expect(stderr).toContain('lower --index-blocks (8000000; indexBlocks of a pool of --pools), --max-streams (10000)');
    expect(code).toBe(1);
  });

  it('a picker whose index does not fit into one memory names the bound and the flags, and ends with 1', async () => {
    const { code, stderr } = await endUnder(8_000, ['--index-blocks=64000000']);
    expect(stderr).toMatch(
      /^pointsman: the memory of the pool would need more than the 4 GiB that one can have: lower --index-blocks \(64000000;/m,
    );
    expect(code).toBe(1);
  });

  it('a picker with the default bounds names --max-streams first, which then makes it fit', async () => {
    const { code, stderr } = await endUnder(2_500, []);
    expect(stderr).toMatch(/are left: lower --max-streams \(10000\), .*, or raise the limit to \d{4} MiB and more$/m);
    expect(code).toBe(1);
    const fitting = await endUnder(2_500, ['--max-streams=1000', '--config-file=/nowhere/at-all.yaml']);
    expect(fitting.stderr).toMatch(/^pointsman: \/nowhere\/at-all.yaml: the configuration does not exist/m);
  });

  it('a pool that the system refuses names its size and the flags that lower it', () => {
    const bounds = { ...BOUNDS, indexBlocks: 2 ** 28 };
    expect(() => needOfPool(bounds)).toThrow('more than the 4 GiB that one can have: lower --index-blocks (268435456;');
    expect(needOfPool(BOUNDS).lowering).toMatch(/^lower --max-streams \(10000\), --index-blocks \(1048576;/);
    expect(needOfPool({ ...BOUNDS, shards: 4 }).lowering).toMatch(/ or --shards \(4\)$/);
  });

  it('a picker whose further pools do not fit names their number, sum and largest, and ends with 1', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pointsman-pools-'));
    cleanups.push(() => rm(folder, { recursive: true }));
    const file = join(folder, 'pools.yaml');
    const pools = Array.from({ length: 12 }, (_, index) => ({ name: `p${index}`, endpointsFile: 'none.yaml' }));
    await writeFile(file, JSON.stringify({ pools: [...pools, { ...pools[0], name: 'large', maxEndpoints: 2_048 }] }));
    const { code, stderr } = await endUnder(4_000, [`--pools=${file}`]);
    expect(stderr).toMatch(/^pointsman: --shards=1 reserves .* the pools of --pools \(13\) \d{4} MiB/m);
    expect(stderr).toMatch(
      / \(the largest, large, \d+ MiB with maxEndpoints 2048 and indexBlocks 262144\) and the rest/,
    );
    expect(stderr).toMatch(/: lower --max-streams \(10000\), .*, serve fewer pools, or raise the limit to \d{4,5} MiB/);
    expect(code).toBe(1);
    // What the message asks for is enough: the start goes on, to the file of endpoints that does not exist.
    const enough = Number(/raise the limit to (\d+) MiB/.exec(stderr)![1]) + 1;
    const fitting = await endUnder(enough, [`--pools=${file}`]);
    expect(fitting.stderr).not.toContain('address space');
    expect(fitting.stderr).toContain('none.yaml');
  });

  it('a picker whose threads do not fit into its address space names --shards, and ends with 1', async () => {
    const { code, stderr } = await endUnder(4_000, ['--shards=16']);
    expect(stderr).toMatch(
      /^pointsman: --shards=16 reserves 10240 MiB of address space, the pool \d+ MiB and the rest/m,
    );
    expect(stderr).toContain('lower --shards, or raise the limit to ');
    expect(code).toBe(1);
  });

  it('a start fits into an address space that has room for its threads, its pool and the rest', () => {
    const space = { limit: 4_000 * MIB_BYTES, used: 1_200 * MIB_BYTES };
    const pool = {
      poolBytes: 700 * MIB_BYTES,
      leastBytes: 8 * MIB_BYTES,
      lowering: 'lower --max-streams (10000)',
      further: [],
    };
    expect(() => checkAddressSpace({ ...pool, shards: 3 }, space)).not.toThrow();
    expect(() => checkAddressSpace({ ...pool, shards: 4 }, space)).toThrow(
      'left: lower --max-streams (10000), or raise the limit to 4588 MiB and more',
    );
    expect(() => checkAddressSpace({ ...pool, shards: 5 }, space)).toThrow('left: lower --shards, or raise the limit');
    expect(() => checkAddressSpace({ ...pool, shards: 1 }, { ...space, used: 3_900 * MIB_BYTES })).toThrow(
      '100 MiB are left: raise the limit',
    );
  });
});
