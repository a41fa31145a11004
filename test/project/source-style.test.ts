import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { lacksSubject, testNames } from './test-names.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

async function sources(pattern: string): Promise<readonly SourceFile[]> {
  const files: SourceFile[] = [];
  for await (const path of glob(pattern, { cwd: root }))
    files.push({ path, text: readFileSync(`${root}${path}`, 'utf8') });
  return files;
}

/** Names of the constants that a module declares as a number or a text, as far as the first line tells. */
function literalConstants(text: string): readonly string[] {
  return [...text.matchAll(/^(?:export )?const (\w+)(?:: \w+)? =\s+(?:-?\d|['"`])/gm)].map(([, name]) => name!);
}

/** Whether a name has another word for a bound than _MAX or _MIN at its end. */
function isOtherBound(name: string): boolean {
  return /^(MAX|MIN|MOST|LEAST|LONGEST|SHORTEST)(_|$)|_(MOST|LEAST)(_|$)/.test(name);
}

const violations = (files: readonly SourceFile[], wrong: (name: string) => boolean) =>
  files.flatMap(({ path, text }) =>
    literalConstants(text)
      .filter(wrong)
      .map((name) => `${path}: ${name}`),
  );

describe('constants of a module', () => {
  it('constants of a module that are numbers or texts are in capitals', async () => {
    const wrong = violations(await sources('{src,tools,scripts}/**/*.ts'), (name) => !/^[A-Z][A-Z0-9_]*$/.test(name));
    expect(wrong).toEqual([]);
  });

  it('constants of a module that are bounds end in _MAX or _MIN', async () => {
    const files = await sources('{src,tools,scripts,assembly}/**/*.ts');
    // Operations of the core are no bounds.
    expect(violations(files, (name) => isOtherBound(name) && !name.startsWith('OP_'))).toEqual([]);
  });

  it('constants of a module are found by their declaration', () => {
    const text =
      "const waitMs = 5;\nexport const MOST_BANDS = 24;\nconst plugin = definePlugin({});\nconst hint = 'x';\n";
    expect(literalConstants(text)).toEqual(['waitMs', 'MOST_BANDS', 'hint']);
  });

  it.each(['MOST_BANDS', 'MAX_WAIT_MS', 'RETRY_MOST_SECONDS'])(
    'constants of a module called %s are bounds of another style',
    (name) => {
      expect(isOtherBound(name)).toBe(true);
    },
  );

  it.each(['WAIT_MS_MAX', 'ALMOST_FULL'])('constants of a module called %s are not', (name) => {
    expect(isOtherBound(name)).toBe(false);
  });
});

describe('files of src, tools and assembly', () => {
  it('files of src, tools and assembly have at most 500 lines, unless they are generated', async () => {
    const written = (await sources('{src,tools,assembly}/**/*.ts')).filter(
      ({ path }) => path !== 'src/core/core-names.ts',
    );
    const long = written.filter(({ text }) => text.trimEnd().split('\n').length > 500);
    expect(long.map(({ path }) => path)).toEqual([]);
  });
});

describe('names of tests', () => {
  it('every test name has a subject, as CONTRIBUTING says', async () => {
    const files = await sources('test/**/*.test.ts');
    const names = files.flatMap(({ path, text }) => testNames(text).map((name) => ({ path, name })));
    expect(names.length).toBeGreaterThan(1000);
    expect(names.filter(({ name }) => lacksSubject(name)).map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
  });

  it('names of tests names are found behind it, test and their tables', () => {
    const text =
      `it('one', () => {});\n  test("two", async () => {});\n  it.each([\n    ['a', 1],\n  ])(\n    'three %s', (a) ` +
      '=> {},\n  );\n';
    expect(testNames(text)).toEqual(['one', 'two', 'three %s']);
  });

  it.each([
    'answers 404 for another path',
    'is none by default',
    'without endpoints is refused',
    'refuses it twice',
    'goes on',
    'copies what stays',
  ])('the name "%s" has no subject', (name) => expect(lacksSubject(name)).toBe(true));

  it.each([
    'the ledger refuses a second release',
    'answers that are late count',
    'labels of other endpoints change nothing',
    'SIGTERM ends the picker',
    '%s is refused',
  ])('the name "%s" has a subject', (name) => expect(lacksSubject(name)).toBe(false));
});

/** Index of the bracket that closes the one at `open`. */
function closingBracket(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')' && --depth === 0) return at;
  }
  return text.length;
}

/** Parts of a text between separators that no bracket encloses. */
function partsOf(text: string, separator: RegExp): string[] {
  const parts = [''];
  let depth = 0;
  for (const letter of text) {
    if (letter === '(') depth++;
    if (letter === ')') depth--;
    if (depth === 0 && separator.test(letter)) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim());
}

/** Arguments of an access that are values, not address or offset. */
function valuesOf(operation: string): number {
  if (operation === 'load') return 0;
  return operation === 'cmpxchg' || operation === 'wait' ? 2 : 1;
}

/**
 * Accesses to memory of an AssemblyScript text whose address or offset holds a number: `load<u32>(at + 4)`,
 * `store<f32>(at, 0, 8)`. Bytes (u8) are letters of a text, and vectors belong to kernels.
 */
function bareNumbers(source: string): string[] {
  const text = source.replace(/\/\/.*$/gm, '');
  const access = /(?<![\w.])(?:atomic\.)?(load|store|add|and|or|xor|xchg|cmpxchg|wait)<(?!u8>)\w+>\(/g;
  return [...text.matchAll(access)].flatMap((match) => {
    const open = match.index + match[0].length - 1;
    const [address, ...rest] = partsOf(text.slice(open + 1, closingBracket(text, open)), /,/);
    const parts = [address!, ...rest.slice(valuesOf(match[1]!))].flatMap((part) => partsOf(part, /[+-]/));
    return parts.some((part) => /^(0x[\da-f]+|\d+)$/.test(part)) ? [text.slice(match.index, open + 20).trim()] : [];
  });
}

describe('an access to memory in assembly/', () => {
  it('an access to memory names what it reads or writes', async () => {
    const files = (await sources('assembly/**/*.ts')).filter(({ path }) => path !== 'assembly/memory.ts');
    expect(files.flatMap(({ path, text }) => bareNumbers(text).map((one) => `${path}: ${one}`))).toEqual([]);
  });

  it.each([
    'load<u32>(at, 4)',
    'load<f32>(columnOf(a, b) + 12)',
    'store<f64>(at - 8, value)',
    'store<u32>(at, value, 64)',
    'atomic.store<u32>(lock, 0, 8)',
    'atomic.load<u32>(0x40 + ring)',
  ])('an access with the bare number of %s is found', (text) => {
    expect(bareNumbers(`  const x = ${text};`)).toHaveLength(1);
  });

  it.each([
    'load<u32>(at, RING_READ)',
    'load<u8>(p + 1)',
    'store<u32>(at, 0)',
    'atomic.store<u32>(lock, 0, LOCK_SLEEPERS)',
    'load<u64>(list + ((<usize>(count - 1)) << 3))',
    'v128.load(at, 16)',
  ])('an access as %s is allowed', (text) => {
    expect(bareNumbers(`  const x = ${text};`)).toEqual([]);
  });
});
