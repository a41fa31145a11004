import { describe, expect, it } from 'vitest';
import type { SchedulerContext } from '../../dist/src/scheduling/plugin.js';
import { definePlugin, type HookPlugin, type PluginKind, type Scheduler, z } from '../../dist/src/scheduling/plugin.js';
import { HookPool, idle } from './hook-pool.ts';

function hookRequest(kind: PluginKind, plugin: HookPlugin, more: { whenNoneLeft?: 'reject' | 'keep-all' } = {}) {
  return definePlugin({
    type: `test-${kind}`,
    kinds: [kind],
    stability: 'Stable',
    doc: 'A test.',
    parameters: z.strictObject({}),
    host: () => plugin,
    ...more,
  });
}

function scheduling(scheduler: (context: SchedulerContext) => Scheduler) {
  return definePlugin({
    type: 'test-scheduler',
    kinds: ['scheduler'],
    stability: 'Stable',
    doc: 'A test.',
    parameters: z.strictObject({}),
    scheduler: (_parameters, context) => scheduler(context),
  });
}

const everyPod = ['pod-0', 'pod-1', 'pod-2', 'pod-3', 'pod-4'];

describe('a hook filter', () => {
  it('a hook filter keeps the endpoints whose cell is above 0', () => {
    const filter = hookRequest('filter', { filter: (_request, _endpoints, column) => column.fill(0).set([1, 0.5], 2) });
    expect(new HookPool([{ definition: filter }], idle(5)).picks()).toEqual(['pod-2', 'pod-3']);
  });

  it('a hook filter keeps all when it says nothing', () => {
    const filter = hookRequest('filter', { filter: () => {} });
    expect(new HookPool([{ definition: filter }], idle(5)).picks()).toEqual(everyPod);
  });

  it('a hook filter rejects the request when it leaves none, or keeps what was there, as its definition says', () => {
    const none: HookPlugin = { filter: (_request, _endpoints, column) => column.fill(0) };
    const strict = new HookPool([{ definition: hookRequest('filter', none) }], idle(5));
    expect(strict.pick()).toBe('ResourceExhausted');
    const lenient = new HookPool([{ definition: hookRequest('filter', none, { whenNoneLeft: 'keep-all' }) }], idle(5));
    expect(lenient.picks()).toEqual(everyPod);
  });

  it('a hook filter is skipped for a request at which it fails, whatever it had written', () => {
    const filter = hookRequest('filter', {
      filter: (_request, _endpoints, column) => {
        column.fill(0);
        throw new Error('boom');
      },
    });
    const pool = new HookPool([{ definition: filter }], idle(5));
    expect(everyPod).toContain(pool.pick());
    expect(pool.failures).toEqual(['test-filter']);
  });

  it('a hook filter takes the column of the last request away from the next one', () => {
    let calls = 0;
    const filter = hookRequest('filter', {
      filter: (_request, _endpoints, column) => {
        if (calls++ === 0) column.fill(0).set([1], 3);
      },
    });
    const pool = new HookPool([{ definition: filter }], idle(5));
    expect(pool.pick()).toBe('pod-3');
    expect(pool.picks()).toEqual(everyPod);
  });
});

