import { describe, expect, it } from 'vitest';
import { PacedReport } from '../../dist/src/runtime/paced-report.js';

const MINUTE_MS = 60_000;

/** Reports of a paced report, as [details, count]. */
function reported(
  notes: readonly (readonly [string, number])[],
  atOnce?: number,
): readonly (readonly [string, number])[] {
  const reports: [string, number][] = [];
  const report = new PacedReport<string>((details, count) => reports.push([details, count]), atOnce);
  for (const [details, nowMs] of notes) report.note(details, nowMs);
  return reports;
}

describe('a report that is made once a minute', () => {
  it('the first note is reported at once', () => {
    expect(reported([['a', 5]])).toEqual([['a', 1]]);
  });

  it('notes of the same minute are counted by the next report, which has the latest details', () => {
    expect(
      reported([
        ['a', 0],
        ['b', 1],
        ['c', MINUTE_MS - 1],
        ['d', MINUTE_MS],
      ]),
    ).toEqual([
      ['a', 1],
      ['d', 3],
    ]);
  });

  it('a report of several notes at once makes as many of them in a minute', () => {
    expect(
      reported(
        [
          ['a', 0],
          ['b', 0],
          ['c', 0],
          ['d', MINUTE_MS],
        ],
        2,
      ),
    ).toEqual([
      ['a', 1],
      ['b', 1],
      ['d', 2],
    ]);
  });
});
