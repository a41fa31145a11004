import { describe, expect, it } from 'vitest';
import { Guard, type Transition } from '../../dist/src/adaptation/guard.js';
import type { Evidence } from '../../dist/src/adaptation/guard-rules.js';
import { goodEvidence, row, usual } from './samples.ts';

interface Course {
  readonly guard: Guard;
  readonly transitions: readonly Transition[];
  /** Requests by arm, and the sum of their ln(cost) beyond what they would have cost with the configured weights. */
  readonly requests: { static: number; learned: number };
  readonly lost: number;
}

/**
 * Lets a guard live through `minutes` with a request every 100 ms, whose cost is 1 with the configured weights and
 * `gain` with the learned ones, each with much noise.
 */
function live(
  gain: number | ((minute: number) => number),
  minutes: number,
  options: {
    evidence?: (minute: number) => Partial<Evidence>;
    guard?: Guard;
    seed?: number;
    fromMs?: number;
    /** Standard deviation, about, of what all requests of ten seconds have in common. */
    weather?: number;
    /** Share of the requests that meet their targets, by arm; absent = they have none. */
    goodput?: Record<'static' | 'learned', number>;
  } = {},
): Course {
  const random = row(options.seed ?? 7);
  const guard = options.guard ?? new Guard('auto', usual.guard, row(11));
  const transitions: Transition[] = [];
  const requests = { static: 0, learned: 0 };
  let lost = 0;
  let weather = 1;
  const from = options.fromMs ?? 0;
  for (let nowMs = from; nowMs < from + minutes * 60_000; nowMs += 500) {
    const minute = (nowMs - from) / 60_000;
    const { transition } = guard.tick(nowMs, () => ({ ...goodEvidence, ...options.evidence?.(minute) }));
    if (transition !== undefined) transitions.push(transition);
    if (nowMs % 10_000 === 0) weather = Math.exp((options.weather ?? 0) * (random() + random() + random() - 1.5) * 2);
    const factor = guard.arm === 'learned' ? (typeof gain === 'number' ? gain : gain(minute)) : 1;
    for (let i = 0; i < 5; i++) {
      requests[guard.arm]++;
      lost += factor - 1;
      const cost = costing(weather * factor * Math.exp(random() - 0.5));
      const met = options.goodput === undefined ? {} : { targetsMet: random() < options.goodput[guard.arm] };
      guard.note(guard.epoch, nowMs, { ...cost, ...met });
    }
  }
  return { guard, transitions, requests, lost: lost / (requests.static + requests.learned) };
}

const costing = (cost: number) => ({ cost, reference: 1, promptTokens: 1000 });

const path = ({ transitions }: Course) => transitions.map(({ to }) => to);

