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
    const wrong = violations(await sources('{src,scripts}/**/*.ts'), (name) => !/^[A-Z][A-Z0-9_]*$/.test(name));
    expect(wrong).toEqual([]);
  });

  it('constants of a module that are bounds end in _MAX or _MIN', async () => {
    expect(violations(await sources('{src,scripts}/**/*.ts'), isOtherBound)).toEqual([]);
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

describe('files of src', () => {
  it('files of src have at most 500 lines, unless they are generated', async () => {
    const written = (await sources('src/**/*.ts')).filter(({ path }) => path !== 'src/core/core-names.ts');
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

  it('names are found behind it, test and their tables', () => {
    const text = `it('one', () => {});\n  test("two", async () => {});\n  it.each([\n    ['a', 1],\n  ])(\n    'three %s', (a) => {},\n  );\n`;
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
