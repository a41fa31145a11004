// The table of what metrics pages of 1,000 endpoints cost, of the lines of `bench/informer.ts`.
import type { Line } from './commit-lock.ts';

/** Budget of CPU time, in percent of a core (`--scrape-cpu-percent`). */
export const SCRAPE_BUDGET = 25;
export const SCRAPED_ENDPOINTS = 1_000;
/** Endpoints that have traffic, a row for each number. */
export const BUSY_ENDPOINTS: readonly number[] = [0, 50, 500];

function milliseconds(value: unknown): string {
  return `${Math.round(value as number).toLocaleString('en-US')} ms`;
}

export function scrapingTable(lines: readonly Line[]): string {
  const rows = lines.map((line) => {
    const { busy, core_share: share, scrapes_per_second: rate, busy_ms: busyMs, quiet_ms: quietMs } = line;
    const scrapes = Math.round(rate as number).toLocaleString('en-US');
    const interval = busy === 0 ? '–' : milliseconds(busyMs);
    const cells = [busy, `${(100 * (share as number)).toFixed(0)} %`, scrapes, interval, milliseconds(quietMs)];
    return `| ${[...cells, line.faults].join(' | ')} |`;
  });
  return [
    '| endpoints with traffic | of a core | pages a second | interval with traffic | interval without | faults |',
    '| ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
  ].join('\n');
}
