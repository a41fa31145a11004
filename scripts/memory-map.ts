// Writes docs/memory-map.md from the code: `npm run memory-map`. With --print it goes to standard output instead.
//
// Names, numbers and comments come from assembly/memory.ts and assembly/endpoints.ts, offsets and sizes from the built
// module itself, so the page cannot say anything else than the code does.
import { readFileSync, writeFileSync } from 'node:fs';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../dist/core/memory.js';

interface Constant {
  readonly name: string;
  readonly value: number;
  readonly comment: string;
}

const PAGE_BYTES = 65_536;

function source(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}

/** `export const <prefix>NAME: type = value; // comment` lines of a source file. */
function constants(text: string, prefix: string): Constant[] {
  const pattern = new RegExp(`^export const ${prefix}(\\w+): \\w+ = ([\\d +]+);(?: // (.*))?$`, 'gm');
  return [...text.matchAll(pattern)].map(([, name, value, comment]) => ({
    name: name!,
    value: value!.split('+').reduce((sum, part) => sum + Number(part), 0),
    comment: comment ?? '',
  }));
}

function table(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

function bytes(count: number): string {
  if (count >= 1 << 20) return `${(count / (1 << 20)).toFixed(1)} MiB`;
  return count >= 1024 ? `${(count / 1024).toFixed(0)} KiB` : `${count} B`;
}

function regions(memoryText: string): { rows: (string | number)[][]; total: number } {
  const core = attachCore(createPoolMemory(defaultPoolSizes), 0);
  let total = 2 * PAGE_BYTES;
  const rows = constants(memoryText, 'REGION_')
    .filter(({ name }) => name !== 'COUNT')
    .map(({ name, value, comment }) => {
      const size = core.call.regionSize(value) >>> 0;
      total += size;
      const offset = (core.call.regionAddress(value) >>> 0).toLocaleString('en-US');
      return [value, `\`${name}\``, offset, bytes(size), comment];
    });
  return { rows, total };
}

/** The page as Markdown. */
export function memoryMap(): string {
  const memoryText = source('assembly/memory.ts');
  const endpointsText = source('assembly/endpoints.ts');
  const header = constants(memoryText, 'HEADER_');
  const signals = constants(endpointsText, 'SIGNAL_');
  const columns = constants(endpointsText, 'COLUMN_');
  const sizes = Object.entries(defaultPoolSizes).map(([name, value]) => [`\`${name}\``, value.toLocaleString('en-US')]);
  const { rows, total } = regions(memoryText);
  return `# Memory map

Made by \`npm run memory-map\` from \`assembly/memory.ts\`, \`assembly/endpoints.ts\` and the built module; do not edit.

One shared memory per pool, made at its full size and never grown. Pages that nobody has written cost nothing: what a
pool really takes is what it has used. Bytes 0 to ${PAGE_BYTES - 1} stay unused, because the compiler may put static
data there, which every instantiation writes again.

## Sizes that this page stands for

The defaults; each is a bound.

${table(['size', 'value'], sizes)}

## Regions

${bytes(total)} in all, each region on a boundary of 64 KiB.

${table(['number', 'region', 'offset', 'size', 'what, and who writes it'], rows)}

## Header

Byte offsets from ${PAGE_BYTES.toLocaleString('en-US')}; unsigned 32-bit words unless said otherwise.

${table(
  ['offset', 'word', 'meaning'],
  header.map(({ name, value, comment }) => [value.toLocaleString('en-US'), `\`${name}\``, comment]),
)}

## Endpoint columns

Region \`ENDPOINTS\` is a structure of arrays: one array of 32-bit cells per column, one cell per endpoint slot. "control" =
written by the control thread, "commit" and "index" = by any thread under that lock; all threads read without a lock.

${table(
  ['column', 'name', 'writer and meaning'],
  columns.map(({ name, value, comment }) => [value, `\`${name}\``, comment]),
)}

Bits of \`KNOWN\`: ${signals.map(({ name, value }) => `${value} = \`${name}\``).join(', ')}.
`;
}

if (process.argv[1] === import.meta.filename) {
  if (process.argv.includes('--print')) process.stdout.write(memoryMap());
  else writeFileSync(new URL('../docs/memory-map.md', import.meta.url), memoryMap());
}
