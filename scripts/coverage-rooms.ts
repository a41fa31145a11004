// Prints the coverage of each room of src/ and tools/, lowest first, from the summary that c8 has written: `npm run
// coverage`.

import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Counts {
  readonly total: number;
  readonly covered: number;
}

const root = fileURLToPath(new URL('../', import.meta.url));
const summary = JSON.parse(readFileSync(`${root}coverage/coverage-summary.json`, 'utf8')) as Record<
  string,
  { readonly lines: Counts; readonly branches: Counts }
>;
const rooms = new Map<string, { lines: Counts; branches: Counts }>();
const sum = (a: Counts, b: Counts): Counts => ({ total: a.total + b.total, covered: a.covered + b.covered });
const none: Counts = { total: 0, covered: 0 };
for (const [file, { lines, branches }] of Object.entries(summary)) {
  const room = /^((?:src|tools)\/[^/]+)\//.exec(relative(root, file))?.[1];
  if (room === undefined) continue;
  const before = rooms.get(room) ?? { lines: none, branches: none };
  rooms.set(room, { lines: sum(before.lines, lines), branches: sum(before.branches, branches) });
}
const percent = ({ total, covered }: Counts) => (total === 0 ? 100 : (100 * covered) / total);
const rows = [...rooms].sort(([, a], [, b]) => percent(a.lines) - percent(b.lines));
console.log(`${'room'.padEnd(24)} ${'lines'.padStart(8)} ${'branches'.padStart(9)}`);
for (const [room, { lines, branches }] of rows) {
  const figures = `${percent(lines).toFixed(1).padStart(6)} % ${percent(branches).toFixed(1).padStart(7)} %`;
  console.log(`${room.padEnd(24)} ${figures}`);
}
console.log(
  `lowest: ${rows
    .slice(0, 3)
    .map(([room]) => room)
    .join(', ')}`,
);
