import { describe, expect, it } from 'vitest';
import { labelValue } from '../../dist/src/operations/telemetry/label-values.js';
import { ShownNames, UNUSED_MS_MAX } from '../../dist/src/operations/telemetry/shown-names.js';

const vouched = (models: string[], fairnessIds: string[] = []) => ({
  models: new Set(models),
  fairnessIds: new Set(fairnessIds),
});

describe('names as label values', () => {
  it('a name that somebody vouches for is always shown', () => {
    const names = new ShownNames(0);
    names.vouch(vouched(['m', 't'], ['tenant']));
    expect(names.admit('tenant', 'm', 't')).toEqual(['tenant', 'm', 't']);
    expect(names.admit('tenant', '', '')).toEqual(['tenant', '', '']);
  });

  it('each name that nobody vouches for is other, beside those that are vouched for', () => {
    const names = new ShownNames(0);
    names.vouch(vouched(['m'], ['tenant']));
    expect(names.admit('tenant', 'm', 'made up')).toEqual(['tenant', 'm', 'other']);
    expect(names.admit('made up', 'm', 'm')).toEqual(['other', 'm', 'm']);
    expect(names.model('made up')).toBe('other');
  });

  it('a name loses its place with its voucher', () => {
    const names = new ShownNames(0);
    names.vouch(vouched(['m']));
    names.vouch(vouched([]));
    expect(names.admit('', 'm', 'm')).toEqual(['', 'other', 'other']);
  });

  it('the first combinations without a voucher are shown, as many as there are places', () => {
    const names = new ShownNames(2);
    const shown = ['a', 'b', 'c', 'a'].map((model) => names.admit('f', model, model).join());
    expect(shown).toEqual(['f,a,a', 'f,b,b', 'other,other,other', 'f,a,a']);
    expect([names.model('b'), names.model('c')]).toEqual(['b', 'other']);
  });

  it('a bound on fairness ids shows the first ones, and all models beside them', () => {
    const names = new ShownNames(24, undefined, 2);
    const shown = ['a', 'b', 'c', 'a'].map((id) => names.admit(id, 'm', 'm').join());
    expect(shown).toEqual(['a,m,m', 'b,m,m', 'other,m,m', 'a,m,m']);
  });

  it('a bound on fairness ids above that of combinations makes room for them', () => {
    const names = new ShownNames(1, undefined, 3);
    expect(['a', 'b', 'c', 'd'].map((id) => names.admit(id, '', '')[0])).toEqual(['a', 'b', 'c', 'other']);
  });

  it('a bound of 0 shows no fairness id, not even a vouched one', () => {
    const names = new ShownNames(24, undefined, 0);
    names.vouch(vouched(['m'], ['tenant']));
    expect(names.admit('tenant', 'm', 'm')).toEqual(['other', 'm', 'm']);
    expect(names.admit('', 'm', 'm')).toEqual(['', 'm', 'm']);
  });

  it('a name of more than 128 characters is other unless somebody vouches for it', () => {
    const names = new ShownNames();
    const [fits, long] = ['x'.repeat(128), 'x'.repeat(129)];
    names.vouch(vouched([`${long}v`]));
    expect(names.admit('f', fits, `${long}v`)[1]).toBe('other');
    expect([names.admit('f', fits, '')[1], names.admit('f', long, '')[1]]).toEqual([fits, 'other']);
    expect(names.admit('', `${long}v`, '')[1]).toBe(`${long}v`);
  });

  it('a place that was not used for an hour goes to another combination', () => {
    let now = 0;
    const names = new ShownNames(1, () => now);
    names.admit('f', 'old', 'old');
    now = UNUSED_MS_MAX - 1;
    expect(names.model(names.admit('f', 'new', 'new')[1])).toBe('other');
    now = UNUSED_MS_MAX;
    expect(names.admit('f', 'new', 'new')).toEqual(['f', 'new', 'new']);
    expect(names.admit('f', 'old', 'old')).toEqual(['other', 'other', 'other']);
  });

  it('places change hands a bounded number of times, because old series stay in memory', () => {
    let now = 0;
    const names = new ShownNames(1, () => now);
    const shown = Array.from({ length: 100 }, (_, i) => {
      now += UNUSED_MS_MAX;
      return names.admit('f', `m${i}`, '')[1];
    });
    expect(shown.filter((name) => name !== 'other')).toHaveLength(65);
  });
});

describe('the text of a label value', () => {
  it.each([
    ['a\u0000b\u001b[31m', 'a\ufffdb\ufffd[31m'],
    ['line\r\nbreak\ttab', 'line\ufffd\ufffdbreak\ufffdtab'],
    ['\u007f\u0085', '\ufffd\ufffd'],
    ['grün "ok" \\ 模型', 'grün "ok" \\ 模型'],
  ])('%j is %j', (text, value) => {
    expect(labelValue(text)).toBe(value);
  });

  it('the text of a label value is cut at 1,024 characters', () => {
    expect(labelValue('x'.repeat(5_000))).toHaveLength(1_024);
  });
});
