import type { z } from 'zod';

/** All lines of a trace, or one half of them. @throws Error when that is none */
export function part<Line>(path: string, lines: readonly Line[], which: 'all' | 'first' | 'second'): readonly Line[] {
  const middle = lines.length >> 1;
  const chosen = which === 'all' ? lines : which === 'first' ? lines.slice(0, middle) : lines.slice(middle);
  if (chosen.length === 0) throw new Error(`${path}: the ${which} half of a trace of ${lines.length} lines is empty`);
  return chosen;
}

/** Lines of a JSONL file, checked. @throws Error with the number of the first bad line */
export function jsonLines<Schema extends z.ZodType>(path: string, text: string, schema: Schema): z.output<Schema>[] {
  const lines = numbered(path, text);
  return lines.map(([number, line]) => {
    const bad = (what: string) => new Error(`${path}:${number}: ${what}`);
    let data: unknown;
    try {
      data = JSON.parse(line);
    } catch {
      throw bad('not a JSON document');
    }
    const checked = schema.safeParse(data);
    if (checked.success) return checked.data;
    const issue = checked.error.issues[0]!;
    throw bad(`${issue.path.join('.') || 'line'}: ${issue.message}`);
  });
}

/** Lines that are not blank, with their numbers. @throws Error when there is none */
function numbered(path: string, text: string): (readonly [number: number, line: string])[] {
  const lines = text.split('\n').map((line, i) => [i + 1, line] as const);
  const full = lines.filter(([, line]) => line.trim() !== '');
  if (full.length === 0) throw new Error(`${path}: the trace is empty`);
  return full;
}

/** A row of a CSV trace by the names of its columns. */
export interface CsvRow {
  readonly line: number;
  readonly cells: Readonly<Record<string, string>>;
}

/**
 * Rows of a CSV file whose first line names the columns, in any order; cells may be quoted, but hold no comma and no
 * line break.
 */
export function csvRows(path: string, text: string): { readonly columns: readonly string[]; readonly rows: CsvRow[] } {
  const [head, ...rest] = numbered(path, text.replace(/^\ufeff/, ''));
  const split = (line: string) =>
    line.split(',').map((cell) =>
      cell
        .trim()
        .replace(/^"(.*)"$/, '$1')
        .trim(),
    );
  const columns = split(head![1]);
  const rows = rest.map(([line, text]) => {
    const cells = split(text);
    if (cells.length !== columns.length) {
      throw new Error(`${path}:${line}: ${cells.length} cells for ${columns.length} columns: quote no commas`);
    }
    return { line, cells: Object.fromEntries(columns.map((name, i) => [name, cells[i]!])) };
  });
  if (rows.length === 0) throw new Error(`${path}: the trace is empty: it has a line of names and no rows`);
  return { columns, rows };
}

/** Date and time, with `T` or a blank between them; without a zone it is UTC. */
const ISO_TIME = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:[.,]\d+)?)\s*(Z|[+-]\d\d:?\d\d)?$/i;

/** Milliseconds of an ISO 8601 time, with its fraction; undefined when it is none. */
export function isoMs(text: string): number | undefined {
  const match = ISO_TIME.exec(text.trim());
  if (match === null) return undefined;
  const [clock, fraction = ''] = match[2]!.split(/[.,]/);
  const ms = Date.parse(`${match[1]}T${clock}${match[3] ?? 'Z'}`);
  return Number.isNaN(ms) ? undefined : ms + Number(`0.${fraction || '0'}`) * 1e3;
}
