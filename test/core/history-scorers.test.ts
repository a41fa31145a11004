import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { makePool, pickMax, plainRequest, scorer } from './pool.js';
import { prompt } from './pool-history.js';

const idle = (count: number) => Array.from({ length: count }, () => ({}));

function cold(count: number, size = 1024) {
  const pool = makePool([scorer('OP_SCORE_NO_HIT_LRU', 1, size), pickMax], idle(count));
  let name = 0;
  const send = (subset?: readonly number[]) =>
    pool.decider.decide({ ...plainRequest, ...prompt(pool.core, ++name % 200, 2), subset }).slots[0]!;
  const scores = () => {
    pool.decider.decide({ ...plainRequest, charged: false });
    return Array.from({ length: count }, (_, slot) => pool.decider.scoreOf(slot));
  };
  return { ...pool, send, scores };
}

describe('no-hit-lru-scorer', () => {
  it('no-hit-lru-scorer visits endpoints never used first, then the one used longest ago', () => {
    const { send } = cold(4);
    const seen = Array.from({ length: 12 }, () => send());
    expect(new Set(seen.slice(0, 4))).toEqual(new Set([0, 1, 2, 3]));
    expect(seen.slice(4, 8)).toEqual(seen.slice(0, 4));
    expect(seen.slice(8)).toEqual(seen.slice(0, 4));
  });

  it('no-hit-lru-scorer scores 1 - rank / (n - 1)', () => {
    const { send, scores } = cold(5);
    for (const slot of [3, 1]) send([slot]);
    expect(scores()).toEqual([1, 0, 0.75, 0.25, 0.5]);
  });

  it('no-hit-lru-scorer ranks among the candidates alone', () => {
    const { send, decider } = cold(4);
    for (const slot of [2, 3, 1, 0]) send([slot]);
    decider.decide({ ...plainRequest, subset: [0, 3], charged: false });
    expect([decider.scoreOf(0), decider.scoreOf(3)]).toEqual([0, 1]);
  });

  it('no-hit-lru-scorer scores 1 for one endpoint alone', () => {
    expect(cold(1).scores()).toEqual([1]);
  });

  it('no-hit-lru-scorer is neutral, and notes nothing, when a candidate holds a part of the prompt', () => {
    const { core, decider, programs } = cold(3);
    programs.publish(0, [scorer('OP_SCORE_NO_HIT_LRU', 1, 8), pickMax], { inserts: true });
    const warm = { ...plainRequest, ...prompt(core, 1, 3) };
    const first = decider.decide(warm).slots[0]!;
    for (let i = 0; i < 5; i++) decider.decide(warm);
    expect([0, 1, 2].map((slot) => decider.scoreOf(slot))).toEqual([0.5, 0.5, 0.5]);
    decider.decide({ ...plainRequest, ...prompt(core, 2, 3), charged: false });
    expect(decider.scoreOf(first)).toBe(0);
    expect([0, 1, 2].filter((slot) => slot !== first).map((slot) => decider.scoreOf(slot))).toEqual([1, 0.5]);
  });

  it('no-hit-lru-scorer notes nothing for a decision that charges nothing', () => {
    const { decider, scores } = cold(3);
    for (let i = 0; i < 5; i++) decider.decide({ ...plainRequest, subset: [1], charged: false });
    expect(scores()).toEqual([1, 0.5, 0]);
  });

  it('no-hit-lru-scorer forgets an endpoint whose slot changes hands', () => {
    const { send, table, scores } = cold(3);
    for (const slot of [0, 1, 2]) send([slot]);
    table.setState(1, 'free');
    table.open(1, 2);
    table.setState(1, 'live');
    expect(scores()).toEqual([0.5, 1, 0]);
  });

  it('no-hit-lru-scorer agrees with a plain list for any order of endpoints sent, gone and come back, and any bound', () => {
    const step = fc.record({ slot: fc.nat(9), leave: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 12 }), (steps, size) => {
        const { send, table, scores } = cold(10, size);
        let order: number[] = [];
        let generation = 1;
        for (const { slot, leave } of steps) {
          order = order.filter((other) => other !== slot);
          if (leave) {
            table.setState(slot, 'free');
            table.open(slot, ++generation);
            table.setState(slot, 'live');
          } else {
            send([slot]);
            order.push(slot);
            if (order.length > size) order.shift();
          }
        }
        const never = Array.from({ length: 10 }, (_, slot) => slot).filter((slot) => !order.includes(slot));
        const expected = new Array<number>(10);
        for (const [rank, slot] of [...never, ...order].entries()) expected[slot] = 1 - rank / 9;
        for (const [slot, score] of scores().entries()) expect(score).toBeCloseTo(expected[slot]!, 5);
      }),
      { numRuns: 40 },
    );
  });

  it('no-hit-lru-scorer starts over after a thread died inside the commit lock', () => {
    const { send, control, core, scores } = cold(3);
    for (const slot of [2, 1]) send([slot]);
    expect(core.call.lockAcquire(CORE.HEADER + CORE.HEADER_COMMIT_LOCK, 1)).toBe(1);
    control.call.reclaimThread(1);
    expect(scores()).toEqual([1, 0.5, 0]);
  });
});

