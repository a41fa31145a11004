// The table of the lines of `npm run bench -- attacks`.
import { round } from '../bench.ts';
import type { Ages } from '../load/generator.ts';
import type { Line } from './commit-lock.ts';

type Ms = (line: Line) => number;

const p50: Ms = ({ placedMs }) => (placedMs as Ages).p50;
const p99: Ms = ({ placedMs }) => (placedMs as Ages).p99;
const coldP99: Ms = ({ coldMs }) => (coldMs as Ages).p99;

/** Median of the rounds, with their range where there are several. */
function rounds(lines: readonly Line[], figure: (line: Line) => number): string {
  const sorted = lines.map((line) => round(figure(line))).sort((a, b) => a - b);
  if (sorted.length === 0) return '–';
  const median = String(sorted[sorted.length >> 1]);
  return sorted.length === 1 ? median : `${median} (${sorted[0]}–${sorted.at(-1)})`;
}

function sum(lines: readonly Line[], ...names: readonly string[]): number {
  return lines.reduce((total, line) => total + names.reduce((part, name) => part + (line[name] as number), 0), 0);
}

/** A row for each attack, of its rounds beside the picker and beside the control. */
export function attackTable(lines: readonly Line[]): string {
  const rows = [...new Set(lines.map(({ attack }) => attack))].map((attack) => {
    const picker = lines.filter((line) => line.attack === attack && line.of !== 'sink');
    const control = lines.filter((line) => line.attack === attack && line.of === 'sink');
    const both = (figure: Ms) => `${rounds(picker, figure)} | ${rounds(control, figure)}`;
    const lost = `${sum(picker, 'refusals', 'failed', 'unanswered')} of ${sum(picker, 'sent')}`;
    const grown = rounds(picker, ({ rssBeforeMb, rssAfterMb }) => (rssAfterMb as number) - (rssBeforeMb as number));
    return `| ${attack} | ${rounds(picker, p50)} | ${both(p99)} | ${both(coldP99)} | ${lost} | ${grown} |`;
  });
  return [
    '| peer | p50, ms | p99, ms | of the control | first 2 s: p99, ms | of the control ' +
      '| refused, failed or unanswered | RSS grows, MB |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
  ].join('\n');
}
