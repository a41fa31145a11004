import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { coveredCore, LAST_CELL } from '../../scripts/mutations/core-coverage.ts';
import { coreMutantsOf } from '../../scripts/mutations/core-mutants.ts';
import { EQUIVALENT } from '../../scripts/mutations/equivalent.ts';
import { readGraph, testsReaching } from '../../scripts/mutations/import-graph.ts';
import { applied, mutantsOf } from '../../scripts/mutations/mutants.ts';
import { CORE_ROOM } from '../../scripts/mutations/rooms.ts';
import { equivalentReason, mutantsOfRoom, sample } from '../../scripts/mutations/sample.ts';
import { Trial } from '../../scripts/mutations/trial.ts';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const MODULE = 'dist/src/small/older.js';
const LIMIT_SECONDS = 60;

/** A repository of one room, with one module and its test. */
const FILES = {
  'package.json': '{"type":"module"}',
  '.gitignore': 'node_modules\ndist\n',
  'test/small/older.test.ts':
    "import { expect, it } from 'vitest';\nimport { older } from '../../dist/src/small/older.js';\n" +
    "it('the older one is found', () => expect([older(2, 1), older(1, 2)]).toEqual([true, false]));\n",
  'test/other/far.test.ts': "import '../../dist/src/other/user.js';\n",
  'test/other/harness.ts': "import '../../dist/src/other/user.js';\n",
  'test/other/further.test.ts': "import './harness.js';\n",
  'dist/src/other/user.js': "export { older } from '../small/older.js';\n",
  [MODULE]: 'export function older(a, b) {\n  return a > b;\n}\n',
};

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'small-room-'));
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'));
  execFileSync('git', ['init', '-q'], { cwd: root });
});
afterAll(() => rmSync(root, { recursive: true }));

const textOf = (path: string) => readFileSync(join(repository, path), 'utf8');
const changed = (text: string) => mutantsOf(text).map((mutant) => applied(text, mutant));

describe('mutants', () => {
  it.each([
    ['a < b;', ['a >= b;', 'a <= b;']],
    ['a === b;', ['a !== b;']],
    ['a && !b;', ['a || !b;', 'a && b;']],
    ['a + 1;', ['a - 1;']],
    ['a += 2;', [';', 'a -= 2;']],
    ['call(true);', [';', 'call(false);']],
    ['if (a) b();', ['if (false) b();', 'if (a) ;']],
    ['const f = () => { return a; };', ['const f = () => { return undefined; };']],
  ])('mutants of %s change one thing each', (text, expected) => expect(changed(text).sort()).toEqual(expected.sort()));

  it.each(["'a' + b;", 'a + `b`;', 'const f = () => { return undefined; };', 'a ?? b;'])(
    'mutants of %s are none',
    (text) => expect(mutantsOf(text)).toEqual([]),
  );

  it('mutants name the line and its text before and after the change', () => {
    const [first] = mutantsOf('let a = 1;\n  a = b - 1;\n').filter(({ kind }) => kind === 'arithmetic');
    expect(first).toMatchObject({ line: 2, before: 'a = b - 1;', after: 'a = b + 1;' });
  });
});

describe('a sample of mutants', () => {
  it('a sample of mutants is the same for the same seed, and another for another one', () => {
    const items = Array.from({ length: 100 }, (_, index) => index);
    expect(sample(items, 10, 7)).toEqual(sample(items, 10, 7));
    expect(sample(items, 10, 7)).not.toEqual(sample(items, 10, 8));
    expect(new Set(sample(items, 100, 7)).size).toBe(100);
  });

  it('a sample of mutants leaves out those that are listed with a reason', () => {
    const mutant = mutantsOfRoom(root, 'small')[0]!;
    const row = { module: MODULE, before: mutant.before, after: mutant.after, reason: 'equal ages do not occur' };
    expect(equivalentReason(mutant, [row])).toBe('equal ages do not occur');
    expect(equivalentReason(mutant, [])).toBeUndefined();
  });

  it('a sample of mutants of a room that is not built is refused with the remedy', () => {
    expect(() => mutantsOfRoom(root, 'large')).toThrow('run "npm run build", or name another room');
  });
});