describe('a hook scorer', () => {
  it('a hook scorer scores with its weight, clamped to 0 … 1', () => {
    const scorer = hookRequest('scorer', { score: (_request, _endpoints, column) => column.set([0.25, 7, -3, 0.5]) });
    const outcome = new HookPool([{ definition: scorer, weight: 2 }], idle(4)).schedule();
    expect(outcome.kind === 'placed' && [...outcome.scores!.values()]).toEqual([0.5, 2, 0, 1]);
  });

  it('a hook scorer counts NaN as a failure and adds nothing then', () => {
    const scorer = hookRequest('scorer', { score: (_request, _endpoints, column) => column.set([1, Number.NaN]) });
    const pool = new HookPool([{ definition: scorer }], idle(3));
    const outcome = pool.schedule();
    expect(outcome.kind === 'placed' && [...outcome.scores!.values()]).toEqual([0, 0, 0]);
    expect(pool.failures).toEqual(['test-scorer']);
  });

  it('a hook scorer is not called any more after failing again and again, and requests go on', () => {
    let calls = 0;
    const scorer = hookRequest('scorer', {
      score: () => {
        calls++;
        throw new Error('boom');
      },
    });
    const pool = new HookPool([{ definition: scorer }], idle(3));
    expect(pool.picks({}, 30)).toHaveLength(3);
    expect(calls).toBe(10);
    expect(pool.logged).toHaveLength(1);
  });

  it('a hook scorer that takes longer than its budget adds nothing', () => {
    const scorer = hookRequest('scorer', {
      score: (_request, _endpoints, column) => {
        pool.clock += 21;
        column[1] = 1;
      },
    });
    const pool = new HookPool([{ definition: scorer }], idle(2));
    const outcome = pool.schedule();
    expect(outcome.kind === 'placed' && [...outcome.scores!.values()]).toEqual([0, 0]);
  });

  it('a hook scorer sees the signals and the load of the endpoints, and only those that the request may use', () => {
    const seen: unknown[] = [];
    const scorer = hookRequest('scorer', {
      score: (request, endpoints) => {
        const { slots, waiting, running, kvUsage, inflight } = endpoints;
        seen.push([...slots], waiting[1], running[1], kvUsage[1], inflight[1], request.promptBytes);
        seen.push(endpoints.isKnown(1, 'waiting'), endpoints.isKnown(2, 'waiting'));
        seen.push(endpoints.slotOf('default/pod-2'), endpoints.slotOf('default/none'), endpoints.at(1)?.address);
      },
    });
    const signals = [{ waiting: 1 }, { waiting: 3, running: 2, kvUsage: 0.5 }, {}];
    const pool = new HookPool([{ definition: scorer }], signals);
    pool.schedule({ subset: ['10.0.0.2'], promptBytes: 99 });
    expect(seen).toEqual([[1], 3, 2, 0.5, 0, 99, true, false, 2, undefined, '10.0.0.2:8000']);
  });

  it('a hook scorer without score() is refused at the start', () => {
    const definition = hookRequest('scorer', {});
    expect(() => new HookPool([{ definition }], idle(1))).toThrow(
      'plugin "test-scorer" stands in a profile, but has no score()',
    );
  });
});

describe('screeners', () => {
  it('screeners narrow the endpoints together, and end the request when nothing is left', () => {
    const screen = (type: string, slots: readonly number[]) => ({
      definition: { ...hookRequest('screener', { screen: () => slots }), type },
    });
    expect(new HookPool([screen('a', [0, 1, 2]), screen('b', [1, 2, 3])], idle(5)).picks()).toEqual(['pod-1', 'pod-2']);
    expect(new HookPool([screen('a', [0]), screen('b', [1])], idle(5)).schedule()).toMatchObject({
      code: 'ServiceUnavailable',
      message: 'screeners eliminated all endpoint candidates',
      reason: 'rejected-no-endpoints',
    });
  });

  it('screeners that fail keep all', () => {
    const screen = () => {
      throw new Error('boom');
    };
    expect(new HookPool([{ definition: hookRequest('screener', { screen }) }], idle(5)).picks({}, 60)).toEqual(
      everyPod,
    );
  });
});

describe('admitters', () => {
  it('admitters turn a request away with their own code, reason and delay', () => {
    const denial = { code: 'Forbidden', message: 'not today', reason: 'closed', retryAfterSeconds: 9 } as const;
    const pool = new HookPool([{ definition: hookRequest('admitter', { admit: () => denial }) }], idle(2));
    expect(pool.schedule()).toEqual({
      kind: 'rejected',
      code: 'Forbidden',
      message: 'request cannot be admitted: not today',
      reason: 'closed',
      retryAfterSeconds: 9,
    });
  });

  it('admitters that fail admit', () => {
    const admit = () => {
      throw new Error('boom');
    };
    expect(new HookPool([{ definition: hookRequest('admitter', { admit }) }], idle(1)).pick()).toBe('pod-0');
  });
});

