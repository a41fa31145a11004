// Writes docs/memory-map.md from the code: `npm run memory-map`. With --print it goes to standard output instead.
//
// Names, numbers and comments come from the constants and the unmanaged classes of assembly/, offsets and sizes of
// regions from the built module itself, so the page cannot say anything else than the code does. A field without unit,
// writer and lock is an error.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../dist/src/core/memory.js';

interface Constant {
  readonly name: string;
  readonly value: number;
  readonly comment: string;
}

const PAGE_BYTES = 65_536;

function source(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}

/** `export const <prefix>NAME: type = value; // comment` lines of a source file; a long comment precedes the line. */
function constants(text: string, prefix: string): Constant[] {
  const above = '(?:^/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n)?';
  const pattern = new RegExp(`${above}^export const ${prefix}(\\w+): \\w+ = ([\\d +]+);(?: // (.*))?$`, 'gm');
  return [...text.matchAll(pattern)].map(([, long, name, value, short]) => ({
    name: name!,
    value: value!.split('+').reduce((sum, part) => sum + Number(part), 0),
    comment: short ?? commentText(long ?? ''),
  }));
}

interface Structure {
  readonly name: string;
  readonly file: string;
  readonly meaning: string;
  readonly bytes: number;
  /** Offset, name, type, meaning, writer, lock. */
  readonly fields: readonly (readonly (string | number)[])[];
}

const typeBytes: Readonly<Record<string, number>> = {
  u8: 1,
  u16: 2,
  u32: 4,
  i32: 4,
  f32: 4,
  usize: 4,
  u64: 8,
  i64: 8,
  f64: 8,
  v128: 16,
};

