import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
// The Node.js that runs the tests comes first, as it does in every npm script.
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };
const INSTALL_MS_MAX = 180_000;

interface Packed {
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

let folder: string;
let packed: Packed;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'package-'));
  // The build is there already, and a second one beside running tests would pull it from under them.
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await run('npm', pack, { cwd: root, env });
  const said = JSON.parse(stdout) as Packed[] | Record<string, Packed>;
  packed = Object.values(said)[0]!;
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', join(folder, packed.filename)];
  await run('npm', install, { cwd: folder, env });
}, INSTALL_MS_MAX);
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the packed package', () => {
  test('the packed package holds the program, the Wasm core, the types, the licence and the documents, and no sources or tests', () => {
    const paths = packed.files.map(({ path }) => path);
    for (const path of [
      'bin/pointsman.js',
      'dist/program/main.js',
      'dist/program/serve.cjs',
      'dist/program/shard.cjs',
      'dist/core/core.wasm',
      'dist/core/memory.d.ts',
      'LICENSE',
      'README.md',
    ]) {
      expect(paths).toContain(path);
    }
    expect(paths.filter((path) => /^(src|test|assembly|bench|\.|dist\/program\/compiled)/.test(path))).toEqual([]);
    expect(packed.unpackedSize).toBeLessThan(15_500_000);
  });

  test('the packed package prints its help when run with npx from a folder it was installed into', async () => {
    const { stdout } = await run('npx', ['--no-install', 'pointsman', '--help'], { cwd: folder, env });
    expect(stdout).toContain('Usage: pointsman');
    expect(stdout).toContain('serve');
  });

  test('the packed package lets a program import pointsman/core, pointsman/picker and pointsman/plugin-testing, and nothing that is not exported', async () => {
    const say = (module: string) => `console.log(typeof (await import('${module}')))`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', say('pointsman/core')], {
      cwd: folder,
    });
    expect(stdout.trim()).toBe('object');
    const picker = await run(process.execPath, ['--input-type=module', '-e', say('pointsman/picker')], { cwd: folder });
    expect(picker.stdout.trim()).toBe('object');
    const testing = await run(process.execPath, ['--input-type=module', '-e', say('pointsman/plugin-testing')], {
      cwd: folder,
    });
    expect(testing.stdout.trim()).toBe('object');
    const closed = run(process.execPath, ['--input-type=module', '-e', say('pointsman/dist/core/memory.js')], {
      cwd: folder,
    });
    await expect(closed).rejects.toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/);
  });
});
