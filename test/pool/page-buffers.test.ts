import { describe, expect, it } from 'vitest';
import { PageBuffers } from '../../dist/src/pool/sources/page-buffers.js';

describe('PageBuffers', () => {
  it('PageBuffers hands out again a buffer that was returned', () => {
    const buffers = new PageBuffers();
    const buffer = buffers.take();
    buffers.give(buffer);
    expect(buffers.take()).toBe(buffer);
  });

  it('PageBuffers grows a buffer by doubling and keeps what is in it', () => {
    const buffers = new PageBuffers();
    const buffer = buffers.take();
    buffer.set([1, 2, 3]);
    const larger = buffers.grow(buffer, 3, 200_000);
    expect([larger.length, [...larger.subarray(0, 4)]]).toEqual([262_144, [1, 2, 3, 0]]);
    expect(buffers.take()).toBe(buffer);
  });

  it('PageBuffers keeps at most 16 spare buffers and none above 1 MiB', () => {
    const buffers = new PageBuffers();
    buffers.give(new Uint8Array(1024 * 1024 + 1));
    const given = Array.from({ length: 20 }, () => new Uint8Array(64 * 1024));
    for (const buffer of given) buffers.give(buffer);
    const taken = Array.from({ length: 20 }, () => buffers.take());
    expect(taken.filter((buffer) => given.some((own) => own === buffer))).toHaveLength(16);
  });
});
