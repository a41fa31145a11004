import { describe, expect, it } from 'vitest';
import { EndpointSpeeds } from '../../dist/src/adaptation/endpoint-speeds.js';
import { seededRandom } from '../../dist/src/runtime/seeded-random.js';

const live = (hardware: readonly string[]) => hardware.map((each, slot) => ({ slot, generation: 1, hardware: each }));

/** `times` requests on every slot that has a ratio of observed and expected time per token. */
function seen(speeds: EndpointSpeeds, ratios: Readonly<Record<number, number>>, times = 200, fromMs = 0): void {
  for (let i = 0; i < times; i++) {
    for (const [slot, ratio] of Object.entries(ratios)) {
      const nowMs = fromMs + i * 100;
      const time = { observedMs: 10 * ratio, expectedMs: 10, nowMs, durationMs: 1000, together: 1 };
      speeds.noteOutput(speeds.modelOf(Number(slot), 1)!, time);
    }
  }
}

/** `times` first outputs on every slot that have a ratio of observed and expected time. */
function seenFirst(speeds: EndpointSpeeds, ratios: Readonly<Record<number, number>>, times: number): void {
  for (let i = 0; i < times; i++) {
    for (const [slot, ratio] of Object.entries(ratios)) {
      const time = { observedMs: 200 * ratio, expectedMs: 200, nowMs: 20_000 + i * 100, durationMs: 1000, together: 1 };
      speeds.noteFirstOutput(speeds.modelOf(Number(slot), 1)!, time);
    }
  }
}

/**
 * Groups of eight requests that run together on an endpoint, and deviate together by a factor of 1.5.
 * @returns speeds behind each group
 */
function noisy(speeds: EndpointSpeeds, ratios: readonly number[]): number[][] {
  const random = seededRandom(1);
  return Array.from({ length: 100 }, (_, group) => {
    const shared = ratios.map((ratio) => ratio * 1.5 ** (random() < 0.5 ? -1 : 1));
    for (let i = 0; i < 8; i++) {
      for (const [slot, ratio] of shared.entries()) {
        const nowMs = 1_000 * group + 10 * i;
        const time = { observedMs: 10 * ratio, expectedMs: 10, nowMs, durationMs: 1_000, together: 8 };
        speeds.noteOutput(speeds.modelOf(slot, 1)!, time);
      }
    }
    return ratios.map((_, slot) => speeds.of(slot).output);
  });
}

