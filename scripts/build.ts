// `npm run build`: core, modules and program into a new folder, which takes the place of dist when all of it is made. A
// build that fails leaves the old program. Then the new program runs once, and its compiled code is kept.

import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const next = join(root, 'dist.next');
const last = join(root, 'dist.last');

rmSync(next, { recursive: true, force: true });
node('scripts/build-core.ts');
// tsc 7 is a program of its own, started by a script.
node('node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--outDir', next);
node('scripts/bundle.ts');

rmSync(last, { recursive: true, force: true });
if (existsSync(dist)) renameSync(dist, last);
renameSync(next, dist);
rmSync(last, { recursive: true, force: true });
node('scripts/compile-program.ts');

function node(script: string, ...args: readonly string[]): void {
  const { status, error } = spawnSync(process.execPath, [join(root, script), ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, POINTSMAN_DIST: next },
  });
  if (error !== undefined) throw error;
  if (status === 0) return;
  rmSync(next, { recursive: true, force: true });
  console.error(`the build has failed in ${script}${existsSync(dist) ? ': the old program is still there' : ''}`);
  process.exit(1);
}
