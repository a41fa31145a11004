import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { U64Table } from '../../dist/src/kvevents/u64-table.js';

const u64 = fc.oneof(fc.bigInt({ min: 0n, max: 40n }), fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }));
const step = fc.record({ key: u64, deletes: fc.boolean(), mark: fc.nat(65_000), value: u64 });

describe('a table of 64-bit keys', () => {
  it('a table of 64-bit keys holds what a Map holds, whatever is added and deleted', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const table = new U64Table(2, 1_000);
        const model = new Map<bigint, { mark: number; value: bigint }>();
        for (const { key, deletes, mark, value } of steps) {
          const place = table.find(key);
          expect(place >= 0).toBe(model.has(key));
          if (deletes) {
            if (place >= 0) table.delete(place);
            model.delete(key);
            continue;
          }
          const at = place >= 0 ? place : table.add(key);
          table.setMark(at, mark);
          table.setValue(at, 1, value);
          model.set(key, { mark, value });
        }
        expect(table.size).toBe(model.size);
        for (const [key, { mark, value }] of model) {
          const place = table.find(key);
          expect([table.mark(place), table.value(place, 0), table.value(place, 1)]).toEqual([mark, 0n, value]);
        }
      }),
    );
  });

  it('a table of 64-bit keys grows with its entries up to its bound', () => {
    const table = new U64Table(1, 5_000);
    for (let key = 0n; key < 5_000n; key++) table.setValue(table.add(key << 32n), 0, key);
    expect(table.add(1n)).toBe(-1);
    for (let key = 0n; key < 5_000n; key++) expect(table.value(table.find(key << 32n), 0)).toBe(key);
    table.clear();
    expect(table.size).toBe(0);
    expect(table.find(7n << 32n)).toBe(-1);
  });
});
