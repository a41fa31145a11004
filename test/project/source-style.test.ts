import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

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
  it('that are numbers or texts are in capitals', async () => {
    const wrong = violations(await sources('{src,scripts}/**/*.ts'), (name) => !/^[A-Z][A-Z0-9_]*$/.test(name));
    expect(wrong).toEqual([]);
  });

  it('that are bounds end in _MAX or _MIN', async () => {
    expect(violations(await sources('{src,scripts}/**/*.ts'), isOtherBound)).toEqual([]);
  });

  it('are found by their declaration', () => {
    const text =
      "const waitMs = 5;\nexport const MOST_BANDS = 24;\nconst plugin = definePlugin({});\nconst hint = 'x';\n";
    expect(literalConstants(text)).toEqual(['waitMs', 'MOST_BANDS', 'hint']);
  });

  it.each(['MOST_BANDS', 'MAX_WAIT_MS', 'RETRY_MOST_SECONDS'])('called %s are bounds of another style', (name) => {
    expect(isOtherBound(name)).toBe(true);
  });

  it.each(['WAIT_MS_MAX', 'ALMOST_FULL'])('called %s are not', (name) => {
    expect(isOtherBound(name)).toBe(false);
  });
});

describe('files of src', () => {
  it('have at most 500 lines, unless they are generated', async () => {
    const written = (await sources('src/**/*.ts')).filter(({ path }) => path !== 'src/core/core-names.ts');
    const long = written.filter(({ text }) => text.trimEnd().split('\n').length > 500);
    expect(long.map(({ path }) => path)).toEqual([]);
  });
});
