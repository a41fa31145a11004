import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fileNames, type NamedFiles, refuseNamedFiles } from '../../scripts/named-files.ts';

/** Bundles a program that uses a package of one module. @returns the errors of the build, and what it wrote */
async function bundle(source: string, format: 'esm' | 'cjs', named: NamedFiles, beside: readonly string[] = []) {
  const folder = await mkdtemp(join(tmpdir(), 'bundle-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'node_modules/pool'), { recursive: true });
  await writeFile(join(folder, 'node_modules/pool/index.js'), source);
  await writeFile(join(folder, 'main.js'), "import pool from 'pool';\nconsole.log(pool);\n");
  for (const file of beside) await writeFile(join(folder, file), '');
  try {
    const { outputFiles } = await build({
      ...{
        absWorkingDir: folder,
        entryPoints: ['main.js'],
        bundle: true,
        platform: 'node',
        format,
        logLevel: 'silent',
      },
      write: false,
      plugins: [refuseNamedFiles(named, format, folder)],
    });
    return { errors: [], text: outputFiles[0]!.text };
  } catch (error) {
    return { errors: (error as { errors: { text: string }[] }).errors.map(({ text }) => text), text: '' };
  }
}

const STARTS_A_THREAD = "exports.file = require('node:path').join(__dirname, 'worker.js');";
const RENAMED: NamedFiles = {
  'pool/index.js': { text: "'worker.js'", by: "'pool-thread.cjs'", file: 'pool-thread.cjs' },
};

describe('names of files in packages', () => {
  test.each([
    ["join(__dirname, 'worker.js')", ['__dirname']],
    ['exports.me = __filename', ['__filename']],
    ["export const file = new URL('./worker.js', import.meta.url)", ['import.meta.url']],
    ["require.resolve('./worker.js')", ['require.resolve']],
    ["// __dirname\nexports.text = '__filename'", []],
    ['exports.join = (__dirname) => __dirname', []],
  ])('the file names of %j are %j', async (source, names) => {
    expect(await fileNames(source)).toEqual(names);
  });

  test.each(['esm', 'cjs'] as const)(
    'the bundler refuses a package that names a file beside itself (%s) and says where the answer belongs',
    async (format) => {
      const { errors } = await bundle(STARTS_A_THREAD, format, {});
      expect(errors).toEqual([
        expect.stringMatching(/^pool\/index\.js names a file beside itself by __dirname, .*bundled-packages\.ts/),
      ]);
    },
  );

  test('a package that starts a thread from its folder is refused in a bundle of modules, where no folder has a name', async () => {
    const { errors } = await bundle(STARTS_A_THREAD, 'esm', RENAMED, ['pool-thread.cjs']);
    expect(errors).toEqual(['pool/index.js needs __dirname: give it a file of its own, as a rare package']);
  });

  test('a package whose thread has a file beside the bundle names that file', async () => {
    const { errors, text } = await bundle(STARTS_A_THREAD, 'cjs', RENAMED, ['pool-thread.cjs']);
    expect(errors).toEqual([]);
    expect(text).toMatch(/__dirname, ["']pool-thread\.cjs["']/);
  });

  test('a package whose thread has no file beside the bundle is refused', async () => {
    const { errors } = await bundle(STARTS_A_THREAD, 'cjs', RENAMED);
    expect(errors).toEqual([expect.stringMatching(/^a package starts pool-thread\.cjs, which is not in /)]);
  });

  test('a package that has changed the name of its file is refused', async () => {
    const { errors } = await bundle(STARTS_A_THREAD.replace('worker', 'thread'), 'cjs', RENAMED, ['pool-thread.cjs']);
    expect(errors).toEqual([expect.stringContaining("does not name 'worker.js' any more")]);
  });

  test('a module that is left out throws what it says when it is used', async () => {
    const { text } = await bundle(STARTS_A_THREAD, 'cjs', { 'pool/index.js': { leftOut: 'no pool here' } });
    expect(text).toContain('no pool here');
    expect(text).not.toContain('__dirname');
  });
});
