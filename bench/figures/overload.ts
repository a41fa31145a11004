// The table of the lines of `npm run bench -- overload`.
import type { Ages } from '../load/generator.ts';
import type { Line } from './commit-lock.ts';

function ages({ p50, p99, max }: Ages): string {
  return `${p50} / ${p99} / ${max} ms`;
}

function row(line: Line): string {
  const closed = line.load === 'closed';
  const load = closed ? 'closed loop, 128 at a time' : `${line.load} ×`;
  const served = closed
    ? `${Math.round(line.capacity as number).toLocaleString('en-US')} a second`
    : `${(100 * (line.share as number)).toFixed(0)} %`;
  const refused = closed || !line.refused ? '–' : ages(line.refusedMs as Ages);
  const cells = [
    line.picker,
    load,
    served,
    ages(line.placedMs as Ages),
    refused,
    line.unanswered ?? 0,
    `${line.rssMb} MB`,
  ];
  return `| ${cells.join(' | ')} |`;
}

interface Eased {
  readonly sent: number;
  readonly refusals: number;
  readonly placedMs: Ages;
}

/** The load that follows the largest one without a pause. */
function easedRow({ picker, eased, easedTo }: Line): string {
  const { multiple, seconds } = easedTo as { multiple: number; seconds: number };
  const { sent, refusals, placedMs } = eased as Eased;
  const served = `${(100 * (1 - refusals / sent)).toFixed(1)} % of what was sent`;
  return `| ${picker} | ${multiple} ×, the ${seconds} s right after it | ${served} | ${ages(placedMs)} | – | – | – |`;
}

export function overloadTable(lines: readonly Line[]): string {
  return [
    '| picker | load | served, of the maximum | age p50 / p99 / largest of served | of refused | unanswered | RSS |',
    '| --- | --- | ---: | ---: | ---: | ---: | ---: |',
    ...lines.flatMap((line) => (line.eased === undefined ? [row(line)] : [row(line), easedRow(line)])),
  ].join('\n');
}
