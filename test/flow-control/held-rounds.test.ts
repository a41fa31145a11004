import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeldRounds, PART_MS, PARTS_MAX } from '../../dist/src/flow-control/held-rounds.js';

const WALL_MS = 1_800_000_000_000;
const times = fc.double({ min: WALL_MS, max: WALL_MS + 1e9, noNaN: true });

function roundsOf(replicas: number): readonly HeldRounds[] {
  return Array.from({ length: replicas }, (_, place) => {
    const rounds = new HeldRounds();
    rounds.take({ place, replicas });
    return rounds;
  });
}

describe('rounds of held turns', () => {
  const owners = (replicas: number, wallMs: number) =>
    roundsOf(replicas).filter((rounds) => rounds.mayLook(wallMs)).length;

  it('no two of up to eight replicas with equal clocks may let held turns go on at one time', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: PARTS_MAX }), times, (replicas, wallMs) => {
        expect(owners(replicas, wallMs)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('a part begins with a pause, in which a replica hears of the part before', () => {
    const inPart = [0, 11.9, 12, 24.9].map((ms) => owners(4, WALL_MS + PART_MS + ms));
    expect(inPart).toEqual([0, 0, 1, 1]);
  });

  it('every replica has its part within one round, and is told when', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 300 }), times, (replicas, wallMs) => {
        const roundMs = PART_MS * Math.min(replicas, PARTS_MAX);
        for (const rounds of roundsOf(replicas)) {
          const untilMs = rounds.untilNext(wallMs);
          expect(untilMs).toBeGreaterThan(0);
          expect(untilMs).toBeLessThanOrEqual(roundMs);
          expect(rounds.mayLook(wallMs + untilMs + 0.01)).toBe(true);
          expect(rounds.mayLook(wallMs + untilMs - 0.01)).toBe(false);
        }
      }),
    );
  });

  it('a part belongs to no more than its share of many replicas', () => {
    fc.assert(
      fc.property(fc.integer({ min: PARTS_MAX, max: 256 }), times, (replicas, wallMs) => {
        expect(owners(replicas, wallMs)).toBeLessThanOrEqual(Math.ceil(replicas / PARTS_MAX));
      }),
    );
  });

  it('a replica alone always has its part, and waits for none', () => {
    const rounds = new HeldRounds();
    fc.assert(
      fc.property(times, (wallMs) => {
        expect([rounds.mayLook(wallMs), rounds.untilNext(wallMs)]).toEqual([true, Number.POSITIVE_INFINITY]);
      }),
    );
  });

  it('the part of a replica that has died goes to those that are left', () => {
    const [first] = roundsOf(2);
    const partOfOther = WALL_MS + 2 * PART_MS - 1;
    expect(first!.mayLook(partOfOther)).toBe(false);
    expect(first!.take({ place: 0, replicas: 1 })).toBe(true);
    expect(first!.mayLook(partOfOther)).toBe(true);
    expect(first!.take({ place: 0, replicas: 1 })).toBe(false);
  });
});
