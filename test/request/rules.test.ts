import { describe, expect, it } from 'vitest';
import type { ModelRewrite } from '../../dist/src/contract/endpoint.js';
import { RequestRules } from '../../dist/src/request/rules.js';

const rule = (
  name: string,
  models: string[],
  targets: (readonly [string, (number | undefined)?])[],
  age = 0,
): ModelRewrite => ({
  name,
  models,
  targets: targets.map(([model, weight]) => ({ model, weight })),
  age,
});
const NAMED = { matchRequired: true, clientsRewrite: true };
const rules = (...rewrites: ModelRewrite[]) => new RequestRules({ objectives: new Map(), rewrites });
const target = (subject: RequestRules, model: string, lot = 0) => subject.rewrite(model, () => lot)?.target;

describe('objectives', () => {
  it('objectives give a priority by name, and 0 for unknown and missing names', () => {
    const subject = new RequestRules({ objectives: new Map([['low', -1]]), rewrites: [] });
    expect([subject.priority('low'), subject.priority('other'), subject.priority(undefined)]).toEqual([-1, 0, 0]);
  });

  it('objectives are replaced together with the rewrites', () => {
    const subject = rules(rule('a', ['m'], [['n']]));
    subject.replace({ objectives: new Map([['o', 5]]), rewrites: [] });
    expect([subject.priority('o'), subject.rewrite('m', () => 0)]).toEqual([5, undefined]);
  });
});

describe('model rewrites', () => {
  it('model rewrites prefer an exact rule to a generic one, even an older one', () => {
    const subject = rules(rule('generic', [], [['g']], 0), rule('exact', ['m'], [['e']], 9));
    expect([target(subject, 'm'), target(subject, 'other'), target(subject, '')]).toEqual(['e', 'g', 'g']);
  });

  it('model rewrites prefer the oldest among equals, and the first of one age', () => {
    const subject = rules(rule('c', ['m'], [['c']], 2), rule('a', ['m'], [['a']], 1), rule('b', ['m'], [['b']], 1));
    expect(subject.rewrite('m', () => 0)).toEqual({ rule: 'a', target: 'a' });
  });

  it('model rewrites leave other models alone', () => {
    expect(target(rules(rule('a', ['m'], [['n']])), 'other')).toBeUndefined();
  });

  it('model rewrites draw targets by weight', () => {
    const subject = rules(
      rule(
        'a',
        [],
        [
          ['x', 1],
          ['y', 3],
        ],
      ),
    );
    expect([0, 0.24, 0.25, 0.99].map((lot) => target(subject, 'm', lot))).toEqual(['x', 'x', 'y', 'y']);
  });

  it('model rewrites draw by equal chance when there are no weights or only zeros', () => {
    for (const weight of [undefined, 0]) {
      const subject = rules(
        rule(
          'a',
          [],
          [
            ['x', weight],
            ['y', weight],
          ],
        ),
      );
      expect([0, 0.49, 0.5, 0.99].map((lot) => target(subject, 'm', lot))).toEqual(['x', 'x', 'y', 'y']);
    }
  });

  it('model rewrites never draw a target without a weight beside one that has a weight', () => {
    const subject = rules(rule('a', [], [['x', 2], ['y']]));
    expect([0, 0.5, 0.999999].map((lot) => target(subject, 'm', lot))).toEqual(['x', 'x', 'x']);
  });

  it('model rewrites do nothing without targets', () => {
    expect(rules(rule('a', [], [])).rewrite('m', () => 0)).toBeUndefined();
  });
});

describe('models that may be asked for', () => {
  const rewrites: ModelRewrite[] = [{ name: 'rule', models: ['known'], targets: [{ model: 'target' }], age: 0 }];
  const state = { objectives: new Map([['important', 5]]), rewrites };

  it('models that may be asked for are all of them, unless they must be named', () => {
    expect(new RequestRules(state).serves('other')).toBe(true);
  });

  it('models that may be asked for are those of objectives and rewrite rules when they must be named', () => {
    const subject = new RequestRules(state, NAMED);
    expect(['known', 'important', 'target', 'other', ''].filter((model) => subject.serves(model))).toEqual([
      'known',
      'important',
    ]);
  });

  it('models that may be asked for are all of them when a rule takes every model', () => {
    const everyone = { name: 'every', models: [], targets: [{ model: 'x' }], age: 0 };
    expect(new RequestRules({ ...state, rewrites: [everyone] }, NAMED).serves('other')).toBe(true);
  });

  it('models that may be asked for follow the rules when these are replaced', () => {
    const subject = new RequestRules(state, NAMED);
    subject.replace({ objectives: new Map([['other', 0]]), rewrites: [] });
    expect([subject.serves('other'), subject.serves('known')]).toEqual([true, false]);
  });
});
