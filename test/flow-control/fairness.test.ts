import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FairnessSettings, OrderingSettings } from '../../dist/src/contract/queue-settings.js';
import { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { PLAIN_BAND, request, settings } from './settings.js';

function machine(fairness: FairnessSettings, ordering: OrderingSettings = { kind: 'arrival' }): QueueMachine {
  return new QueueMachine(settings({ fallback: { ...PLAIN_BAND, fairness, ordering } }), 0, {
    requests: 4_096,
    flows: 64,
  });
}

/** Dispatch `count` requests. @returns what each flow was served, in tokens of prompt and one of output */
function serve(queue: QueueMachine, cost: ReadonlyMap<number, { flow: string; tokens: number }>, count: number) {
  const order: { flow: string; tokens: number }[] = [];
  queue.dispatch(
    (_handle, reference) => {
      order.push(cost.get(reference)!);
      return 'dispatched';
    },
    0,
    count,
  );
  return order;
}

/** References of all that wait, in the order of their dispatches. */
function order(queue: QueueMachine, nowMs: number): readonly number[] {
  const references: number[] = [];
  queue.dispatch(
    (_handle, reference) => {
      references.push(reference);
      return 'dispatched';
    },
    nowMs,
    1_000,
  );
  return references;
}

const QUANTUM = 64;
const WEIGHTS = { a: 3, b: 1, c: 0.5 };
const FLOWS = ['a', 'b', 'c'] as const;

describe.each([
  ['start-time', { kind: 'start-time', weights: WEIGHTS }, 0],
  ['deficit round robin', { kind: 'deficit-round-robin', weights: WEIGHTS, quantumTokens: QUANTUM }, QUANTUM],
] as const)('%s fairness with known costs', (_name, fairness, quantum) => {
  it('fairness with known costs never lets two flows that wait all the time differ by more than their largest requests', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 30, maxLength: 60 });
    fc.assert(
      fc.property(fc.record({ a: sizes, b: sizes, c: sizes }), (given) => {
        const queue = machine(fairness);
        const cost = new Map<number, { flow: string; tokens: number }>();
        for (const flow of FLOWS) {
          for (const tokens of given[flow]) {
            const one = request({ flow, uncachedTokens: tokens });
            cost.set(one.reference, { flow, tokens: tokens + 1 });
            queue.enqueue(one, 0);
          }
        }
        const left = new Map<string, number>(FLOWS.map((flow) => [flow, given[flow].length]));
        const served = new Map<string, number>(FLOWS.map((flow) => [flow, 0]));
        const largest = (flow: (typeof FLOWS)[number]) => (Math.max(...given[flow]) + 1) / WEIGHTS[flow];
        for (const { flow, tokens } of serve(queue, cost, 10_000)) {
          served.set(flow, served.get(flow)! + tokens / WEIGHTS[flow as (typeof FLOWS)[number]]);
          left.set(flow, left.get(flow)! - 1);
          if ([...left.values()].some((count) => count === 0)) break;
          for (const f of FLOWS) {
            for (const g of FLOWS) {
              const bound = largest(f) + largest(g) + quantum;
              expect(Math.abs(served.get(f)! - served.get(g)!)).toBeLessThanOrEqual(bound + 1e-6);
            }
          }
        }
      }),
      { numRuns: 30 },
    );
  });

  it('fairness with known costs gives a flow that was idle nothing for its pause', () => {
    const queue = machine(fairness);
    const cost = new Map<number, { flow: string; tokens: number }>();
    const add = (flow: string, count: number) => {
      for (let i = 0; i < count; i++) {
        const one = request({ flow, uncachedTokens: 99 });
        cost.set(one.reference, { flow, tokens: 100 });
        queue.enqueue(one, 0);
      }
    };
    add('b', 40);
    serve(queue, cost, 20);
    add('x', 20);
    const flows = serve(queue, cost, 20).map(({ flow }) => flow);
    const own = flows.filter((flow) => flow === 'x').length;
    expect(own).toBeGreaterThanOrEqual(9);
    expect(own).toBeLessThanOrEqual(11);
  });

  it('fairness with known costs does not let a flow that sends one request at a time get ahead', () => {
    const queue = machine(fairness);
    const cost = new Map<number, { flow: string; tokens: number }>();
    const add = (flow: string) => {
      const one = request({ flow, uncachedTokens: 19 });
      cost.set(one.reference, { flow, tokens: 20 });
      queue.enqueue(one, 0);
    };
    for (let i = 0; i < 200; i++) add('b');
    const served = { b: 0, x: 0 };
    for (let i = 0; i < 200; i++) {
      add('x');
      for (const { flow } of serve(queue, cost, 1)) served[flow as 'b' | 'x']++;
    }
    expect(served.x).toBeLessThanOrEqual(served.b * 1.2 + 5);
  });
});

