import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseQuantity } from '../../dist/src/config/quantity.js';
import { nearestName } from '../../dist/src/runtime/nearest-name.js';
import { parseDuration } from '../../dist/src/scheduling/duration.js';

describe('a duration', () => {
  it.each([
    ['0', 0],
    ['0s', 0],
    ['50ms', 50],
    ['1.5s', 1500],
    ['1h2m3s', 3_723_000],
    ['.5m', 30_000],
    ['250us', 0.25],
    ['250µs', 0.25],
    ['-1s', -1000],
    ['+1s', 1000],
  ])('%s is %d ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBeCloseTo(milliseconds, 9);
  });

  it.each(['', '5', 's', '1 s', 'soon', '1s2', '1d', '--1s', '1..5s'])('a duration is not %j', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

describe('a quantity', () => {
  it.each([
    ['0', 0],
    ['1000', 1000],
    ['1k', 1000],
    ['500Mi', 524_288_000],
    ['1Gi', 1_073_741_824],
    ['1.5Ki', 1536],
    ['1e3', 1000],
    ['1E3', 1000],
    ['1500m', 2],
    ['-1', -1],
    ['-10Mi', -10_485_760],
  ])('%s is %d', (text, value) => {
    expect(parseQuantity(text)).toBe(value);
  });

  it.each(['', 'abc', '10invalid', '1KB', '1 Gi', '0x10', '10Ei', '1e400', 'Mi'])('a quantity is not %j', (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  });

  it('a quantity reads back every whole number', () => {
    fc.assert(fc.property(fc.maxSafeInteger(), (value) => parseQuantity(String(value)) === value));
  });
});

describe('the nearest name', () => {
  it.each([
    ['quue-scorer', 'queue-scorer'],
    ['Queue-Scorer', 'queue-scorer'],
    ['queeu-scorer', 'queue-scorer'],
    ['scorer', 'queue-scorer'],
    ['randm', 'random-picker'],
    ['Picker', 'random-picker'],
    ['pick', undefined],
    ['prefix-scorer', undefined],
    ['nothing-like-it', undefined],
    ['', undefined],
  ])('the nearest name to %j is %j', (given, expected) => {
    expect(nearestName(given, ['queue-scorer', 'random-picker'])).toBe(expected);
  });

  it('the nearest name is the name itself when it is there', () => {
    const names = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, selector: (name) => name.toLowerCase() });
    fc.assert(
      fc.property(names, (list) => {
        for (const name of list) expect(nearestName(name, list)).toBe(name);
      }),
    );
  });
});
