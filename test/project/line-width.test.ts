import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Columns of a line of code or of a comment, and of a line of a document. */
const CODE_MAX = 120;
const PROSE_MAX = 140;

/** Documents that are written by a script or hold what another program printed. */
const GENERATED = /^docs\/(plugins|memory-map)\.md$|^docs\/reference\/|\/fixtures\//;

function tracked(...patterns: readonly string[]): readonly { readonly path: string; readonly lines: string[] }[] {
  const listed = execFileSync('git', ['ls-files', ...patterns], { cwd: root, encoding: 'utf8' });
  const paths = listed.split('\n').filter((path) => path !== '');
  return paths.map((path) => ({ path, lines: readFileSync(`${root}${path}`, 'utf8').split('\n') }));
}

/** Places of lines of a file that are too wide. */
function wide(file: { readonly path: string; readonly lines: readonly string[] }, counts: (line: string) => boolean) {
  return file.lines.flatMap((line, index) => (counts(line) ? [`${file.path}:${index + 1}`] : []));
}

/** Recorded data, what another program printed, and files that a script writes. */
const UNWRITTEN = ['*/fixtures/*', 'test/engines/recorded/*', 'src/core/core-names.ts'];

/** Name of the test that begins in a line; empty = none does. */
const nameOf = (line: string) => /^\s*(?:it|test)(?:\.\w+)*\((['"`])(.*?)\1, /.exec(line)?.[2] ?? '';

/** A line of code that the formatter leaves whole: an import, a regular expression, the head of a named test. */
const isWholeCode = (line: string) =>
  /^import .* from '[^']+';$/.test(line) ||
  /^\s*\/[^*/].*\/[a-z]*[,;]?$/.test(line) ||
  /^\s*(?:it|test)(?:\.\w+)*\(['"`].*=>(?: \{)?$/.test(line);

/** Lines of a document outside of fences. */
function prose(lines: readonly string[]): string[] {
  let fenced = false;
  return lines.map((line) => {
    const isFence = line.trimStart().startsWith('```');
    if (isFence) fenced = !fenced;
    return fenced || isFence ? '' : line;
  });
}

/** A line that cannot be broken: a row of a table, a picture, a command in a comment, one span of code. */
const isWhole = (line: string) => /^\s*(\||!\[|<!--|`[^`]*`[.,;:]?\s*$)/.test(line);

describe('the width of lines', () => {
  it('the width of lines of code and of scripts is at most 120 columns', () => {
    const files = tracked('*.ts', '*.js', '*.cjs', '*.mjs', '*.sh', ...UNWRITTEN.map((path) => `:!${path}`));
    expect(files.length).toBeGreaterThan(1500);
    const found = files.flatMap((file) => wide(file, (line) => [...line].length > CODE_MAX && !isWholeCode(line)));
    expect(found).toEqual([]);
  });

  it('the name of a test has at most 120 columns', () => {
    const found = tracked('test/*.test.ts').flatMap((file) =>
      wide(file, (line) => [...nameOf(line)].length > CODE_MAX),
    );
    expect(found).toEqual([]);
  });

  it('the width of documents that people write is at most 140 columns', () => {
    const files = tracked('*.md').filter(({ path }) => !GENERATED.test(path));
    expect(files.length).toBeGreaterThan(30);
    const found = files.flatMap(({ path, lines }) =>
      wide({ path, lines: prose(lines) }, (line) => [...line].length > PROSE_MAX && !isWhole(line)),
    );
    expect(found).toEqual([]);
  });

  it.each(['| a row |', '![a picture](x.png)', '<!-- needs: envoy -->', '`pointsman simulate x.yaml`'])(
    'the width of %s is not judged',
    (line) => expect(isWhole(line)).toBe(true),
  );

  it.each(["import { a } from './a.js';", '  /a pattern/,', "  it('the width is judged', async () => {"])(
    'the width of the code %s is not judged',
    (line) => expect(isWholeCode(line)).toBe(true),
  );

  it.each(["const text = 'import of a text';", '// a comment', '  /** A comment. */', '  return a / b;'])(
    'the width of the code %s is judged',
    (line) => expect(isWholeCode(line)).toBe(false),
  );
});
