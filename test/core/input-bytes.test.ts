import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputBytes } from '../../dist/src/core/input-bytes.js';
import { core } from './request-scanner-harness.ts';

const GUARD = 0xee;

describe('the input of a thread', () => {
  it('the input of a thread takes pieces of any length and alignment, and nothing behind them changes', () => {
    const input = new InputBytes(core);
    const at = core.call.inputAddress() >>> 0;
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1_000 }), fc.nat(7), (bytes, offset) => {
        const piece = new Uint8Array(new ArrayBuffer(offset + bytes.length), offset);
        piece.set(bytes);
        core.bytes.fill(GUARD, at, at + bytes.length + 8);
        input.write(piece);
        expect([...core.bytes.subarray(at, at + bytes.length)]).toEqual([...bytes]);
        expect([...core.bytes.subarray(at + bytes.length, at + bytes.length + 8)]).toEqual(Array(8).fill(GUARD));
      }),
      { numRuns: 300 },
    );
  });
});