describe('start-time fairness with unknown outputs', () => {
  const fair: FairnessSettings = { kind: 'start-time', weights: {} };

  function tagOf(queue: QueueMachine, flow: string): number {
    return queue.snapshot(0, 9).bands[0]!.flows.find((each) => each.flow === flow)!.tag;
  }

  it('start-time fairness with unknown outputs charges prompt and expected output, at most what the request allows', () => {
    const queue = machine(fair);
    queue.enqueue(request({ flow: 'open', uncachedTokens: 100, maxTokens: 0 }), 0);
    queue.enqueue(request({ flow: 'bounded', uncachedTokens: 100, maxTokens: 50 }), 0);
    queue.dispatch(() => 'dispatched', 0, 9);
    expect([tagOf(queue, 'open'), tagOf(queue, 'bounded')]).toEqual([300, 150]);
  });

  it('start-time fairness with unknown outputs charges steps of 64 tokens beyond an estimate, and settles at the end', () => {
    const queue = machine(fair);
    const handle = queue.enqueue(request({ flow: 'f', uncachedTokens: 100, maxTokens: 0 }), 0);
    queue.dispatch(() => 'dispatched', 0, 9);
    queue.progress(handle, 200, 0);
    expect(tagOf(queue, 'f')).toBe(300);
    queue.progress(handle, 201, 0);
    expect(tagOf(queue, 'f')).toBe(364);
    queue.progress(handle, 329, 0);
    expect(tagOf(queue, 'f')).toBe(492);
    queue.end(handle, 329, 0);
    // 63 tokens too many were paid: the next request begins with them.
    queue.enqueue(request({ flow: 'f', uncachedTokens: 100, maxTokens: 1 }), 0);
    queue.dispatch(() => 'dispatched', 0, 9);
    expect(tagOf(queue, 'f')).toBe(492 + 101 - 63);
  });

  it('start-time fairness with unknown outputs learns what a flow answers, at first quickly', () => {
    const queue = machine(fair);
    const estimate = () => queue.snapshot(0, 9).bands[0]!.flows[0]!.outputEstimate;
    const answer = (tokens: number) => {
      const handle = queue.enqueue(request({ flow: 'f' }), 0);
      queue.dispatch(() => 'dispatched', 0, 9);
      queue.end(handle, tokens, 0);
    };
    answer(1_000);
    expect(estimate()).toBe(600);
    for (let i = 0; i < 200; i++) answer(50);
    expect(estimate()).toBeCloseTo(50, 0);
  });

  it('start-time fairness with unknown outputs forgets credit from before a pause', () => {
    const queue = machine(fair);
    const handle = queue.enqueue(request({ flow: 'f', uncachedTokens: 100, maxTokens: 0 }), 0);
    queue.dispatch(() => 'dispatched', 0, 9);
    queue.end(handle, 0, 0);
    for (let i = 0; i < 10; i++) queue.enqueue(request({ flow: 'g', uncachedTokens: 999, maxTokens: 1 }), 0);
    queue.dispatch(() => 'dispatched', 0, 5);
    queue.enqueue(request({ flow: 'f', uncachedTokens: 100, maxTokens: 1 }), 0);
    expect(tagOf(queue, 'f')).toBe(tagOf(queue, 'g'));
  });
});

