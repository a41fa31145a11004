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
  const paths = listed.split('\n').filter((path) => path !== '' && !path.endsWith('core-names.ts'));
  return paths.map((path) => ({ path, lines: readFileSync(`${root}${path}`, 'utf8').split('\n') }));
}

/** Places of lines of a file that are too wide. */
function wide(file: { readonly path: string; readonly lines: readonly string[] }, counts: (line: string) => boolean) {
  return file.lines.flatMap((line, index) => (counts(line) ? [`${file.path}:${index + 1}`] : []));
}

const isComment = (line: string) => /^\s*(\/\/|\/?\*)/.test(line);

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
  it('the width of lines of the picker and its core is at most 120 columns', () => {
    const files = tracked('src/*.ts', 'assembly/*.ts');
    expect(files.length).toBeGreaterThan(500);
    expect(files.flatMap((file) => wide(file, (line) => [...line].length > CODE_MAX))).toEqual([]);
  });

  it('the width of comments is at most 120 columns everywhere', () => {
    const files = tracked('*.ts', 'bin/*.js');
    const found = files.flatMap((file) => wide(file, (line) => isComment(line) && [...line].length > CODE_MAX));
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
});
