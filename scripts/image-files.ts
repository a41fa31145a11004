// Leaves in node_modules and dist what the program needs at run time on this machine's platform, and fills the compile cache
// for the user of the image: `node scripts/image-files.ts 65532`, as root, inside the image's build only: it deletes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const compiled = join(root, 'dist/program/compiled');
const user = Number(process.argv[2]);
if (!Number.isInteger(user)) throw new Error('usage: node scripts/image-files.ts <user id>');

/** Time for the picker to serve, and to end. */
const START_MS_MAX = 30_000;

removeForeignAddons(join(root, 'node_modules'));
for (const folder of ['dist', 'node_modules']) removeForCompilers(join(root, folder));
await fillCompileCache();

/** Native files are kept by platform in folders: `build/<platform>/<architecture>/`. */
function removeForeignAddons(folder: string): void {
  const own = `${process.platform}/${process.arch}`;
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const [, platform] = /\/build\/([a-z0-9]+\/[a-z0-9]+)\/.*\.node$/.exec(file.replaceAll('\\', '/')) ?? [];
    if (platform !== undefined && platform !== own) rmSync(join(folder, file));
  }
}

/** Declarations and source maps are for compilers and debuggers. */
function removeForCompilers(folder: string): void {
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (/\.(d\.[cm]?ts|map)$/.test(file)) rmSync(join(folder, file));
  }
}

/**
 * Runs a picker once. Node.js keeps compiled code per user, and writes what the main thread and the shards have compiled when
 * they end.
 */
async function fillCompileCache(): Promise<void> {
  mkdirSync(compiled, { recursive: true });
  chownSync(compiled, user, user);
  const endpoints = '/tmp/endpoints.yaml';
  writeFileSync(endpoints, 'endpoints:\n- {name: warm, address: 127.0.0.1, port: 9}\n');
  const flags = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--lame-duck=0s'];
  const picker = spawn(
    process.execPath,
    [join(root, 'bin/pointsman.js'), 'serve', `--endpoints-file=${endpoints}`, ...flags],
    { uid: user, gid: user, cwd: '/tmp', stdio: ['ignore', 'ignore', 'pipe'] },
  );
  await serving(picker);
  picker.kill('SIGTERM');
  const [code] = (await once(picker, 'exit')) as [number | null];
  rmSync(endpoints);
  const files = readdirSync(compiled, { recursive: true, encoding: 'utf8' });
  const bytes = files.reduce((sum, file) => sum + statSync(join(compiled, file)).size, 0);
  if (code !== 0 || files.length < 2) throw new Error(`the picker ended with ${code}, ${files.length} compiled files`);
  chownSync(compiled, 0, 0);
  console.log(`compile cache: ${files.length} files, ${bytes} bytes`);
}

async function serving(picker: ChildProcess): Promise<void> {
  let log = '';
  const timer = setTimeout(() => picker.kill('SIGKILL'), START_MS_MAX);
  for await (const piece of picker.stderr!) {
    log += piece;
    if (log.includes('pointsman is serving')) break;
  }
  clearTimeout(timer);
  if (!log.includes('pointsman is serving')) throw new Error(`the picker does not start: ${log}`);
}
