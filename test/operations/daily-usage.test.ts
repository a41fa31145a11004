import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DailyUsage,
  readUsageLines,
  untilMidnight,
  usageLines,
  utcDay,
} from '../../dist/src/operations/usage/daily-usage.js';
import { NO_USAGE, type TenantTotals } from '../../dist/src/operations/usage/tenant-usage.js';

const count = fc.integer({ min: 0, max: 1_000_000 });
const totals = fc.record({
  requests: fc.integer({ min: 1, max: 1_000_000 }),
  ...{ errors: count, inputTokens: count, outputTokens: count, estimatedOutputTokens: count, cachedTokens: count },
  ...{ waits: count, waitSeconds: count },
});
const tenants = fc.dictionary(fc.string(), totals).map((found) => new Map(Object.entries(found)));
const used = (tokens: number): TenantTotals => ({ ...NO_USAGE, requests: 1, inputTokens: tokens });

describe('usage of a day', () => {
  it('lines are read back as what was written, whatever tenants are called', () => {
    fc.assert(
      fc.property(tenants, (found) => {
        expect(readUsageLines(usageLines('llama', '2026-11-22', found))).toEqual(found);
      }),
    );
  });

  it('a line says pool, day, tenant, counts and the cached share of the input', () => {
    const found = new Map([
      ['idle', NO_USAGE],
      ['a', { ...used(200), outputTokens: 30, estimatedOutputTokens: 4, cachedTokens: 50, waits: 2, waitSeconds: 1.5 }],
    ]);
    expect(usageLines('llama', '2026-11-22', found)).toBe(
      '{"day":"2026-11-22","pool":"llama","tenant":"a","requests":1,"errors":0,"input_tokens":200,"output_tokens":30,' +
        '"output_tokens_estimated":4,"cached_tokens":50,"cached_share":0.25,"waits":2,"wait_seconds":1.5}\n',
    );
  });

  it('a line of 0.1, which has no estimated tokens, is read', () => {
    const line = usageLines('p', 'd', new Map([['a', used(5)]])).replace('"output_tokens_estimated":0,', '');
    expect(line).not.toContain('estimated');
    expect(readUsageLines(line).get('a')).toEqual(used(5));
  });

  it('tenants with the most tokens come first', () => {
    const found = new Map([1, 3, 2].map((tokens) => [`t${tokens}`, used(tokens)]));
    expect([...readUsageLines(usageLines('p', 'd', found)).keys()]).toEqual(['t3', 't2', 't1']);
  });

  it.each(['{', '{"tenant":1}', '{"tenant":"a","requests":-1}', '[]', 'null'])(
    '%s is named as a line that is none',
    (text) => {
      expect(() => readUsageLines(`\n${text}\n`)).toThrow('line 1 is no usage of a tenant');
    },
  );

  it('a restart goes on with what the file of the day had', () => {
    let counted = new Map([['a', used(5)]]);
    const usage = new DailyUsage(
      () => counted,
      '2026-11-22',
      new Map([
        ['a', used(100)],
        ['gone', used(7)],
      ]),
    );
    counted = new Map([
      ['a', used(25)],
      ['b', used(1)],
    ]);
    expect([...usage.tenants].map(([tenant, { inputTokens }]) => [tenant, inputTokens])).toEqual([
      ['a', 120],
      ['gone', 7],
      ['b', 1],
    ]);
  });

  it('another day begins with nothing', () => {
    let counted = new Map([['a', used(5)]]);
    const usage = new DailyUsage(() => counted, '2026-11-22', new Map([['a', used(100)]]));
    usage.begin('2026-11-23');
    counted = new Map([['a', used(9)]]);
    expect([usage.day, usage.tenants.get('a')?.inputTokens]).toEqual(['2026-11-23', 4]);
  });

  it('days end at midnight of UTC', () => {
    const late = Date.parse('2026-11-22T23:59:59.000Z');
    expect([utcDay(late), utcDay(late + 1_000), untilMidnight(late)]).toEqual(['2026-11-22', '2026-11-23', 1_000]);
  });
});
