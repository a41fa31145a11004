import type { ComparedRow, Measured, MeasuredRow } from './benchmark.js';
import type { Figure } from './paired-samples.js';

/** Widths of the columns: with the blanks between them a line has at most 80 characters. */
const NAME_WIDTH = 31;
const KIND_WIDTH = 8;
const NS_WIDTH = 11;
const RANGE_WIDTH = 15;

export interface BenchConditions {
  readonly file: string;
  readonly other: string | undefined;
  readonly endpoints: number;
  readonly blocks: number;
}

/** Rows without figures (`--list`). */
export function listText(rows: readonly Pick<MeasuredRow, 'name' | 'kind' | 'type'>[]): string {
  return lines(rows.map(({ name, kind, type }) => [cell(name, NAME_WIDTH), kind.padEnd(KIND_WIDTH), type]));
}

/** Figures of one configuration. */
export function benchText(measured: Measured<MeasuredRow>, conditions: BenchConditions): string {
  const rows = measured.rows.map(({ name, kind, nsPerDecision, nsPerEndpoint }) => [
    ...[cell(name, NAME_WIDTH), kind.padEnd(KIND_WIDTH), number(nsPerDecision.median).padStart(NS_WIDTH)],
    ...[range(nsPerDecision).padStart(RANGE_WIDTH), number(nsPerEndpoint).padStart(NS_WIDTH)],
  ]);
  const head = [
    ...['part'.padEnd(NAME_WIDTH), 'kind'.padEnd(KIND_WIDTH), 'ns/decision'.padStart(NS_WIDTH)],
    ...['95 %'.padStart(RANGE_WIDTH), 'ns/endpoint'.padStart(NS_WIDTH)],
  ];
  return `${headText(measured.rounds, conditions)}\n${lines([head, ...rows])}${notesText(measured.notes)}`;
}

/** Figures of two configurations beside each other. */
export function compareText(measured: Measured<ComparedRow>, conditions: BenchConditions): string {
  const rows = measured.rows.map(({ name, nsPerDecision, otherNsPerDecision, ratio }) => [
    ...[cell(name, NAME_WIDTH), number(nsPerDecision.median).padStart(NS_WIDTH)],
    number(otherNsPerDecision.median).padStart(NS_WIDTH),
    (ratio === undefined ? '-' : number(ratio.median)).padStart(KIND_WIDTH),
    (ratio === undefined ? '' : range(ratio)).padStart(RANGE_WIDTH),
  ]);
  const head = [
    ...['part'.padEnd(NAME_WIDTH), 'ns/decision'.padStart(NS_WIDTH), 'other'.padStart(NS_WIDTH)],
    ...['ratio'.padStart(KIND_WIDTH), '95 %'.padStart(RANGE_WIDTH)],
  ];
  return `${headText(measured.rounds, conditions)}\n${lines([head, ...rows])}${notesText(measured.notes)}`;
}

function headText(rounds: number, { file, other, endpoints, blocks }: BenchConditions): string {
  const against = other === undefined ? '' : `, other: ${other}`;
  return `${file}${against}\n${endpoints} endpoints, ${blocks} blocks a prompt, medians of ${rounds} rounds\n`;
}

function notesText(notes: readonly string[]): string {
  return notes.map((note) => `note: ${note}\n`).join('');
}

function lines(rows: readonly (readonly string[])[]): string {
  return `${rows.map((row) => row.join(' ').trimEnd()).join('\n')}\n`;
}

function cell(text: string, width: number): string {
  return text.length <= width ? text.padEnd(width) : `${text.slice(0, width - 1)}…`;
}

function range({ low, high }: Figure): string {
  return `${number(low)}…${number(high)}`;
}

/** Three digits: more than such measurements hold. */
function number(value: number): string {
  if (Math.abs(value) < 0.005) return '0';
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString('en-US', { maximumFractionDigits: 3 });
}
