import { expect, test } from 'vitest';
import { ScrapeReports } from '../../dist/src/pool/sources/scrape-reports.js';

const OFTEN = { intervals: { busyMs: 50, quietMs: 700 }, usedShare: 0.2, isOver: false };
const RARE = { intervals: { busyMs: 400, quietMs: 1_000 }, usedShare: 0.254, isOver: false };
const OVER = { intervals: { busyMs: 10_000, quietMs: 10_000 }, usedShare: 0.4, isOver: true };

/** Reports over an interval of 50 ms, and what they have told: level, fields, text. */
function reports() {
  const told: { level: string; fields: object; text: string }[] = [];
  const log = {
    info: (fields: object, text: string) => told.push({ level: 'info', fields, text }),
    warn: (fields: object, text: string) => told.push({ level: 'warn', fields, text }),
  };
  return { told, reports: new ScrapeReports(log, 50) };
}

test('reports of scrapes are silent while only endpoints without traffic are scraped rarely', () => {
  const { told, reports: of } = reports();
  for (let now = 0; now <= 60_000; now += 1_000) of.look(OFTEN, 8, now);
  expect(told).toEqual([]);
});

test('reports of scrapes tell of rare ones with traffic after ten seconds, and again after ten minutes', () => {
  const { told, reports: of } = reports();
  const toldAt: number[] = [];
  for (let now = 0; now <= 620_000; now += 1_000) {
    const before = told.length;
    of.look(RARE, 8, now);
    if (told.length > before) toldAt.push(now);
  }
  expect(toldAt).toEqual([10_000, 610_000]);
  const text = expect.stringMatching(/more rarely than --refresh-metrics-interval.*raise --scrape-cpu-percent/);
  expect(told[0]).toEqual({ level: 'info', fields: { share: 0.25, seconds: 0.4, endpoints: 8 }, text });
});

test('reports of scrapes count the ten seconds anew when scrapes were as often as configured meanwhile', () => {
  const { told, reports: of } = reports();
  of.look(RARE, 8, 0);
  of.look(OFTEN, 8, 9_000);
  of.look(RARE, 8, 10_000);
  of.look(RARE, 8, 19_000);
  expect(told).toEqual([]);
  of.look(RARE, 8, 20_000);
  expect(told).toHaveLength(1);
});

test('reports of scrapes tell once a minute that they take more than their share', () => {
  const { told, reports: of } = reports();
  for (const now of [0, 1_000, 8_000]) of.look(OVER, 300, now);
  const text = expect.stringContaining('scrapes take more than their share of a core');
  expect(told).toEqual([{ level: 'warn', fields: { share: 0.4, seconds: 10, endpoints: 300 }, text }]);
  of.look(OVER, 300, 60_000);
  expect(told.filter(({ level }) => level === 'warn')).toHaveLength(2);
});
