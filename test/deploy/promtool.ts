import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const PLACES = [
  process.env.PROMTOOL_BIN,
  resolve(import.meta.dirname, '../../.tools/promtool/promtool'),
  '/usr/bin/promtool',
];
const BINARY = PLACES.find((path) => path !== undefined && existsSync(path));

/** Whether tests with promtool run. With POINTSMAN_REQUIRE_PROMTOOL=1 they always do, and fail without it. */
export const promtoolWanted = BINARY !== undefined || process.env.POINTSMAN_REQUIRE_PROMTOOL === '1';

/** Why tests with promtool are skipped; the empty string when they run. */
export const promtoolSkipReason = promtoolWanted
  ? ''
  : ' (skipped: no promtool found; run scripts/install-promtool.sh or set PROMTOOL_BIN)';

/** What `promtool check metrics` says of a page, a line each; none = nothing. */
export async function metricsProblems(page: string): Promise<readonly string[]> {
  if (BINARY === undefined) throw new Error('no promtool: run scripts/install-promtool.sh or set PROMTOOL_BIN');
  const said = await new Promise<string>((done) => {
    const child = execFile(BINARY, ['check', 'metrics'], (_error, stdout, stderr) => done(`${stdout}${stderr}`));
    child.stdin!.end(page);
  });
  return said.split('\n').filter((line) => line !== '');
}

/**
 * Runs promtool over a file with this content, which is JSON and so YAML. Returns what it says; empty = it succeeds.
 */
export async function promtool(command: readonly string[], content: object): Promise<string> {
  if (BINARY === undefined) throw new Error('no promtool: run scripts/install-promtool.sh or set PROMTOOL_BIN');
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-promtool-'));
  const file = join(folder, 'content.yaml');
  await writeFile(file, JSON.stringify(content));
  const said = await new Promise<string>((done) => {
    execFile(BINARY, [...command, file], (error, stdout, stderr) => done(error === null ? '' : `${stdout}${stderr}`));
  });
  await rm(folder, { recursive: true });
  return said;
}
