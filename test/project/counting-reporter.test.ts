import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'counting-'));
  await mkdir(join(folder, 'cases'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const head = `import { expect, test } from 'vitest';\n`;
  const mixed =
    `test('a', () => {});\ntest('b', () => expect(1).toBe(2));\ntest.skip('c', ` + `() => {});\ntest.todo('d');\n`;
  await writeFile(join(folder, 'cases/mixed.test.js'), head + mixed);
  await writeFile(join(folder, 'cases/broken.test.js'), `import './not-there.js';\n${head}test('e', () => {});\n`);
  const once = `let attempts = 0;\ntest('f', () => expect(++attempts).toBe(2));\n`;
  await writeFile(join(folder, 'cases/unsteady.test.js'), head + once);
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const config = `import { CountingReporter } from '${root}test/project/counting-reporter.ts';
export default { test: { retry: 1, include: ['cases/*.test.js'], reporters: ['default', new CountingReporter()] } };\n`;
  await writeFile(join(folder, 'vitest.config.js'), config);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What a run prints, and the counts that it writes. */
async function run(): Promise<{ lines: string[]; counts: string }> {
  const counts = join(folder, 'counts');
  const { VITEST: _, VITEST_WORKER_ID: __, ...env } = process.env;
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: folder, env: { ...env, POINTSMAN_TEST_COUNTS: counts } };
    execFile(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run'], options, (_error, stdout) =>
      resolve(stdout),
    );
  });
  return { lines: output.trimEnd().split('\n'), counts: await readFile(counts, 'utf8') };
}

test('a run ends with the counts of its tests, and a file that cannot be loaded is a failure', async () => {
  const { lines, counts } = await run();
  expect(lines.at(-1)).toBe('2 passed, 2 failed, 2 skipped');
  expect(counts).toBe('2 passed, 2 failed, 2 skipped\n');
});

test('a test that passes at its second attempt is named above the counts, with what it failed by', async () => {
  const { lines } = await run();
  const named = lines.filter((line) => line.startsWith('unsteady:'));
  expect(named).toEqual([
    'unsteady: cases/unsteady.test.js > f: passed at the second attempt, after "expected 1 to be 2 ' +
      '// Object.is equality"',
  ]);
  expect(lines.at(-2)).toBe(named[0]);
});
