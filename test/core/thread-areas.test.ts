import { describe, expect, it } from 'vitest';
import { attachCore, createPoolMemory, loadCoreModule } from '../../dist/src/core/memory.js';
import { smallSizes } from './pool.ts';

const BYTES_PER_HASH = 8;

describe('the area of a thread', () => {
  it('the area of a thread ends behind its chain, before the area of the next one', () => {
    const memory = createPoolMemory({ ...smallSizes, endpoints: 1024 }, { module: loadCoreModule('debug') });
    const { call, sizes } = attachCore(memory, 1);
    const end = (call.hashesAddress() >>> 0) + BYTES_PER_HASH * (sizes.chainBlocks + 1);
    expect(end).toBeLessThanOrEqual(call.threadAddress(2) >>> 0);
  });
});