describe('lora-affinity-scorer', () => {
  const adapters = (running: string[], waiting: string[], max: number) => ({ adapters: { running, waiting, max } });
  const pool = (remember: number, ...signals: ReturnType<typeof adapters>[]) => {
    const made = makePool([scorer('OP_SCORE_ADAPTER', 1, remember), pickMax], signals);
    for (const name of ['a', 'b', 'c']) made.table.showAdapter(name);
    const send = (adapter: string, slot: number) => made.decider.decide({ ...plainRequest, adapter, subset: [slot] });
    const scores = (adapter: string, baseModel = false) => {
      made.decider.decide({ ...plainRequest, adapter, baseModel, charged: false });
      return signals.map((_, slot) => Math.round(made.decider.scoreOf(slot) * 1e4) / 1e4);
    };
    return { ...made, send, scores };
  };

  it('lora-affinity-scorer scores 0.9 where the adapter was sent and the engine still has a place for it', () => {
    const { send, scores } = pool(1, adapters([], [], 2), adapters([], [], 2));
    send('a', 1);
    expect(scores('a')).toEqual([0.8, 0.9]);
    expect(scores('b')).toEqual([0.8, 0.8]);
  });

  it('lora-affinity-scorer takes as many as the engine has places left for loaded, the newest first', () => {
    const { send, scores, table } = pool(1, adapters([], [], 2), adapters([], [], 9));
    for (const name of ['a', 'b', 'c']) send(name, 0);
    expect([scores('a')[0], scores('b')[0], scores('c')[0]]).toEqual([0.8, 0.9, 0.9]);
    table.publish(0, adapters(['x'], [], 2), 2);
    expect([scores('a')[0], scores('b')[0], scores('c')[0]]).toEqual([0.8, 0.8, 0.9]);
    table.publish(0, adapters(['c'], [], 2), 3);
    expect([scores('b')[0], scores('c')[0]]).toEqual([0.9, 1]);
    table.publish(0, adapters(['x', 'y'], [], 2), 4);
    expect(scores('c')[0]).toBe(0);
  });

  it('lora-affinity-scorer remembers at most sixteen adapters for each endpoint', () => {
    const { send, scores, table } = pool(1, adapters([], [], 64));
    for (let i = 0; i < 18; i++) table.showAdapter(`adapter-${i}`);
    for (let i = 0; i < 17; i++) send(`adapter-${i}`, 0);
    expect([scores('adapter-0')[0], scores('adapter-1')[0], scores('adapter-16')[0]]).toEqual([0.8, 0.9, 0.9]);
    send('adapter-1', 0);
    send('adapter-17', 0);
    expect([scores('adapter-1')[0], scores('adapter-2')[0]]).toEqual([0.9, 0.8]);
  });

  it('lora-affinity-scorer forgets what was sent to an endpoint whose slot changes hands', () => {
    const { send, scores, table } = pool(1, adapters([], [], 2));
    send('a', 0);
    table.open(0, 2);
    table.publish(0, adapters([], [], 2), 1);
    expect(scores('a')).toEqual([0.8]);
  });

  it('lora-affinity-scorer goes by the metrics alone when told to', () => {
    const { send, scores } = pool(0, adapters([], [], 2));
    send('a', 0);
    expect(scores('a')).toEqual([0.8]);
  });

  it('lora-affinity-scorer is neutral for a name that the configuration calls a base model', () => {
    const { scores } = pool(1, adapters(['a'], [], 1), adapters(['a'], [], 4));
    expect(scores('b', true)).toEqual([0.5, 0.5]);
    expect(scores('b')).toEqual([0, 0.8]);
  });

  it('lora-affinity-scorer remembers nothing of a model that no engine has shown as an adapter', () => {
    const { send, scores } = pool(1, adapters([], [], 2), adapters(['a'], [], 2));
    send('base', 1);
    expect(scores('base')).toEqual([0.8, 0.8]);
  });

  it('lora-affinity-scorer remembers a name from the moment that the gauge of any engine has it', () => {
    const { send, scores, table } = pool(1, adapters([], [], 2), adapters([], [], 2));
    send('new', 0);
    table.publish(1, adapters(['new'], [], 2), 2);
    expect(scores('new')).toEqual([0.8, 1]);
    send('new', 0);
    table.publish(1, adapters([], [], 2), 3);
    expect(scores('new')).toEqual([0.9, 0.8]);
  });

  it('lora-affinity-scorer forgets the names shown first when there are too many', () => {
    const { send, scores, table } = pool(1, adapters([], [], 2));
    for (let i = 0; i < 20_000; i++) table.showAdapter(`many-${i}`);
    for (const name of ['many-0', 'many-19999']) send(name, 0);
    expect([scores('many-0'), scores('many-19999')]).toEqual([[0.8], [0.9]]);
  });
});
