import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { importsOf, readImports, wrongImports } from '../../scripts/assembly-arrows.ts';

const root = new URL('../../', import.meta.url).pathname;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'arrows-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Check a small program of these files; the output names the rules that it breaks. */
async function check(files: Readonly<Record<string, string>>): Promise<{ code: number; output: string }> {
  await writeFile(join(folder, 'package.json'), '{"type":"module","devDependencies":{"vitest":"*"}}');
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const script = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs');
  const config = join(root, '.dependency-cruiser.cjs');
  return new Promise((resolve) => {
    execFile(process.execPath, [script, '--config', config, 'dist'], { cwd: folder }, (error, stdout) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout });
    });
  });
}

const empty = 'export const x = 1;\n';
const importing = (path: string) => `export * from '${path}';\n`;

describe('arrows between the rooms', () => {
  test('imports that follow the arrows pass', async () => {
    const { code } = await check({
      'dist/core/memory.js': empty,
      'dist/pool/endpoint.js': empty,
      'dist/scheduling/decide.js': importing('../core/memory.js') + importing('../pool/endpoint.js'),
      'dist/cli/main.js': importing('../scheduling/decide.js'),
    });
    expect(code).toBe(0);
  });

  test.each([
    ['core', 'ingress'],
    ['scheduling', 'request'],
    ['operations', 'ingress'],
    ['pool', 'scheduling'],
    ['picker', 'gateway'],
    ['gateway', 'cli'],
  ])('%s may not import %s', async (from, to) => {
    const { code, output } = await check({
      [`dist/${to}/other.js`]: empty,
      [`dist/${from}/file.js`]: importing(`../${to}/other.js`),
    });
    expect(code).toBeGreaterThan(0);
    expect(output).toContain(`${from}-imports`);
  });

  test('cycles, unknown rooms and development dependencies are refused', async () => {
    const { output } = await check({
      'dist/core/a.js': importing('./b.js'),
      'dist/core/b.js': importing('./a.js'),
      'dist/misc/c.js': importing('../core/a.js'),
      'dist/pool/d.js': importing('vitest'),
    });
    for (const rule of ['no-cycles', 'known-rooms', 'resolvable']) expect(output).toContain(rule);
  });
});

describe('arrows between the files of assembly/', () => {
  test('the imports of the core form no circle and point down', () => {
    expect(wrongImports(readImports(join(root, 'assembly')))).toEqual([]);
  });

  test('an import of a room above, a circle and an unknown room are refused', () => {
    const imports = new Map([
      ['memory', ['gate/layout']],
      ['gate/layout', []],
      ['load/a', ['load/b']],
      ['load/b', ['load/a']],
      ['misc/c', []],
    ]);
    expect(wrongImports(imports)).toEqual([
      'memory imports gate/layout, which is not below it',
      'misc/c: room misc has no row in scripts/assembly-arrows.ts',
      'circle: load/a → load/b → load/a',
    ]);
  });

  test('imports and re-exports over several lines are read, builtins and comments are not', () => {
    const text = "// import { x } from './no';\nimport {\n  A,\n  B,\n} from '../memory';\nexport * from './layout';\n";
    expect(importsOf('gate/gate', text)).toEqual(['memory', 'gate/layout']);
  });
});