describe('response hooks', () => {
  const placement = (pool: HookPool) => {
    const outcome = pool.schedule();
    if (outcome.kind === 'rejected') throw new Error(outcome.message);
    return outcome;
  };

  it('response hooks set headers, by lower-case name', () => {
    const definition = hookRequest('reporter', {
      responseHeaders: (_request, response) => response.setHeader('X-Mine', 'a'),
    });
    const pool = new HookPool([{ definition }], idle(1));
    const head = { status: 200, headers: { get: () => undefined }, served: undefined, balanced: false };
    expect([...pool.plugins.responseHeaders(pool.begin(), placement(pool), head)]).toEqual([['x-mine', 'a']]);
  });

  it.each([
    ['content-length', '1'],
    [':status', '200'],
    ['x y', 'a'],
    ['x-mine', 'a\r\nb: c'],
  ])('response hooks cannot set %j to %j', (name, value) => {
    const definition = hookRequest('reporter', {
      responseHeaders: (_request, response) => response.setHeader(name, value),
    });
    const pool = new HookPool([{ definition }], idle(1));
    const head = { status: 200, headers: { get: () => undefined }, served: undefined, balanced: false };
    expect(pool.plugins.responseHeaders(pool.begin(), placement(pool), head).size).toBe(0);
    expect(pool.failures).toEqual(['test-reporter']);
  });

  it.each([
    ['the one that the proxy says', 2, '10.0.0.2:80'],
    ['the pick, when the proxy says nothing', 1, undefined],
    ['the pick, when the proxy says one that was not picked', 1, '10.0.0.9:80'],
  ])('response hooks see as the answering endpoint %s', (_what, expected, served) => {
    const seen: number[] = [];
    const definition = hookRequest('reporter', {
      responseHeaders: (_request, { endpoint }) => void seen.push(endpoint.slot),
    });
    const pool = new HookPool([{ definition }], idle(4));
    const placed = placement(pool);
    const endpoints = [1, 2].map((slot) => ({ ...placed.endpoints[0]!, slot, address: `10.0.0.${slot}:80` }));
    const head = { status: 200, headers: { get: () => undefined }, served, balanced: true };
    pool.plugins.responseHeaders(pool.begin(), { ...placed, endpoints }, head);
    expect(seen).toEqual([expected]);
  });

  it('response hooks report metadata; what is no finite number fails', () => {
    const usage = { promptTokens: 3, completionTokens: 4, totalTokens: 7, cachedTokens: -1 };
    const reporter = (value: number) =>
      hookRequest('reporter', { report: (_request, _usage, metadata) => metadata.set('envoy.lb', 'cost', value) });
    const good = new HookPool([{ definition: reporter(7) }], idle(1));
    expect(good.plugins.report(good.begin(), usage).get('envoy.lb')?.get('cost')).toBe(7);
    const bad = new HookPool([{ definition: reporter(Number.POSITIVE_INFINITY) }], idle(1));
    expect(bad.plugins.report(bad.begin(), usage).size).toBe(0);
    expect(bad.failures).toEqual(['test-reporter']);
  });
});

describe('a custom scheduler', () => {
  it('a custom scheduler decides, with fallbacks, and charges its first choice', () => {
    const definition = scheduling((context) => ({ schedule: (request) => context.place(request, [2, 0]) }));
    const pool = new HookPool([{ definition }], idle(3));
    const outcome = pool.schedule();
    expect(outcome.kind === 'placed' && outcome.endpoints.map(({ slot }) => slot)).toEqual([2, 0]);
    expect(pool.pool.table.read(2).inflight).toBe(1);
    if (outcome.kind === 'placed') outcome.charge.release();
    expect(pool.pool.table.read(2).inflight).toBe(0);
  });

  it('a custom scheduler that fails after it has charged gives the request to the profiles and the charge back', () => {
    const definition = scheduling((context) => ({
      schedule: (request) => {
        context.place(request, [2]);
        throw new Error('boom');
      },
    }));
    const pool = new HookPool([{ definition }], idle(3));
    const outcome = pool.schedule();
    expect(outcome.kind).toBe('placed');
    expect([0, 1, 2].map((slot) => pool.pool.table.read(slot).inflight).reduce((sum, count) => sum + count)).toBe(1);
    expect(pool.failures).toEqual(['test-scheduler']);
  });

  it('a custom scheduler that answers nothing usable has failed', () => {
    const definition = scheduling(() => ({ schedule: () => undefined as never }));
    const pool = new HookPool([{ definition }], idle(1));
    expect(pool.pick()).toBe('pod-0');
    expect(pool.failures).toEqual(['test-scheduler']);
  });

  it('a custom scheduler may reject', () => {
    const rejection = { kind: 'rejected', code: 'Forbidden', message: 'no', reason: undefined } as const;
    const pool = new HookPool([{ definition: scheduling(() => ({ schedule: () => rejection })) }], idle(1));
    expect(pool.schedule()).toEqual(rejection);
    expect(pool.failures).toEqual([]);
  });
});