describe('the speeds of endpoints', () => {
  it('the estimate of endpoint speeds lets a new endpoint begin as fast as the others of its hardware', () => {
    const speeds = new EndpointSpeeds();
    const before = live(['fast', 'fast', 'fast', 'slow', 'slow']);
    speeds.meet(before);
    seen(speeds, { 0: 0.8, 1: 0.8, 2: 0.8, 3: 1.6, 4: 1.6 });
    speeds.meet([
      ...before,
      { slot: 5, generation: 1, hardware: 'slow' },
      { slot: 6, generation: 1, hardware: 'fast' },
    ]);
    expect(speeds.of(5).output / speeds.of(6).output).toBeCloseTo(2, 0);
    expect(speeds.of(5).output).toBeCloseTo(speeds.of(4).output, 1);
    expect(speeds.of(6).output).toBeCloseTo(speeds.of(0).output, 1);
  });

  it('the estimate of endpoint speeds does not bring back an endpoint that has left for a late sample of it', () => {
    const speeds = new EndpointSpeeds();
    expect(speeds.modelOf(1, 1)).toBeDefined();
    speeds.meet(live(['', '']));
    speeds.meet(live(['']));
    expect(speeds.modelOf(1, 1)).toBeUndefined();
    expect([...speeds.models.keys()]).toEqual([0]);
  });

  it('the estimate of endpoint speeds takes an endpoint of unknown hardware to be like the pool', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '']));
    expect([speeds.of(0).output, speeds.of(1).output, speeds.of(7).output]).toEqual([1, 1, 1]);
  });

  it('the estimate of endpoint speeds knows within four requests of an endpoint that it has become three times slower', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '', '', '', '', '']));
    const others = { 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1 };
    seen(speeds, { 0: 1, ...others });
    seen(speeds, { 0: 3, ...others }, 3, 20_000);
    expect(speeds.of(0).output).toBe(1);
    seen(speeds, { 0: 3, ...others }, 1, 20_300);
    expect(speeds.of(0).output).toBeGreaterThan(1.9);
    seen(speeds, { 0: 1, ...others }, 4, 40_000);
    expect(speeds.of(0).output).toBeLessThan(1.2);
  });

  it('the estimate of endpoint speeds takes no endpoint for slower when all become slower', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '']));
    seen(speeds, { 0: 1, 1: 1, 2: 1, 3: 1 });
    seen(speeds, { 0: 2.5, 1: 2.5, 2: 2.5, 3: 2.5 }, 100, 20_000);
    expect([0, 1, 2, 3].map((slot) => speeds.of(slot).output)).toEqual([1, 1, 1, 1]);
  });

  it('the estimate of endpoint speeds takes for chance what requests that run together share on equal machines', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '']));
    const apart = noisy(speeds, [1, 1, 1, 1])
      .slice(20)
      .flat()
      .filter((speed) => speed !== 1);
    // Two usual deviations: one case of twenty.
    expect(apart.length / (80 * 4)).toBeLessThan(0.05);
  });

  it('the estimate of endpoint speeds knows an endpoint of half the speed in spite of such chance', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '', '', '', '', '']));
    const last = noisy(speeds, [2, 1, 1, 1, 1, 1, 1, 1]).at(-1)!;
    expect(last[0]! / last[1]!).toBeGreaterThan(1.5);
  });

  it('the estimate of endpoint speeds lets slowness fade while an endpoint is silent, and believes its next request', () => {
    const slow = () => {
      const speeds = new EndpointSpeeds();
      speeds.meet(live(['', '', '', '']));
      seen(speeds, { 0: 1, 1: 1, 2: 1, 3: 2.5 });
      return speeds;
    };
    const speeds = slow();
    const known = speeds.of(3).output;
    expect(known).toBeGreaterThan(1.5);
    // Silent from 20 s on: nothing fades for 11.5 s, and then two thirds in every 10 s.
    seen(speeds, { 0: 1, 1: 1, 2: 1 }, 80, 21_000);
    expect(speeds.of(3).output).toBeCloseTo(known, 1);
    seen(speeds, { 0: 1, 1: 1, 2: 1 }, 80, 37_000);
    expect(speeds.of(3).output).toBeLessThan(1.4);
    seen(speeds, { 0: 1, 1: 1, 2: 1, 3: 2.5 }, 1, 46_000);
    seen(speeds, { 0: 1, 1: 1, 2: 1 }, 8, 46_100);
    expect(speeds.of(3).output).toBeGreaterThan(1.5);
    const recovered = slow();
    seen(recovered, { 0: 1, 1: 1, 2: 1 }, 80, 37_000);
    seen(recovered, { 0: 1, 1: 1, 2: 1, 3: 1 }, 1, 46_000);
    seen(recovered, { 0: 1, 1: 1, 2: 1 }, 8, 46_100);
    expect(recovered.of(3).output).toBeLessThan(1.3);
  });

  it('EndpointSpeeds does not take a fast endpoint for slower because it is silent', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '']));
    seen(speeds, { 0: 1, 1: 1, 2: 1, 3: 0.5 });
    const before = speeds.of(3).output;
    seen(speeds, { 0: 1, 1: 1, 2: 1 }, 200, 200_000);
    expect(before).toBeLessThan(0.8);
    expect(speeds.of(3).output).toBeLessThan(0.8);
  });

  it('the estimate of endpoint speeds forgets who has left, and begins anew with who takes over the slot', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '']));
    seen(speeds, { 0: 1, 1: 1, 2: 2 });
    speeds.meet([...live(['', '']), { slot: 2, generation: 2, hardware: '' }]);
    expect(speeds.of(2).output).toBe(1);
    expect(speeds.modelOf(2, 1)).toBeUndefined();
    speeds.meet(live(['']));
    expect([...speeds.models.keys()]).toEqual([0]);
  });

  it('the estimate of endpoint speeds keeps the hardware when what was seen is thrown away', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['a', 'a', 'b']));
    seen(speeds, { 0: 1, 1: 1, 2: 2 });
    speeds.reset();
    expect(speeds.of(2).output).toBe(1);
    seen(speeds, { 0: 1, 1: 1, 2: 2 });
    expect(speeds.of(2).output).toBeGreaterThan(1.4);
  });

  it('the estimate of endpoint speeds takes first outputs to be as slow as the output until shown otherwise', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '', '', '', '', '']));
    const others = { 0: 1, 1: 1, 2: 1, 4: 1, 5: 1, 6: 1, 7: 1 };
    seen(speeds, { 3: 1.5, ...others });
    expect(speeds.of(3).firstOutput).toBe(speeds.of(3).output);
    seenFirst(speeds, { 3: 3, ...others }, 60);
    seen(speeds, { 3: 1.5, ...others }, 2, 26_000);
    expect(speeds.of(3).output).toBeLessThan(1.5);
    expect(speeds.of(3).firstOutput).toBeGreaterThan(2);
  });

  it('the estimate of endpoint speeds knows an endpoint slow to first outputs alone within four of them', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '', '', '', '', '']));
    const others = { 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1 };
    seen(speeds, { 0: 1, ...others });
    seenFirst(speeds, { 0: 1, ...others }, 30);
    seenFirst(speeds, { 0: 3, ...others }, 4);
    seen(speeds, { 0: 1, ...others }, 1, 24_000);
    expect(speeds.of(0)).toEqual({ output: 1, firstOutput: expect.closeTo(2, 0) });
    expect(speeds.of(1)).toEqual({ output: 1, firstOutput: 1 });
  });

  it('the estimate of endpoint speeds takes a change of the output for one of first outputs too', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['', '', '', '']));
    const others = { 1: 1, 2: 1, 3: 1 };
    seen(speeds, { 0: 1, ...others });
    seenFirst(speeds, { 0: 1, ...others }, 100);
    seen(speeds, { 0: 3, ...others }, 8, 20_000);
    expect(speeds.of(0).firstOutput).toBe(speeds.of(0).output);
    expect(speeds.of(0).output).toBeGreaterThan(1.8);
  });

  it('the estimate of endpoint speeds compares first outputs within the hardware', () => {
    const speeds = new EndpointSpeeds();
    speeds.meet(live(['a', 'a', 'a', 'b', 'b', 'b']));
    const equal = { 0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1 };
    seen(speeds, equal);
    seenFirst(speeds, { 0: 1, 1: 1, 2: 1, 3: 3, 4: 3, 5: 3 }, 60);
    seen(speeds, equal, 2, 26_000);
    expect([0, 3].map((slot) => speeds.inKind(slot))).toEqual([speeds.inKind(1), speeds.inKind(4)]);
    expect(speeds.inKind(3)).toEqual({ output: 1, firstOutput: 1 });
    seenFirst(speeds, { 0: 3, 1: 1, 2: 1 }, 60);
    seen(speeds, equal, 2, 33_000);
    expect(speeds.inKind(0).firstOutput).toBeGreaterThan(1.4);
  });
});
