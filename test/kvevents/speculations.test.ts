import { describe, expect, it } from 'vitest';
import { Speculations } from '../../dist/src/kvevents/speculations.js';

const BOUND = 65_536;

describe('speculated blocks', () => {
  it('speculated blocks beyond the bound end before their time, the oldest first', () => {
    const ended: bigint[] = [];
    const speculations = new Speculations(
      60_000,
      () => 0,
      (_slot, _generation, hashes) => ended.push(...hashes),
    );
    for (let i = 0; i < BOUND; i++) speculations.add(1, 1, BigUint64Array.of(BigInt(i)));
    expect([speculations.size, ended]).toEqual([BOUND, []]);
    for (let i = 0; i < 3; i++) speculations.add(1, 1, BigUint64Array.of(BigInt(BOUND + i)));
    speculations.close();
    expect(ended).toEqual([0n, 1n, 2n]);
  });

  it('speculated blocks stay at most as many as the bound', () => {
    const speculations = new Speculations(
      60_000,
      () => 0,
      () => {},
    );
    for (let i = 0; i < BOUND + 5000; i++) speculations.add(1, 1, BigUint64Array.of(1n));
    expect(speculations.size).toBe(BOUND);
    speculations.close();
  });
});
