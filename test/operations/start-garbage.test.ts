import { describe, expect, it } from 'vitest';
import { collectStartGarbage } from '../../dist/src/serve/serve.js';

const GARBAGE_BYTES = 64 * 1024 * 1024;

/** Garbage that is not collected by allocating it: it is old by the time it is dropped. */
function makeGarbage(): void {
  const pieces = Array.from({ length: GARBAGE_BYTES / 8192 }, () => new Array(1024).fill(0));
  if (pieces.length === 0) throw new Error('nothing was made');
}

describe('the garbage of a start', () => {
  it('the memory of the garbage of a start is freed', () => {
    makeGarbage();
    const before = process.memoryUsage().heapTotal;
    collectStartGarbage();
    expect(before - process.memoryUsage().heapTotal).toBeGreaterThan(GARBAGE_BYTES / 2);
  });

  it('the garbage of a start leaves no collector to other code', () => {
    collectStartGarbage();
    expect('gc' in globalThis).toBe(false);
  });
});
