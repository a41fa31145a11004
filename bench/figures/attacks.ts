// The table of the lines of `npm run bench -- attacks`.
import type { Ages } from '../load/generator.ts';
import type { Line } from './commit-lock.ts';

function ages(line: Line | undefined): string {
  if (line === undefined) return '–';
  const { p50, p99 } = line.placedMs as Ages;
  return `${p50} / ${p99} ms`;
}

function coldP99(line: Line | undefined): string {
  return line === undefined ? '–' : String((line.coldMs as Ages).p99);
}

export function attackTable(lines: readonly Line[]): string {
  const beside = lines.filter(({ of }) => of === 'picker');
  const rows = beside.map((line) => {
    const control = lines.find(({ of, attack }) => of === 'sink' && attack === line.attack);
    const lost = (line.refusals as number) + (line.failed as number) + (line.unanswered as number);
    const memory = `${line.rssBeforeMb} → ${line.rssAfterMb} MB`;
    const cold = `${coldP99(line)} / ${coldP99(control)} ms`;
    return `| ${line.attack} | ${ages(line)} | ${ages(control)} | ${cold} | ${lost} of ${line.sent} | ${memory} |`;
  });
  return [
    '| peer | beside the picker, p50 / p99 | control, p50 / p99 | first 2 s, p99: picker / control ' +
      '| refused, failed or unanswered | RSS |',
    '| --- | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
  ].join('\n');
}
