import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** The Chromium to look with: CHROMIUM_BIN, or one from PATH; undefined when there is none. */
function findChromium(): string | undefined {
  if (process.env.CHROMIUM_BIN !== undefined) return process.env.CHROMIUM_BIN;
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const binary = findChromium();

/**
 * Why the tests with Chromium are skipped; the empty string when they run. With POINTSMAN_REQUIRE_CHROMIUM=1 they never
 * are.
 */
export const skipReason =
  binary === undefined && process.env.POINTSMAN_REQUIRE_CHROMIUM !== '1'
    ? ' (skipped: no Chromium; sh scripts/install-chromium.sh installs one)'
    : '';

/** @throws when there is no Chromium and the tests may not be skipped */
export function startChromium(): Promise<Browser> {
  if (binary === undefined)
    throw new Error('POINTSMAN_REQUIRE_CHROMIUM=1, but no Chromium: run scripts/install-chromium.sh');
  // Containers give no user namespaces to its sandbox; it sees nothing but pages of the tests.
  return chromium.launch({ executablePath: binary, args: ['--no-sandbox'] });
}
