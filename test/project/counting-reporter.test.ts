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
  const mixed = `test('a', () => {});\ntest('b', () => expect(1).toBe(2));\ntest.skip('c', () => {});\ntest.todo('d');\n`;
  await writeFile(join(folder, 'cases/mixed.test.js'), head + mixed);
  await writeFile(join(folder, 'cases/broken.test.js'), `import './not-there.js';\n${head}test('e', () => {});\n`);
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const config = `import { CountingReporter } from '${root}test/project/counting-reporter.ts';
export default { test: { include: ['cases/*.test.js'], reporters: ['default', new CountingReporter()] } };\n`;
  await writeFile(join(folder, 'vitest.config.js'), config);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('a run ends with the counts of its tests, and a file that cannot be loaded is a failure', async () => {
  const counts = join(folder, 'counts');
  const { VITEST: _, VITEST_WORKER_ID: __, ...env } = process.env;
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: folder, env: { ...env, POINTSMAN_TEST_COUNTS: counts } };
    execFile(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run'], options, (_error, stdout) =>
      resolve(stdout),
    );
  });
  expect(output.trimEnd().split('\n').at(-1)).toBe('1 passed, 2 failed, 2 skipped');
  expect(await readFile(counts, 'utf8')).toBe('1 passed, 2 failed, 2 skipped\n');
});
