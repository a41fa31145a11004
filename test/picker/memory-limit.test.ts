import { afterEach, describe, expect, it, vi } from 'vitest';
import { checkMemoryLimit } from '../../dist/src/picker/memory-limit.js';
import { Setting, startPicker } from './serving.ts';

const MIB = 2 ** 20;
const BOUNDS = { shards: 3, indexBlocks: 1_048_576, maxBufferedBytes: 512 * MIB };
/** The program takes 210 MB = 201 MiB with three shards. */
const NEED = { bounds: BOUNDS, poolBytes: 600 * MIB, indexBytes: 70 * MIB };

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startUnder(limitMib: number, ...flags: string[]) {
  vi.spyOn(process, 'constrainedMemory').mockReturnValue(limitMib * MIB);
  const setting = await Setting.create([{ name: 'server', port: 20_000 }]);
  cleanups.push(() => setting.remove());
  return startPicker([...setting.flags, ...flags]);
}

describe('the limit on the memory of a picker', () => {
  it('the limit refuses an index that cannot become full, with its size, the limit and the flag', () => {
    expect(() => checkMemoryLimit(NEED, 270 * MIB)).toThrow(
      'the picker takes 271 MiB when its index is full: 201 MiB for the program (--shards=3) and 70 MiB for the ' +
        'index (--index-blocks=1048576; indexBlocks of a pool of --pools), more than the 270 MiB that its cgroup ' +
        'allows (memory.max; limits.memory of a container): lower --index-blocks, or raise the limit',
    );
  });

  it('the limit below the program itself names --shards, or no flag where there is one shard', () => {
    const allowed = 'allows (memory.max; limits.memory of a container)';
    expect(() => checkMemoryLimit(NEED, 150 * MIB)).toThrow(`${allowed}: lower --shards, or raise the limit`);
    const one = { ...NEED, bounds: { ...BOUNDS, shards: 1 } };
    expect(() => checkMemoryLimit(one, 100 * MIB)).toThrow(`${allowed}: raise the limit`);
  });

  it('the limit is named with the bounds and their flags where they do not fit under it together', () => {
    expect(checkMemoryLimit(NEED, 271 * MIB)).toBe(
      'at its bounds the picker takes 1313 MiB: 201 MiB for the program (--shards=3), 600 MiB for the pool and ' +
        '512 MiB for request bodies, more than the 271 MiB that its cgroup allows (memory.max; limits.memory of a ' +
        'container); the system would kill it. Lower --max-buffered-bytes, --max-streams, --index-blocks or ' +
        '--max-endpoints, or raise the limit',
    );
    expect(checkMemoryLimit(NEED, 1_313 * MIB)).toBeUndefined();
    expect(checkMemoryLimit(NEED, undefined)).toBeUndefined();
  });

  it('the limit ends the start of a picker whose index is larger, before anything listens', async () => {
    await expect(startUnder(512, '--index-blocks=8000000')).rejects.toThrow(
      /MiB for the index \(--index-blocks=8000000; .* more than the 512 MiB that its cgroup allows/,
    );
  });

  it('the limit that holds the index lets the picker start', async () => {
    const { picker } = await startUnder(512);
    cleanups.push(() => picker.stop(0));
    expect(picker.shards.listening).toBe(1);
  });
});