describe('shortest first', () => {
  it('no request is overtaken by more than the age bound', () => {
    const arrivals = fc.array(
      fc.record({ gap: fc.integer({ min: 0, max: 50 }), tokens: fc.integer({ min: 1, max: 500 }) }),
      {
        minLength: 2,
        maxLength: 60,
      },
    );
    fc.assert(
      fc.property(arrivals, (given) => {
        const queue = machine({ kind: 'global-strict' }, { kind: 'shortest-first', msPerToken: 3, ageBoundMs: 200 });
        const came = new Map<number, number>();
        let nowMs = 0;
        for (const { gap, tokens } of given) {
          nowMs += gap;
          const one = request({ uncachedTokens: tokens });
          came.set(one.reference, nowMs);
          queue.enqueue(one, nowMs);
        }
        let latest = 0;
        queue.dispatch(
          (_handle, reference) => {
            latest = Math.max(latest, came.get(reference)!);
            expect(latest - came.get(reference)!).toBeLessThanOrEqual(200);
            return 'dispatched';
          },
          nowMs,
          1_000,
        );
      }),
      { numRuns: 50 },
    );
  });
});

describe('round robin', () => {
  it('round robin gives each flow that waits one request a round', () => {
    const queue = machine({ kind: 'round-robin' });
    const flowOf = new Map<number, string>();
    for (const flow of ['a', 'a', 'a', 'b', 'b', 'c']) {
      const one = request({ flow });
      flowOf.set(one.reference, flow);
      queue.enqueue(one, 0);
    }
    const flows = order(queue, 0).map((reference) => flowOf.get(reference));
    expect(flows.join('')).toBe('abcaba');
  });
});

describe('program-aware fairness', () => {
  const programAware: FairnessSettings = {
    kind: 'program-aware',
    serviceWeight: 0.8,
    headWaitWeight: 0.2,
    halfLifeMs: 1_000,
  };

  it('program-aware fairness prefers the flow that had less service, and forgets service with time', () => {
    const queue = machine(programAware);
    const first = queue.enqueue(request({ flow: 'heavy', promptTokens: 1_000 }), 0);
    queue.dispatch(() => 'dispatched', 0, 9);
    queue.end(first, 500, 0);
    const second = queue.enqueue(request({ flow: 'light', promptTokens: 10 }), 20_000);
    queue.dispatch(() => 'dispatched', 20_000, 9);
    // 2,000 tokens of twenty half-lives ago are fewer than 10 now.
    queue.end(second, 0, 20_000);
    const one = request({ flow: 'light' });
    const other = request({ flow: 'heavy' });
    queue.enqueue(one, 20_000);
    queue.enqueue(other, 20_000);
    expect(order(queue, 20_000)).toEqual([other.reference, one.reference]);
  });

  it('program-aware fairness goes on right after hours, when the common scale is taken back', () => {
    const queue = machine(programAware);
    for (const hours of [0, 1, 2, 3, 4]) {
      const nowMs = hours * 3_600_000;
      const handle = queue.enqueue(request({ flow: `f${hours}`, promptTokens: 100 }), nowMs);
      queue.dispatch(() => 'dispatched', nowMs, 9);
      queue.end(handle, 10, nowMs);
      const busy = request({ flow: `f${hours}` });
      const fresh = request({ flow: `fresh${hours}` });
      queue.enqueue(busy, nowMs);
      queue.enqueue(fresh, nowMs);
      expect(order(queue, nowMs)).toEqual([fresh.reference, busy.reference]);
    }
  });

  it('program-aware fairness serves every flow after an answer that took a thousand half-lives', () => {
    const queue = machine(programAware);
    const slow = queue.enqueue(request({ flow: 'slow' }), 0);
    const quick = queue.enqueue(request({ flow: 'quick' }), 0);
    queue.dispatch(() => 'dispatched', 0, 9);
    queue.end(quick, 10, 0);
    const nowMs = 2_000_000;
    queue.end(slow, 1_000, nowMs);
    const waiting = ['slow', 'quick', 'new'].map((flow) => request({ flow }));
    for (const one of waiting) queue.enqueue(one, nowMs);
    expect(new Set(order(queue, nowMs))).toEqual(new Set(waiting.map(({ reference }) => reference)));
  });
});

