import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const PLACES = [process.env.ACTIONLINT_BIN, join(root, '.tools/actionlint/actionlint')];
const BINARY = PLACES.find((path) => path !== undefined && existsSync(path));

/**
 * Why tests with actionlint are skipped; the empty string when they run. With POINTSMAN_REQUIRE_ACTIONLINT=1 they never
 * are.
 */
export const actionlintSkipReason =
  BINARY === undefined && process.env.POINTSMAN_REQUIRE_ACTIONLINT !== '1'
    ? ' (skipped: no actionlint found; run scripts/install-actionlint.sh or set ACTIONLINT_BIN)'
    : '';

/** Runs actionlint over a workflow. Returns what it says; empty = it has found nothing. */
export async function actionlint(file: string): Promise<string> {
  if (BINARY === undefined) throw new Error('no actionlint: run scripts/install-actionlint.sh or set ACTIONLINT_BIN');
  // Without programs of the machine, which would find more on one machine than on another.
  const args = ['-shellcheck=', '-pyflakes=', '-no-color', file];
  return new Promise((done) => {
    execFile(BINARY, args, { cwd: root }, (error, stdout, stderr) => done(error === null ? '' : `${stdout}${stderr}`));
  });
}
