import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { costOf, fitted, type Measured, sizingText } from '../../scripts/sizing-formula.ts';

const SHAPES = [
  { promptBytes: 4_096, endpoints: 8, chunks: 1 },
  { promptBytes: 400_000, endpoints: 8, chunks: 1 },
  { promptBytes: 4_096, endpoints: 512, chunks: 1 },
  { promptBytes: 4_096, endpoints: 8, chunks: 100 },
  { promptBytes: 65_536, endpoints: 64, chunks: 20 },
];
const cost = fc.double({ min: 0.01, max: 50, noNaN: true });
const rowsOf = (costs: Parameters<typeof costOf>[0]): Measured[] =>
  SHAPES.map((shape) => ({ shape, cpuUs: costOf(costs, shape), residentBytes: 1e8 }));

describe('the sizing formula', () => {
  it('finds the costs that rows were made from', () => {
    fc.assert(
      fc.property(cost, cost, cost, cost, (request, perKiB, perEndpoint, perChunk) => {
        const made = { request: request + 20, perKiB, perEndpoint, perChunk };
        const found = fitted(rowsOf(made));
        for (const shape of SHAPES) expect(costOf(found, shape) / costOf(made, shape)).toBeCloseTo(1, 4);
      }),
    );
  });

  it('has no cost below 0', () => {
    const noisy = rowsOf({ request: 30, perKiB: 1, perEndpoint: -0.02, perChunk: 3 });
    const found = fitted(noisy);
    expect(found.perEndpoint).toBe(0);
    expect(Math.min(...Object.values(found))).toBeGreaterThanOrEqual(0);
  });

  it('plans the cores of a traffic at six tenths of their time', () => {
    const text = sizingText(
      rowsOf({ request: 100, perKiB: 0, perEndpoint: 0, perChunk: 0 }),
      fitted(rowsOf({ request: 100, perKiB: 0, perEndpoint: 0, perChunk: 0 })),
      1.2e8,
      'a machine',
    );
    expect(text).toContain('| 1,000 | 4 KiB | 8 | 1 | 0.1 | 1 |');
    expect(text).toContain('| 5,000 | 4 KiB | 512 | 200 | 0.5 | 1 |');
  });
});