describe('the tests of a module', () => {
  it('the tests of a module are those named after it, then those that import it, nearest first', () => {
    expect(testsReaching(readGraph(root), MODULE, 'test/small')).toEqual([
      { file: 'test/small/older.test.ts', distance: 1 },
      { file: 'test/other/far.test.ts', distance: 2 },
      { file: 'test/other/further.test.ts', distance: 3 },
    ]);
  });
});

describe('the mutation run of CONTRIBUTING.md', () => {
  const text = readFileSync(join(repository, 'CONTRIBUTING.md'), 'utf8');
  const [, rooms] = /^npm run mutations -- --room (\S*,\S*) --sample \d+ --seed \d+$/m.exec(text) ?? [];
  const named = rooms!.split(',');

  it.each(named)('the mutation run of CONTRIBUTING.md names a room that exists: %s', (room) => {
    expect(statSync(join(repository, room === CORE_ROOM ? room : `src/${room}`)).isDirectory()).toBe(true);
  });

  it('the mutation run of CONTRIBUTING.md has a score for each of its rooms', () => {
    const rows = [...text.matchAll(/^\| `([\w-]+)` \| \d+ of \d+ \(\d+ %\) \| \d+ % \| [\d,]+ \|$/gm)].map(
      ([, room]) => room,
    );
    expect(rows).toEqual(named);
  });

  it('the mutation run of CONTRIBUTING.md lists as equivalent only changes of lines that exist', () => {
    const mutants = new Map(
      [...new Set(EQUIVALENT.map(({ module }) => module))].map((module) => [module, textOf(module)]),
    );
    for (const { module, before } of EQUIVALENT) expect(mutants.get(module)).toContain(before);
  });
});

describe('mutants of the core', () => {
  const source =
    'export const WIDE: u32 = 1 << 3;\n' +
    'export function older(a: u32, b: u32): bool {\n' +
    "  if (ASSERTIONS) assert(a > 0, 'a is above 0');\n" +
    '  count += 1;\n' +
    '  return <u64>a > b;\n' +
    '}\n';
  const mutants = coreMutantsOf(source, 'assembly/older.ts');

  it('mutants of the core are made in functions, and neither of constants nor of assertions', () => {
    expect(mutants.map(({ line, after }) => [line, after])).toEqual([
      [4, '{};'],
      [4, 'count -= 1;'],
      [5, 'return <u64>a <= b;'],
      [5, 'return <u64>a >= b;'],
    ]);
  });

  it('mutants of the core are judged by tests that run their function: each writes a cell of its own', () => {
    const { sources, names } = coveredCore(new Map([['assembly/older.ts', source]]));
    expect(names).toEqual(['assembly/older.ts/older']);
    expect(sources.get('assembly/older.ts')).toContain(`older(a: u32, b: u32): bool { store<u8>(${LAST_CELL}, 1);`);
  });
});

describe('a trial of a mutant', { timeout: 4 * LIMIT_SECONDS * 1_000 }, () => {
  it('a trial of a mutant fails when a test notices it, and passes when none does', async () => {
    const trial = new Trial(root);
    try {
      const outcomes: Record<string, string> = {};
      for (const mutant of mutantsOfRoom(root, 'small')) {
        const text = applied(FILES[MODULE], mutant);
        const run = await trial.withFile(MODULE, text, () => trial.run('test/small/older.test.ts', LIMIT_SECONDS));
        outcomes[mutant.after] = run.outcome;
      }
      expect(outcomes).toEqual({
        'return a <= b;': 'failed',
        'return a >= b;': 'passed',
        'return undefined;': 'failed',
      });
      expect((await trial.run('test/small/older.test.ts', LIMIT_SECONDS)).outcome).toBe('passed');
    } finally {
      trial.remove();
    }
    expect(readFileSync(join(root, MODULE), 'utf8')).toBe(FILES[MODULE]);
  });

  it('a trial of a mutant that does not come to an end is ended at its limit', async () => {
    const trial = new Trial(root);
    try {
      const endless = 'export function older() {\n  for (;;);\n}\n';
      const run = await trial.withFile(MODULE, endless, () => trial.run('test/small/older.test.ts', 5));
      expect(run.outcome).toBe('timeout');
    } finally {
      trial.remove();
    }
  });
});
