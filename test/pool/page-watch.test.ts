import { describe, expect, it } from 'vitest';
import { PageWatch } from '../../dist/src/pool/sources/page-watch.js';

const QUIET = { waiting: 0, running: 0, kvUsage: 0.1 };
const page = (served: number, cpu = 0) =>
  Buffer.from(`# TYPE engine_requests counter\nengine_requests_total ${served}\nprocess_cpu_seconds_total ${cpu}\n`);

/** A page that is scraped ten times a second. */
function watched() {
  const watch = new PageWatch();
  let nowMs = 1_000_000;
  let ended = 0;
  /** @param perScrape requests that end between two scrapes */
  const scrape = (seconds: number, text: (scrape: number) => Buffer, perScrape: number, signals = QUIET) => {
    for (let i = 0; i < seconds * 10; i++) {
      nowMs += 100;
      ended += perScrape;
      watch.note(signals, text(i), ended, nowMs);
    }
    return watch.isFrozen;
  };
  return { watch, scrape };
}

describe('a metrics page', () => {
  it('a metrics page that stands still while requests end is frozen, and no longer once it changes', () => {
    const { scrape } = watched();
    expect(scrape(2, () => page(7), 0)).toBe(false);
    expect(scrape(10, () => page(7), 1)).toBe(true);
    expect(scrape(3, (i) => page(8 + i), 1)).toBe(false);
  });

  it('a metrics page that stands still while nothing ends is not frozen', () => {
    expect(watched().scrape(60, () => page(7), 0)).toBe(false);
  });

  it('a metrics page whose counters move is not frozen, although its load stays the same', () => {
    expect(watched().scrape(60, (i) => page(i), 1)).toBe(false);
  });

  it('a metrics page is frozen although the process that writes it goes on to count its own time', () => {
    expect(watched().scrape(12, (i) => page(7, i), 1)).toBe(true);
  });

  it('a metrics page is frozen after ten requests and five seconds, not after either alone', () => {
    const few = watched();
    few.scrape(2, () => page(7), 0);
    few.scrape(0.9, () => page(7), 1);
    expect(few.scrape(30, () => page(7), 0)).toBe(false);
    const short = watched();
    short.scrape(2, () => page(7), 0);
    expect(short.scrape(4, () => page(7), 10)).toBe(false);
  });

  it('a metrics page that stands still until a burst has ended is read again before it is judged', () => {
    const { scrape } = watched();
    scrape(60, () => page(7), 0);
    expect(scrape(1, () => page(7), 20)).toBe(false);
    expect(scrape(30, () => page(27), 0)).toBe(false);
  });

  it('a metrics page without counters is never frozen', () => {
    expect(watched().scrape(30, () => Buffer.from('# TYPE running gauge\nrunning 0\n'), 1)).toBe(false);
  });
});
