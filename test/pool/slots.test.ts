import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Endpoint } from '../../dist/src/contract/endpoint.js';
import { SlotTable } from '../../dist/src/pool/slots.js';
import { endpointOf } from './endpoints.js';

const pod = (name: string, port = 8000, labels = {}) => endpointOf(name, '10.0.0.1', port, labels);
const slots = (uses: readonly { slot: number }[]) => uses.map(({ slot }) => slot);

describe('SlotTable', () => {
  it('SlotTable gives new endpoints slots in order, each with generation 1', () => {
    const { added } = new SlotTable(4).apply([pod('a'), pod('b')]);
    expect(added.map(({ slot, generation, endpoint }) => [slot, generation, endpoint.name])).toEqual([
      [0, 1, 'a'],
      [1, 1, 'b'],
    ]);
  });

  it('SlotTable keeps the slot of an endpoint that stays, wherever it stands in the list', () => {
    const table = new SlotTable(4);
    table.apply([pod('a'), pod('b')]);
    expect(table.apply([pod('b'), pod('a')])).toEqual({ added: [], removed: [], changed: [], refused: [] });
    expect(table.find('default/b')?.slot).toBe(1);
  });

  it('SlotTable uses a freed slot again only after all others, with the next generation', () => {
    const table = new SlotTable(3);
    table.apply([pod('a')]);
    expect(slots(table.apply([]).removed)).toEqual([0]);
    const { added } = table.apply([pod('b'), pod('c'), pod('d')]);
    expect(added.map(({ slot, generation }) => [slot, generation])).toEqual([
      [1, 1],
      [2, 1],
      [0, 2],
    ]);
  });

  it('SlotTable names the endpoints that find no slot, and takes them in once there is room', () => {
    const table = new SlotTable(2);
    const { refused } = table.apply([pod('a'), pod('b'), pod('c')]);
    expect(refused.map(({ endpoint, reason }) => [endpoint.name, reason])).toEqual([['c', 'pool full']]);
    const next = table.apply([pod('b'), pod('c')]);
    expect(next.refused).toEqual([]);
    expect(next.added.map(({ slot, generation, endpoint }) => [slot, generation, endpoint.name])).toEqual([
      [0, 2, 'c'],
    ]);
  });

  it('SlotTable takes another port or address under the same id as another server', () => {
    const table = new SlotTable(2);
    table.apply([pod('a', 8000)]);
    const { added, removed, changed } = table.apply([pod('a', 8001)]);
    expect([slots(removed), slots(added), slots(changed)]).toEqual([[0], [1], []]);
  });

  it('SlotTable says that labels changed, without a new slot', () => {
    const table = new SlotTable(2);
    table.apply([pod('a', 8000, { role: 'decode' })]);
    const { added, changed } = table.apply([pod('a', 8000, { role: 'prefill' })]);
    expect(added).toEqual([]);
    expect(changed.map(({ slot, generation, endpoint }) => [slot, generation, endpoint.labels.role])).toEqual([
      [0, 1, 'prefill'],
    ]);
  });

  it('SlotTable refuses a second endpoint of the same id', () => {
    const { added, refused } = new SlotTable(4).apply([pod('a', 1), pod('a', 2)]);
    expect(added.map(({ endpoint }) => endpoint.port)).toEqual([1]);
    expect(refused.map(({ reason }) => reason)).toEqual(['duplicate id']);
  });

  it('SlotTable refuses a capacity below 1', () => {
    expect(() => new SlotTable(0)).toThrow('capacity');
  });

  it('SlotTable never gives two endpoints one slot, nor one slot and generation twice, whatever comes and goes', () => {
    const lists = fc.array(fc.uniqueArray(fc.nat(9), { maxLength: 10 }), { maxLength: 30 });
    fc.assert(
      fc.property(lists, fc.integer({ min: 1, max: 6 }), (rounds, capacity) => {
        const table = new SlotTable(capacity);
        const given = new Set<string>();
        const model = new Map<number, Endpoint>();
        for (const round of rounds) {
          const endpoints = round.map((n) => pod(`${n}`));
          const { added, removed, refused } = table.apply(endpoints);
          for (const { slot } of removed) expect(model.delete(slot)).toBe(true);
          for (const { slot, generation, endpoint } of added) {
            expect(model.has(slot)).toBe(false);
            expect(given.has(`${slot}/${generation}`)).toBe(false);
            given.add(`${slot}/${generation}`);
            model.set(slot, endpoint);
          }
          expect(model.size).toBe(Math.min(capacity, endpoints.length));
          expect(refused.length).toBe(endpoints.length - model.size);
          expect(new Set(table.uses().map(({ slot }) => slot))).toEqual(new Set(model.keys()));
        }
      }),
      { numRuns: 100 },
    );
  });
});
