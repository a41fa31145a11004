import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { joinedFolders, wrongArrows, wrongImports } from '../../scripts/arrows.ts';
import { importsOf, wrongImports as wrongAssemblyImports } from '../../scripts/assembly-arrows.ts';
import { readImports } from '../../scripts/source-imports.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'arrows-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

type Files = Readonly<Record<string, string>>;

/** Runs a check of `npm run arrows` on a small program; the output names the rules that it breaks. */
async function run(
  files: Files,
  script: string,
  ...args: readonly string[]
): Promise<{ code: number; output: string }> {
  await writeFile(join(folder, 'package.json'), '{"type":"module","devDependencies":{"vitest":"*"}}');
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return new Promise((resolve) => {
    execFile(process.execPath, [join(root, script), ...args], { cwd: folder }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr });
    });
  });
}

const check = (files: Files) =>
  run(
    files,
    'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs',
    '--config',
    join(root, '.dependency-cruiser.cjs'),
    'dist',
  );

const findCircles = (files: Files) => run(files, 'scripts/circles.ts', 'src');

const empty = 'export const x = 1;\n';
const importing = (path: string) => `export * from '${path}';\n`;

/** Imports of a made-up program: a file, and the files that it imports. */
const imports = (files: Readonly<Record<string, readonly string[]>>) => new Map(Object.entries(files));

const rooms = { 'src/core': [], 'src/scheduling': ['src/core'], 'src/ingress': ['src/core', 'src/scheduling'] };

describe('arrows between the rooms', () => {
  test('imports that follow the arrows pass', () => {
    const files = imports({
      'src/core/memory.ts': [],
      'src/scheduling/decide.ts': ['src/core/memory.ts', 'src/scheduling/other.ts'],
      'src/ingress/stream.ts': ['src/scheduling/decide.ts', 'src/core/memory.ts'],
    });
    expect(wrongImports(files, rooms)).toEqual([]);
    expect(wrongArrows(files, rooms)).toEqual([]);
  });

  test('the program follows the arrows, uses all of them, and none runs back', () => {
    const program = readImports(['src', 'tools']);
    expect(program.size).toBeGreaterThan(500);
    expect([...wrongImports(program), ...wrongArrows(program), ...joinedFolders(program)]).toEqual([]);
  });

  test('an import without an arrow is refused', () => {
    const files = imports({ 'src/core/memory.ts': ['src/ingress/stream.ts'] });
    expect(wrongImports(files, rooms)).toEqual([
      'src/core/memory.ts imports src/ingress/stream.ts: src/core may not import src/ingress',
    ]);
  });

  test('a file outside of all rooms is refused', () => {
    expect(wrongImports(imports({ 'src/misc/c.ts': [] }), rooms)).toEqual([
      'src/misc/c.ts is in no room of scripts/rooms.ts',
    ]);
  });

  test('an arrow that no file uses is refused', () => {
    const files = imports({
      'src/scheduling/decide.ts': ['src/core/memory.ts'],
      'src/ingress/stream.ts': ['src/core/memory.ts'],
    });
    expect(wrongArrows(files, rooms)).toEqual([
      'src/ingress → src/scheduling is allowed and no file uses it: remove it from scripts/rooms.ts',
    ]);
  });

  test('an arrow to a later room runs back', () => {
    expect(wrongArrows(imports({}), { 'src/core': ['src/ingress'], 'src/ingress': [] })).toEqual([
      'src/core → src/ingress runs back',
    ]);
  });

  test('folders that stay apart may not import each other', () => {
    const files = imports({ 'src/picker/shards/shard.ts': ['src/picker/control/traces.ts', 'src/picker/messages.ts'] });
    expect(joinedFolders(files)).toEqual([
      'src/picker/shards/shard.ts imports src/picker/control/traces.ts: src/picker/shards and src/picker/control ' +
        'stay apart',
    ]);
  });

  test('a type-only import of the program counts', async () => {
    const { code, output } = await run(
      {
        'src/core/a.ts': "import type { X } from '../ingress/b.js';\nexport type Y = X;\n",
        'src/ingress/b.ts': 'export type X = 1;\n',
        'tools/main.ts': empty,
      },
      'scripts/arrows.ts',
    );
    expect(code).toBe(1);
    expect(output).toContain('src/core/a.ts imports src/ingress/b.ts: src/core may not import src/ingress');
  });
});

describe('packages and circles of the compiled modules', () => {
  test('cycles, modules that are not there and development dependencies are refused', async () => {
    const { output } = await check({
      'dist/src/core/a.js': importing('./b.js'),
      'dist/src/core/b.js': importing('./a.js'),
      'dist/src/pool/d.js': importing('vitest'),
    });
    for (const rule of ['no-cycles', 'resolvable']) expect(output).toContain(rule);
  });
});

describe('circles of imports in the sources', () => {
  test('a tree of imports passes', async () => {
    const { code, output } = await findCircles({
      'src/core/a.ts': empty,
      'src/core/b.ts': importing('./a.js'),
      'src/pool/c.ts': importing('../core/a.js') + importing('../core/b.js'),
    });
    expect({ code, output }).toEqual({ code: 0, output: '' });
  });

  test('a type-only import can close a circle, which is shown file by file', async () => {
    const { code, output } = await findCircles({
      'src/core/a.ts': "import type { X } from '../pool/b.js';\nexport type Y = X;\n",
      'src/pool/b.ts': importing('./c.js'),
      'src/pool/c.ts': "export type X = 1;\nexport const later = () => import('../core/a.js');\n",
      'src/pool/leaf.ts': importing('../core/a.js'),
    });
    expect(code).toBe(1);
    expect(output).toBe('circle of 3 files: src/core/a.ts → src/pool/b.ts → src/pool/c.ts → src/core/a.ts\n');
  });

  test('an import over several lines counts', async () => {
    const { output } = await findCircles({
      'src/core/a.ts': "import {\n  type X,\n} from './b.js';\nexport type Y = X;\n",
      'src/core/b.ts': importing('./a.js'),
    });
    expect(output).toContain('circle of 2 files');
  });

  test('an import in a comment does not count', async () => {
    const { code } = await findCircles({
      'src/core/a.ts': importing('./b.js'),
      'src/core/b.ts': "// import { Y } from './a.js';\n/* import './a.js'; */\nexport type X = 1;\n",
    });
    expect(code).toBe(0);
  });

  test('a folder without sources is an error', async () => {
    const { code, output } = await findCircles({ 'lib/a.ts': empty });
    expect(code).toBe(1);
    expect(output).toContain('src: no source files');
  });
});

describe('arrows between the rooms of assembly/', () => {
  test('an import of a room below, or of the own room, passes', () => {
    const text = "import { SLOTS } from '../memory';\nimport { bandOf } from './bands';\n";
    expect(wrongAssemblyImports('gate/conditions', text)).toEqual([]);
  });

  test('an import of a room above is refused', () => {
    const text = "import { gateBind } from './gate/layout';\n";
    expect(wrongAssemblyImports('memory', text)).toEqual(['memory imports gate/layout, which is not below it']);
  });

  test('a room without a row is refused', () => {
    expect(wrongAssemblyImports('misc/c', '')).toEqual(['misc/c: room misc has no row in scripts/assembly-arrows.ts']);
  });

  test('imports and re-exports over several lines count, those in comments do not', () => {
    const text = "// import { x } from './no';\nimport {\n  A,\n  B,\n} from '../memory';\nexport * from './layout';\n";
    expect(importsOf('gate/gate', text)).toEqual(['memory', 'gate/layout']);
  });
});
