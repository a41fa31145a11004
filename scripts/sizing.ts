// What a picker costs on this machine, by requests, prompt size, endpoints and chunks: `npm run sizing [-- --short] [--
// --write]`.
//
// Measures the CPU time of a picker's process under loads that differ in one dimension each, fits the formula of
// docs/sizing.md, and prints it with a table. --write puts both into the page. Needs a build, Linux, and a second core
// for the load.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type LoadShape, measureLoad, measureStart, OWN_COMMAND } from '../bench/process/load.ts';
import { renew } from './performance-doc.ts';
import { type Costs, fitted, type Measured, sizingText } from './sizing-formula.ts';

const { values } = parseArgs({
  options: { short: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } },
});
const times = values.short ? { warmMs: 1_500, measuredMs: 1_500 } : { warmMs: 8_000, measuredMs: 8_000 };
const ROUNDS = values.short ? 1 : 3;

const BASE: LoadShape = { promptBytes: 4_096, chunks: 1, endpoints: 8, concurrency: 16 };
/** One dimension moves at a time, far enough that its share is seen beside the rest. */
const SHAPES: readonly LoadShape[] = [
  BASE,
  { ...BASE, promptBytes: 65_536 },
  { ...BASE, promptBytes: 400_000, concurrency: 8 },
  { ...BASE, endpoints: 64 },
  { ...BASE, endpoints: 512 },
  { ...BASE, chunks: 20 },
  { ...BASE, chunks: 100 },
];

const rows: Measured[] = [];
for (const shape of SHAPES) {
  let cpuUs = Number.POSITIVE_INFINITY;
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const result = await measureLoad(OWN_COMMAND, shape, times);
    // Whatever else runs on the machine only makes the figure larger.
    cpuUs = Math.min(cpuUs, result.cpuUs);
    bytes = Math.max(bytes, result.residentBytes);
  }
  rows.push({ shape, cpuUs, residentBytes: bytes });
  console.error(`${JSON.stringify(shape)}: ${cpuUs.toFixed(0)} µs, ${(bytes / 1e6).toFixed(0)} MB`);
}
const { idleBytes } = await measureStart(OWN_COMMAND);
const costs: Costs = fitted(rows);
const text = sizingText(
  rows,
  costs,
  idleBytes,
  `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.version}`,
);
console.log(text);
if (values.write) {
  const page = fileURLToPath(new URL('../docs/sizing.md', import.meta.url));
  writeFileSync(page, renew(readFileSync(page, 'utf8'), text));
}