describe('turn priority', () => {
  const turnPriority: FairnessSettings = {
    kind: 'turn-priority',
    timeWeight: 0.05,
    inactivityMs: 120_000,
    forgetMs: 3_600_000,
  };
  const byTurnsAlone: FairnessSettings = { ...turnPriority, timeWeight: 0 };

  /** Serves `turns` requests of a session, one after the other. */
  function converse(queue: QueueMachine, flow: string, turns: number, nowMs: number): void {
    for (let turn = 0; turn < turns; turn++) {
      const handle = queue.enqueue(request({ flow }), nowMs);
      queue.dispatch(() => 'dispatched', nowMs, 1);
      queue.end(handle, 1, nowMs);
    }
  }

  /** Flows of the waiting requests, in the order of their dispatches. @param waiting arrivals, earliest first */
  function flowsInOrder(
    queue: QueueMachine,
    waiting: readonly { readonly flow: string; readonly atMs: number }[],
    nowMs: number,
  ): readonly string[] {
    const flowOf = new Map<number, string>();
    for (const { flow, atMs } of waiting) {
      const one = request({ flow });
      flowOf.set(one.reference, flow);
      queue.enqueue(one, atMs);
    }
    return order(queue, nowMs).map((reference) => flowOf.get(reference)!);
  }

  it('turn priority serves the session with most turns first', () => {
    const queue = machine(byTurnsAlone);
    converse(queue, 'deep', 20, 0);
    converse(queue, 'shallow', 1, 0);
    const waiting = ['new', 'shallow', 'deep'].map((flow) => ({ flow, atMs: 1_000 }));
    expect(flowsInOrder(queue, waiting, 1_000)).toEqual(['deep', 'shallow', 'new']);
  });

  it('turn priority lets 20 seconds of wait count for one turn at a weight of 0.05', () => {
    const queue = machine(turnPriority);
    converse(queue, 'deep', 3, 0);
    const waiting = [
      { flow: 'for 61 s', atMs: 0 },
      { flow: 'for 59 s', atMs: 2_000 },
      { flow: 'deep', atMs: 61_000 },
    ];
    expect(flowsInOrder(queue, waiting, 61_000)).toEqual(['for 61 s', 'deep', 'for 59 s']);
  });

  it('turn priority serves sessions of equal depth in the order of arrival', () => {
    const queue = machine(byTurnsAlone);
    for (const flow of ['a', 'b', 'c']) converse(queue, flow, 3, 0);
    const waiting = ['c', 'a', 'b'].map((flow, place) => ({ flow, atMs: place }));
    expect(flowsInOrder(queue, waiting, 10)).toEqual(['c', 'a', 'b']);
  });

  it('turn priority takes the request after a pause beyond the inactivity for a first turn, but not the next', () => {
    const queue = machine(byTurnsAlone);
    converse(queue, 'paused', 30, 0);
    converse(queue, 'other', 1, 0);
    const after = ['other', 'paused'].map((flow) => ({ flow, atMs: 120_001 }));
    converse(queue, 'other', 1, 120_000);
    expect(flowsInOrder(queue, after, 120_001)).toEqual(['other', 'paused']);
    expect(flowsInOrder(queue, after, 120_001)).toEqual(['paused', 'other']);
  });

  it('turn priority does not take the wait in the queue for a pause', () => {
    const queue = machine(byTurnsAlone);
    converse(queue, 'deep', 30, 0);
    converse(queue, 'other', 5, 0);
    const waiting = ['other', 'deep'].map((flow) => ({ flow, atMs: 119_000 }));
    expect(flowsInOrder(queue, waiting, 1_000_000)).toEqual(['deep', 'other']);
  });

  it('turn priority does not take a session with a running request for a paused one', () => {
    const queue = machine(byTurnsAlone);
    converse(queue, 'deep', 5, 0);
    queue.enqueue(request({ flow: 'deep' }), 1_000);
    queue.dispatch(() => 'dispatched', 1_000, 1);
    converse(queue, 'other', 3, 500_000);
    const waiting = ['other', 'deep'].map((flow) => ({ flow, atMs: 500_000 }));
    expect(flowsInOrder(queue, waiting, 500_000)).toEqual(['deep', 'other']);
  });

  it('turn priority counts no turn for a request that was not placed', () => {
    const queue = machine(byTurnsAlone);
    converse(queue, 'a', 2, 0);
    converse(queue, 'b', 1, 0);
    for (let i = 0; i < 3; i++) {
      const handle = queue.enqueue(request({ flow: 'b' }), 0);
      queue.dispatch(() => 'dispatched', 0, 1);
      queue.refund(handle, 0);
    }
    const waiting = ['b', 'a'].map((flow) => ({ flow, atMs: 0 }));
    expect(flowsInOrder(queue, waiting, 0)).toEqual(['a', 'b']);
  });

  it('turn priority remembers the turns of an idle session for an hour, where no pause ends them', () => {
    const endless: FairnessSettings = { ...byTurnsAlone, inactivityMs: Infinity };
    const afterHours = (hours: number) => {
      const queue = machine(endless);
      converse(queue, 'deep', 9, 0);
      const waiting = ['new', 'deep'].map((flow) => ({ flow, atMs: hours * 3_600_000 }));
      return flowsInOrder(queue, waiting, hours * 3_600_000);
    };
    expect(afterHours(0.9)).toEqual(['deep', 'new']);
    expect(afterHours(1.1)).toEqual(['new', 'deep']);
  });

  it('turn priority keeps the turns of sessions through a change of its weight, not through another policy', () => {
    const withFairness = (fairness: FairnessSettings) => settings({ fallback: { ...PLAIN_BAND, fairness } });
    const flowsAfter = (...changes: readonly FairnessSettings[]) => {
      const queue = machine(byTurnsAlone);
      converse(queue, 'deep', 9, 0);
      for (const fairness of changes) queue.configure(withFairness(fairness), 0);
      return flowsInOrder(
        queue,
        [
          { flow: 'new', atMs: 0 },
          { flow: 'deep', atMs: 0 },
        ],
        0,
      );
    };
    expect(flowsAfter(turnPriority)).toEqual(['deep', 'new']);
    expect(flowsAfter({ kind: 'round-robin' }, byTurnsAlone)).toEqual(['new', 'deep']);
  });
});

