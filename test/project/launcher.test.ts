import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Makes the Node.js that runs a program call itself another version. */
const asVersion = (version: string) =>
  `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`;

async function project(name: string, ...parts: readonly string[]): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'project-'));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  const folder = join(parent, name);
  await mkdir(folder);
  for (const part of parts) await cp(join(ROOT, part), join(folder, part), { recursive: true });
  return folder;
}

function run(folder: string, node: readonly string[], ...args: readonly string[]) {
  const program = [...node, join(folder, 'bin/pointsman.js'), ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, program, { cwd: folder, encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe('the launcher', () => {
  test('the launcher without a build says in one line what to run and where', async () => {
    const folder = await project('my files', 'bin', 'package.json');
    expect(run(folder, [])).toEqual({
      status: 1,
      stdout: '',
      stderr: `pointsman: is not built: run "npm ci && npm run build" in ${folder}/\n`,
    });
  });

  test.each(['12.20.0', '18.19.0', '22.11.0'])(
    'the launcher on Node.js %s alone says in one line what it needs',
    async (old) => {
      const folder = await project('plain', 'bin', 'package.json');
      await mkdir(join(folder, 'dist/program'), { recursive: true });
      await writeFile(join(folder, 'dist/program/main.js'), '');
      expect(run(folder, ['--import', asVersion(old)])).toEqual({
        status: 1,
        stdout: '',
        stderr:
          `pointsman: needs Node.js 22.12 or newer; this is ${old}: install a newer one, or run "npm install ` +
          'node@24" where pointsman is installed\n',
      });
    },
  );

  test.each(['my files', '50%', 'a%20b'])('the program runs in a folder called %s', async (name) => {
    const folder = await project(name, 'bin', 'dist', 'package.json');
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    expect(run(folder, [], '--version')).toMatchObject({ status: 0, stderr: '' });
    const old = run(folder, ['--import', asVersion('18.19.0')], '--version');
    expect(old).toMatchObject({ status: 0, stdout: expect.stringContaining('pointsman '), stderr: '' });
  });
});

describe('a build that fails', () => {
  test('a build that fails leaves the old program and says so', async () => {
    const parts = ['assembly', 'bin', 'dist', 'package.json', 'scripts', 'src/core', 'tsconfig.json'];
    const folder = await project('my files', ...parts);
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'assembly/index.ts'), 'export const = 1;\n');
    const build = spawnSync(process.execPath, ['scripts/build.ts'], { cwd: folder, encoding: 'utf8' });
    expect(build.status).toBe(1);
    expect(build.stderr).toContain('assembly/ does not compile');
    expect(build.stderr).toContain('the build has failed in scripts/build-core.ts: the old program is still there');
    expect(run(folder, [], '--version').status).toBe(0);
  });
});