/** Text of a doc comment without its marks. */
function commentText(comment: string): string {
  return comment
    .replace(/^\s*\/\*\*|\*\/\s*$/g, '')
    .replace(/^\s*\* ?/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Meaning, writer and lock of a field, from `/** unit · writer · lock. *\/`. */
function fieldParts(name: string, comment: string): readonly string[] {
  const parts = commentText(comment).replace(/\.$/, '').split(' · ');
  if (parts.length !== 3)
    throw new Error(`${name}: its comment must say unit · writer · lock, got "${comment.trim()}"`);
  return parts;
}

/**
 * The unmanaged classes of a source text; the compiler lays their fields out in order, each on a multiple of its size.
 */
export function structures(file: string, text: string): Structure[] {
  const classes = /((?:^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?)@unmanaged\n(?:export )?class (\w+) \{\n([\s\S]*?)^\}/gm;
  return [...text.matchAll(classes)].map(([, comment, name, body]) => {
    const members = /((?:^ {2}\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?)^ {2}(private |readonly )?(\w+): (\w+);/gm;
    const fields: (readonly (string | number)[])[] = [];
    let end = 0;
    let alignment = 1;
    for (const [, fieldComment, modifier, field, type] of body!.matchAll(members)) {
      const bytes = typeBytes[type!];
      if (bytes === undefined) throw new Error(`${name}.${field}: type ${type} has no size in scripts/memory-map.ts`);
      const offset = Math.ceil(end / bytes) * bytes;
      end = offset + bytes;
      alignment = Math.max(alignment, bytes);
      // A private field fills a gap.
      if (modifier === 'private ') continue;
      fields.push([offset, `\`${field}\``, type!, ...fieldParts(`${name}.${field}`, fieldComment!)]);
    }
    return { name: name!, file, meaning: commentText(comment!), bytes: Math.ceil(end / alignment) * alignment, fields };
  });
}

/** Every structure of the core, in the order of the files. */
function allStructures(): Structure[] {
  const folder = new URL('../assembly/', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  return files.sort().flatMap((name) => structures(`assembly/${name}`, source(`assembly/${name}`)));
}

function structureText({ name, file, meaning, bytes, fields }: Structure): string {
  return `### ${name}

${`${meaning} ${bytes}`.trim()} bytes, \`${file}\`.

${table(['offset', 'field', 'type', 'unit and meaning', 'writer', 'lock'], fields)}
`;
}

/** Type, meaning, writer and lock of an endpoint column, from `writer, type: meaning`. */
function columnParts({ name, comment }: Constant): readonly string[] {
  const match = /^(control|commit|index|any)(?:, ([^:]+))?(?:: (.*))?$/.exec(comment);
  if (match === null) throw new Error(`COLUMN_${name}: its comment must begin with control, commit, index or any`);
  const [, by, type = 'u32', meaning = ''] = match;
  const lock = by === 'commit' || by === 'index' ? `${by} lock` : 'none';
  return [type, meaning, by === 'control' ? 'control thread' : 'any thread', lock];
}

/** Type, meaning, writer and lock of a column of the gate: commit lock unless its comment says otherwise. */
function roomParts({ comment }: Constant): readonly string[] {
  const match = /^((?:[uif](?:32|64))(?: × \w+| \([^)]*\))?)(?:: (.*))?$/.exec(comment);
  const [type, meaning] = match === null ? ['f32', comment] : [match[1]!, match[2] ?? ''];
  return [type, meaning, 'any thread', /without a lock/.test(meaning) ? 'none' : 'commit lock'];
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
      return [value, `\`${name}\``, offset, bytes(size), ...comment.split(' · ')];
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
  const rooms = constants(source('assembly/gate/layout.ts'), 'ROOM_');
  const sizes = Object.entries(defaultPoolSizes).map(([name, value]) => [`\`${name}\``, value.toLocaleString('en-US')]);
  const { rows, total } = regions(memoryText);
  return `# Memory map

Made by \`npm run memory-map\` from the sources in \`assembly/\` and the built module; do not edit.

One shared memory per pool, made at its full size and never grown. Pages that nobody has written cost nothing: what a
pool really takes is what it has used. Bytes 0 to ${PAGE_BYTES - 1} stay unused, because the compiler may put static
data there, which every instantiation writes again.

## Sizes that this page stands for

The defaults; each is a bound.

${table(['size', 'value'], sizes)}

## Regions

${bytes(total)} in all, each region on a boundary of 64 KiB.

${table(['number', 'region', 'offset', 'size', 'content', 'writer', 'lock'], rows)}

## Header

Byte offsets from ${PAGE_BYTES.toLocaleString('en-US')}; unsigned 32-bit words unless said otherwise.

${table(
  ['offset', 'word', 'meaning'],
  header.map(({ name, value, comment }) => [value.toLocaleString('en-US'), `\`${name}\``, comment]),
)}

## Endpoint columns

Region \`ENDPOINTS\` is a structure of arrays: one array of 32-bit cells per column, one cell per endpoint slot.
All threads read without a lock where a slightly old number does no harm.

${table(
  ['column', 'name', 'type', 'unit and meaning', 'writer', 'lock'],
  columns.map((column) => [column.value, `\`${column.name}\``, ...columnParts(column)]),
)}

Bits of \`KNOWN\`: ${signals.map(({ name, value }) => `${value} = \`${name}\``).join(', ')}.

## Gate columns

Region \`GATE\` has columns of the same form behind its head.

${table(
  ['column', 'name', 'type', 'unit and meaning', 'writer', 'lock'],
  rooms.map((room) => [room.value, `\`${room.name}\``, ...roomParts(room)]),
)}

## Structures

Records in the regions, as the unmanaged classes of the core describe them. "none" as lock: one writer, \
or words that are read
and written atomically.

${allStructures().map(structureText).join('\n')}`;
}

if (process.argv[1] === import.meta.filename) {
  if (process.argv.includes('--print')) process.stdout.write(memoryMap());
  else writeFileSync(new URL('../docs/memory-map.md', import.meta.url), memoryMap());
}