describe('the queues under a policy whose numbers are none', () => {
  const none = Number.NaN;
  it.each<FairnessSettings>([
    { kind: 'start-time', weights: { a: none } },
    { kind: 'start-time', weights: { a: 0 } },
    { kind: 'deficit-round-robin', weights: { a: none }, quantumTokens: 64 },
    { kind: 'deficit-round-robin', weights: {}, quantumTokens: none },
    { kind: 'program-aware', serviceWeight: none, headWaitWeight: none, halfLifeMs: none },
    { kind: 'turn-priority', timeWeight: none, inactivityMs: none, forgetMs: none },
  ])('the queues end with %j, and serve each request once', (fairness) => {
    const queue = machine(fairness);
    const all: number[] = [];
    const served: number[] = [];
    for (let round = 0; round < 20; round++) {
      for (const flow of ['a', 'b']) {
        const one = request({ flow });
        all.push(one.reference);
        queue.enqueue(one, round);
      }
      const handles: number[] = [];
      queue.dispatch(
        (handle, reference) => {
          handles.push(handle);
          served.push(reference);
          return 'dispatched';
        },
        round,
        1,
      );
      for (const handle of handles) queue.end(handle, 100, round);
    }
    served.push(...order(queue, 20));
    expect(served.toSorted((a, b) => a - b)).toEqual(all);
  });
});