describe('the guard', () => {
  it.each(['off', 'shadow'] as const)('the guard never lets learned costs decide in mode %s', (mode) => {
    const course = live(0.5, 60, { guard: new Guard(mode, usual.guard, row(1)) });
    expect(course.requests.learned).toBe(0);
    expect(course.guard.state).toBe('shadow');
  });

  it('the guard always lets them decide in mode always', () => {
    const course = live(2, 10, { guard: new Guard('always', usual.guard, row(1)) });
    expect(course.requests.static).toBe(0);
  });

  it('the guard switches learned costs on that cost more, while more requests meet their targets', () => {
    const dearer = live(1.1, 40, { goodput: { static: 0.7, learned: 0.85 } });
    expect(dearer.guard.measure).toBe('goodput');
    expect(dearer.guard.state).toBe('active');
    expect(live(1.1, 40).guard.state).not.toBe('active');
  });

  it('the guard takes learned costs back that cost less, while fewer requests meet their targets', () => {
    const cheaper = live(0.9, 40, { goodput: { static: 0.9, learned: 0.6 } });
    expect(path(cheaper)).toContain('fallback');
    expect(cheaper.transitions.find(({ to }) => to === 'fallback')!.reason).toMatch(
      /^\d+ % fewer requests met their latency targets than with the configured weights$/,
    );
    expect(path(live(0.9, 40))).not.toContain('fallback');
  });

  it('the guard stays in shadow until there are samples enough and the predictions rank them', () => {
    const early = live(0.8, 60, { evidence: () => ({ samples: usual.guard.samples - 1 }) });
    const blind = live(0.8, 60, { evidence: () => ({ correlation: 0.3 }) });
    const unknown = live(0.8, 60, { evidence: () => ({ correlation: undefined }) });
    for (const { guard, requests } of [early, blind, unknown]) {
      expect(guard.state).toBe('shadow');
      expect(requests.learned).toBe(0);
    }
  });

  it.each([
    ['four times as long as a long request takes', 15_000, 60_000],
    ['five epochs at most', 600_000, 100_000],
  ])('the guard learns before its first try %s', (_what, durationMs, wantedMs) => {
    const guard = new Guard('auto', usual.guard, row(1));
    const seen: [string, number][] = [];
    for (let nowMs = 0; nowMs < 150_000; nowMs += 500) {
      // Results of the configured weights arrive in time: these requests end at once.
      const { transition } = guard.tick(nowMs, () => ({
        ...goodEvidence,
        durationMs: nowMs < 50_000 ? 0 : durationMs,
        learningMs: nowMs < 50_000 ? -1 : nowMs,
      }));
      if (transition !== undefined) seen.push([transition.to, nowMs]);
      for (let i = 0; i < 5; i++) guard.note(guard.epoch, nowMs, costing(1));
      if (nowMs === 50_000) expect(guard.why(nowMs)).toMatch(/^learned for 50 of \d+ s/);
    }
    expect(seen[0]).toEqual(['canary', wantedMs]);
  });

  it('the guard makes no try before the configured weights have a result by which it could be stopped', () => {
    const guard = new Guard('auto', usual.guard, row(1));
    for (let nowMs = 0; nowMs < 300_000 && guard.arm === 'static'; nowMs += 500) {
      guard.tick(nowMs, () => goodEvidence);
      if (guard.record('static').epochs === 0) {
        expect(guard.arm).toBe('static');
        expect(guard.why(nowMs)).toMatch(/^no epoch of the configured weights has a result yet/);
      }
      for (let i = 0; i < 5; i++) guard.note(guard.epoch, nowMs, costing(1));
    }
    expect([guard.arm, guard.record('static').epochs]).toEqual(['learned', 1]);
  });

  it('the guard goes by way of the canary to nearly always when learned costs are better', () => {
    const course = live(0.85, 120);
    expect(path(course)).toEqual(['canary', 'active']);
    const late = live(0.85, 60, { guard: course.guard, fromMs: 7_200_000 });
    expect(late.requests.learned / (late.requests.static + late.requests.learned)).toBeGreaterThan(0.85);
  });

  it('the guard trusts learned costs that are a tenth better within five minutes of ten requests a second', () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
      const course = live(0.9, 5, { seed, weather: 0.05, guard: new Guard('auto', usual.guard, row(seed)) });
      expect(path(course)).toEqual(['canary', 'active']);
    }
  });

  it('the guard trusts learned costs that are a seventh better within three minutes of ten requests a second', () => {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
      const course = live(0.86, 3, { seed, weather: 0.05, guard: new Guard('auto', usual.guard, row(seed)) });
      expect(path(course)).toEqual(['canary', 'active']);
    }
  });

  it.each([1.02, 1.1, 1.3, 1.6, 3, 10])(
    'the guard loses at most the budget in half an hour when they cost %s times as much',
    (gain) => {
      for (const [seed, weather] of [0, 0.05, 0.1, 0.2].flatMap((each) =>
        [1, 2, 3, 4, 5].map((seed) => [seed, each] as const),
      )) {
        const course = live(gain, 30, { seed, weather, guard: new Guard('auto', usual.guard, row(seed)) });
        expect(course.lost).toBeLessThan(0.05);
        if (gain > 1.1) expect(path(course)).not.toContain('active');
      }
    },
  );

  it('the guard ends an epoch at once that costs far more than the one before', () => {
    const course = live(4, 3);
    // The probe of twenty seconds is not even over when it is taken back.
    expect(path(course)).toEqual(['canary', 'fallback']);
    expect(course.requests.learned).toBeLessThan(100);
  });

  it('the guard counts what a try that ended at once has cost, and makes the next when it is paid for', () => {
    for (const gain of [3, 6, 10]) {
      const course = live(gain, 3);
      expect(path(course)).toEqual(['canary', 'fallback']);
      // In shares of the budget: what the try has cost, in epochs of 20 s with ten requests a second.
      const epochs = (course.requests.static + course.requests.learned) / 200;
      const spent = (course.requests.learned / 200) * (gain - 1);
      expect(course.guard.risked).toBeGreaterThan(spent / (usual.guard.budget * (epochs + 5)));
      // The pause is over after five minutes. Ten minutes pay for a try at three times the cost, and not for one at six
      // times.
      const later = live(gain, 7, { guard: course.guard, fromMs: 180_000 });
      expect(later.requests.learned > 0).toBe(gain === 3);
    }
  });

  describe('when requests cost far more while learned costs decide', () => {
    /** Lets a crowd come in the third epoch of learned costs: from then on all requests cost `crowd` times as much. */
    function liveThroughCrowd(crowd: number, gain: number) {
      const guard = new Guard('auto', usual.guard, row(3));
      const random = row(4);
      const seen: { readonly to: string; readonly reason: string; readonly minute: number }[] = [];
      let [epochs, arm, since] = [0, guard.arm, Number.POSITIVE_INFINITY];
      const doubts: string[] = [];
      for (let nowMs = 0; nowMs < 1_800_000; nowMs += 500) {
        const { transition } = guard.tick(nowMs, () => goodEvidence);
        if (transition !== undefined) seen.push({ ...transition, minute: nowMs / 60_000 });
        if (arm === 'static' && guard.arm === 'learned') epochs++;
        if (epochs === 3 && guard.arm === 'learned') since = Math.min(since, nowMs + 10_000);
        arm = guard.arm;
        const why = guard.why(nowMs);
        if (why?.includes('whether it is the traffic') && doubts.at(-1) !== why) doubts.push(why);
        const factor = (nowMs >= since ? crowd : 1) * (arm === 'learned' ? (nowMs >= since ? gain : 0.9) : 1);
        for (let i = 0; i < 5; i++) guard.note(guard.epoch, nowMs, costing(factor * Math.exp(random() - 0.5)));
      }
      return { seen, doubts, sinceMinute: since / 60_000 };
    }

    it('the guard keeps learned costs where the configured weights find the same: a crowd has come', () => {
      const { seen, doubts } = liveThroughCrowd(3, 0.9);
      expect(doubts).toHaveLength(1);
      expect(seen.map(({ to }) => to)).toEqual(['canary', 'active']);
    });

    it('the guard takes them back where the configured weights do not', () => {
      const { seen, sinceMinute } = liveThroughCrowd(1, 3);
      const stop = seen.find(({ to }) => to === 'fallback')!;
      expect(stop.reason).toMatch(
        /^requests cost [1-3]\.\d times as much as with the configured weights before and after$/,
      );
      expect(stop.minute - sinceMinute).toBeLessThan(1);
    });

    it('the guard takes them back where a crowd has come and they make it worse', () => {
      const { seen } = liveThroughCrowd(1.5, 3);
      expect(seen.map(({ to }) => to)).toContain('fallback');
    });
  });

  it('the guard keeps learned costs that gain a quarter when bursts make some epochs twice as dear as others', () => {
    const stops = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].flatMap((seed) =>
      live(0.75, 60, { seed, weather: 0.5 }).transitions.filter(({ reason }) => reason.includes('before and after')),
    );
    expect(stops.length).toBeLessThan(12);
  });

  it('the guard does not take a trend for a loss', () => {
    // Costs double in an hour, whichever arm decides.
    const guard = new Guard('auto', usual.guard, row(3));
    const random = row(4);
    const seen: string[] = [];
    for (let nowMs = 0; nowMs < 3_600_000; nowMs += 500) {
      const { transition } = guard.tick(nowMs, () => goodEvidence);
      if (transition !== undefined) seen.push(transition.to);
      const trend = 2 ** (nowMs / 3_600_000);
      for (let i = 0; i < 5; i++) guard.note(guard.epoch, nowMs, costing(trend * Math.exp(random() - 0.5)));
    }
    expect(seen).toEqual(['canary', 'active']);
  });

  it('the guard takes them back when they become worse, and waits longer after every fallback', () => {
    const course = live((minute) => (minute < 90 ? 0.85 : 2), 400);
    expect(path(course).slice(0, 3)).toEqual(['canary', 'active', 'fallback']);
    expect(course.guard.fallbacks).toBeGreaterThanOrEqual(2);
    expect(course.lost).toBeLessThan(0.05);
  });

  it('the guard takes them back when the slowest hundredth waits far longer, though the mean is better', () => {
    const random = row(5);
    const guard = new Guard('auto', usual.guard, row(11));
    const seen: string[] = [];
    const reasons: string[] = [];
    for (let nowMs = 0; nowMs < 7_200_000; nowMs += 500) {
      const { transition } = guard.tick(nowMs, () => goodEvidence);
      if (transition !== undefined) seen.push(transition.to);
      if (transition?.to === 'fallback') reasons.push(transition.reason);
      const learned = guard.arm === 'learned';
      for (let i = 0; i < 5; i++) {
        const firstOutputMs = 100 * Math.exp((learned ? 5.1 : 4) * random() ** 8);
        guard.note(guard.epoch, nowMs, { ...costing((learned ? 0.8 : 1) * Math.exp(random() - 0.5)), firstOutputMs });
      }
    }
    expect(seen).toContain('fallback');
    expect(reasons[0]).toMatch(/^the slowest hundredth waits \d\.\d times as long/);
    expect(guard.gap.mean).toBeLessThan(0.05);
  });

  it('the guard switches nothing on whose slowest hundredth waits far longer for tokens, for a better mean', () => {
    const random = row(5);
    const guard = new Guard('auto', usual.guard, row(11));
    const transitions: Transition[] = [];
    for (let nowMs = 0; nowMs < 3_600_000; nowMs += 500) {
      const { transition } = guard.tick(nowMs, () => goodEvidence);
      if (transition !== undefined) transitions.push(transition);
      const learned = guard.arm === 'learned';
      for (let i = 0; i < 5; i++) {
        const perTokenMs = 20 * Math.exp((learned ? 3 : 1.2) * random() ** 8);
        guard.note(guard.epoch, nowMs, { ...costing((learned ? 0.8 : 1) * Math.exp(random() - 0.5)), perTokenMs });
      }
    }
    expect(transitions.map(({ to }) => to)).not.toContain('active');
    const stopped = transitions.find(({ to }) => to === 'fallback');
    expect(stopped?.reason).toMatch(/^the slowest hundredth waits \d\.\d times as long for an output token/);
    expect(guard.gap.mean).toBeLessThan(0.05);
  });

  it('the guard keeps them when the slowest hundredth waits as long as before', () => {
    const random = row(5);
    const guard = new Guard('auto', usual.guard, row(11));
    const seen: string[] = [];
    for (let nowMs = 0; nowMs < 7_200_000; nowMs += 500) {
      const { transition } = guard.tick(nowMs, () => goodEvidence);
      if (transition !== undefined) seen.push(transition.to);
      const factor = guard.arm === 'learned' ? 0.8 : 1;
      for (let i = 0; i < 5; i++) {
        const firstOutputMs = 100 * Math.exp(4 * random() ** 8);
        guard.note(guard.epoch, nowMs, { ...costing(factor * Math.exp(random() - 0.5)), firstOutputMs });
      }
    }
    expect(seen).toEqual(['canary', 'active']);
    expect(Math.abs(guard.tailGap.mean)).toBeLessThan(0.3);
  });

  it('the guard loses at most the budget in six hours against a model that is wrong again after every fallback', () => {
    for (const gain of [1.15, 1.5]) {
      const course = live(gain, 360, { weather: 0.1, guard: new Guard('auto', usual.guard, row(2)) });
      expect(course.lost).toBeLessThan(0.05);
      expect(course.requests.learned / course.requests.static).toBeLessThan(0.1);
    }
  });

  it.each([
    ['a coefficient that is no number', { sound: false }],
    ['predictions that do not rank', { correlation: 0.05 }],
    ['predictions five times too short', { bias: Math.log(5) }],
    ['predictions five times too long', { bias: -Math.log(5) }],
    ['samples of less than half of the requests', { sampledShare: 0.4 }],
  ])('the guard falls back at once because of %s', (_what, trouble) => {
    const { guard } = live(0.85, 120);
    expect(guard.state).toBe('active');
    const at = 7_200_000;
    const { transition, epoch } = guard.tick(at, () => ({ ...goodEvidence, ...trouble }));
    expect(transition).toMatchObject({ from: 'active', to: 'fallback' });
    expect(epoch).toBe(true);
    expect(guard.arm).toBe('static');
    // The pause after the first fallback is five minutes; trouble that lasts keeps it longer.
    expect(guard.tick(at + 299_000, () => goodEvidence).transition).toBeUndefined();
    expect(guard.tick(at + 300_000, () => ({ ...goodEvidence, ...trouble })).transition).toBeUndefined();
    expect(guard.tick(at + 301_000, () => goodEvidence).transition?.to).toBe('canary');
  });

  it('the guard stands aside while the whole pool is overloaded for half a minute, without falling back', () => {
    const { guard } = live(0.85, 120);
    guard.tick(7_200_000, () => ({ ...goodEvidence, overloadedMs: 30_000 }));
    expect([guard.state, guard.arm, guard.standsAside]).toEqual(['active', 'static', true]);
    guard.tick(7_200_250, () => goodEvidence);
    expect(guard.standsAside).toBe(false);
  });

  it('the guard gives every epoch a number of its own and says when one begins', () => {
    const guard = new Guard('auto', usual.guard, row(1));
    const numbers = [guard.epoch];
    for (let nowMs = 0; nowMs < 600_000; nowMs += 250) {
      if (guard.tick(nowMs, () => goodEvidence).epoch) numbers.push(guard.epoch);
    }
    expect(numbers).toEqual(numbers.map((_, i) => i + 1));
    // 20 s give or take a quarter.
    expect(numbers.length).toBeGreaterThan(600 / 25);
    expect(numbers.length).toBeLessThan(600 / 14);
  });

  it('the guard gives long requests and rare ones longer epochs', () => {
    const epochs = (evidence: Partial<Evidence>) => {
      const guard = new Guard('auto', usual.guard, () => 0.5);
      let count = 0;
      for (let nowMs = 0; nowMs < 1_200_000; nowMs += 250) {
        // In shadow: a probe has a length of its own.
        if (guard.tick(nowMs, () => ({ ...goodEvidence, samples: 0, ...evidence })).epoch) count++;
      }
      return count;
    };
    expect(epochs({})).toBe(60);
    expect(epochs({ durationMs: 20_000 })).toBe(30);
    expect(epochs({ sampleRate: 0.002 })).toBe(16);
    expect(epochs({ sampleRate: 0.00001 })).toBe(4);
  });

  it('the guard does not take learned costs back by a probe of few requests that cost an eighth more', () => {
    const afterProbe = (everyMs: number) => {
      const guard = new Guard('auto', usual.guard, () => 0.5);
      const evidence = { ...goodEvidence, sampleRate: 1 / everyMs };
      let state = guard.state;
      const isOpen = () => guard.record('learned').epochs === 0 && state !== 'fallback';
      for (let nowMs = 0; nowMs < 300_000 && isOpen(); nowMs += 50) {
        state = guard.tick(nowMs, () => evidence).transition?.to ?? state;
        if (nowMs % everyMs === 0) guard.note(guard.epoch, nowMs, costing(guard.arm === 'learned' ? 1.12 : 1));
      }
      return state;
    };
    // Two thirds of 20 s count: 26 requests, and 266.
    expect(afterProbe(500)).toBe('canary');
    expect(afterProbe(50)).toBe('fallback');
  });

  it('the guard does not count requests that met what the other arm left behind', () => {
    const guard = new Guard('auto', usual.guard, () => 0.5);
    const results = () => guard.record('static').epochs;
    guard.tick(0, () => goodEvidence);
    for (let nowMs = 0; nowMs < 70_000; nowMs += 250) {
      guard.tick(nowMs, () => goodEvidence);
      guard.note(guard.epoch, nowMs, costing(1));
    }
    expect(results()).toBe(2);
    const before = results();
    // Late notes of an epoch that was judged change nothing.
    for (let i = 0; i < 100; i++) guard.note(2, 0, costing(100));
    expect(results()).toBe(before);
    expect(guard.record('static').mean).toBeCloseTo(0, 6);
    expect(guard.gap.mean).toBeCloseTo(0, 6);
  });
});
