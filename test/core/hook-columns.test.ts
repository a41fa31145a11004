import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { endpointColumns, hookColumn } from '../../dist/src/core/hook-columns.js';
import { makePool, pickMax, plainRequest } from './pool.ts';

describe('the columns that hook plugins fill', () => {
  it('the columns that hook plugins fill lie one behind the other, a cell for each slot', () => {
    const { core } = makePool([pickMax], []);
    for (let column = 0; column < CORE.HOST_COLUMNS; column++) hookColumn(core, column).fill(column + 1);
    const first = hookColumn(core, 0);
    const all = new Float32Array(first.buffer, first.byteOffset, CORE.HOST_COLUMNS * core.sizes.endpoints);
    expect([...all]).toEqual(Array.from(all, (_, cell) => Math.floor(cell / core.sizes.endpoints) + 1));
  });

  it.each([-1, 0.5, Number.NaN, CORE.HOST_COLUMNS])(
    'the columns that hook plugins fill have none of number %d',
    (n) => {
      const { core } = makePool([pickMax], []);
      expect(() => hookColumn(core, n)).toThrow(
        `there are ${CORE.HOST_COLUMNS} host columns, none has the number ${n}`,
      );
    },
  );
});

describe('the columns that hook plugins read', () => {
  it('the columns that hook plugins read hold a cell for each slot, with what the endpoint reports and is charged', () => {
    const { core, decider } = makePool([pickMax], [{ waiting: 7 }, { waiting: 3, running: 5, kvUsage: 0.5 }]);
    const columns = endpointColumns(core);
    const { waiting, running, kvUsage } = columns.signals;
    expect(decider.decide({ ...plainRequest, promptTokens: 640, subset: [1] }).slots).toEqual([1]);
    const cells = [columns.known, columns.waiting, columns.running, columns.kvUsage, columns.inflight] as const;
    expect(cells.map(({ length }) => length)).toEqual(cells.map(() => core.sizes.endpoints));
    expect(cells.map((column) => [column[0], column[1]])).toEqual([
      [waiting, waiting | running | kvUsage],
      [7, 3],
      [0, 5],
      [0, 0.5],
      [0, 1],
    ]);
    expect([columns.inflightTokens[1], columns.prefillTokens[1]]).toEqual([640, 640]);
    expect([columns.inflightTokens.length, columns.matched.length]).toEqual([64, 64]);
  });
});
