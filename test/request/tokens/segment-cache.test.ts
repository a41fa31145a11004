import { describe, expect, it } from 'vitest';
import { SegmentCache } from '../../../dist/src/request/tokens/segment-cache.js';

describe('remembered pieces of text', () => {
  it('remembered pieces of text are made once', () => {
    const cache = new SegmentCache(10_000, () => 0);
    let made = 0;
    const make = (text: string) => Uint32Array.of(text.length + 0 * made++);
    for (let i = 0; i < 3; i++) expect(cache.ids('abc', make)).toEqual(Uint32Array.of(3));
    expect(made).toBe(1);
  });

  it('remembered pieces of text take no more than their bound; the one used longest ago goes first', () => {
    const cache = new SegmentCache(1_000, () => 0);
    const made: string[] = [];
    const ids = (text: string) =>
      cache.ids(text, () => {
        made.push(text);
        return new Uint32Array(20);
      });
    for (const text of ['a', 'b', 'c']) ids(text);
    ids('a');
    ids('d');
    ids('e');
    expect(cache.bytes).toBeLessThanOrEqual(1_000);
    made.length = 0;
    ids('a');
    ids('b');
    expect(made).toEqual(['b']);
  });

  it('remembered pieces of text that are too large alone are not kept', () => {
    const cache = new SegmentCache(100, () => 0);
    expect(cache.ids('x', () => new Uint32Array(100))).toHaveLength(100);
    expect(cache.bytes).toBe(0);
  });

  it('remembered pieces of text are as old as the last use of the one used longest ago', () => {
    let now = 1;
    const cache = new SegmentCache(1_000, () => now);
    expect(cache.oldestMs).toBeUndefined();
    const use = (text: string, ms: number) => {
      now = ms;
      cache.ids(text, () => new Uint32Array(20));
    };
    use('a', 10);
    use('b', 20);
    expect(cache.oldestMs).toBe(10);
    use('a', 30);
    expect(cache.oldestMs).toBe(20);
    for (let i = 0; i < 5; i++) use(`c${i}`, 40 + i);
    expect(cache.oldestMs).toBeGreaterThanOrEqual(40);
  });
});
