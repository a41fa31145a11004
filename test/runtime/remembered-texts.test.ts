import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RememberedTexts } from '../../dist/src/runtime/remembered-texts.js';

/** Bytes that share lengths, first and last bytes: they meet in the same places. */
const alike = fc
  .array(fc.constantFrom(0x61, 0x62, 0xc3, 0xa9, 0xe9, 0xff), { maxLength: 4 })
  .map((bytes) => Buffer.from(bytes));
const any = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }).map((text) => Buffer.from(text)),
  alike,
);

describe('remembered texts', () => {
  it('remembered texts are read as Buffer.toString reads them, whatever was read before', () => {
    fc.assert(
      fc.property(fc.array(any, { maxLength: 200 }), (all) => {
        const texts = new RememberedTexts();
        for (const bytes of all) {
          const around = Buffer.concat([Buffer.from('<'), bytes, Buffer.from('>')]);
          expect(texts.read(around, 1, 1 + bytes.length)).toBe(bytes.toString('utf8'));
        }
      }),
    );
  });
});
