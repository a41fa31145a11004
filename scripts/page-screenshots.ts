// Takes the pictures of docs/guides: `npm run page-screenshots`. Starts the demo and looks at its page with Chromium
// (CHROMIUM_BIN, or chromium from PATH).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';

const root = fileURLToPath(new URL('../', import.meta.url));
/** Time for the charts to fill. */
const LOOK_MS = 40_000;

/** Starts the demo. @returns the address of its page, and what ends it */
async function startDemo(): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  const child = spawn(process.execPath, [`${root}bin/pointsman.js`, 'demo', '--port=0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  for await (const line of createInterface(child.stdout)) {
    const [url] = /http:\S+\/ui\//.exec(line) ?? [];
    if (url === undefined) continue;
    child.stdout.resume();
    const stop = async () => {
      child.kill('SIGTERM');
      await ended;
    };
    return { url, stop };
  }
  throw new Error('the demo has ended before it told the address of its page');
}

async function open(
  browser: Browser,
  url: string,
  width: number,
  height: number,
  colorScheme: 'light' | 'dark',
): Promise<Page> {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  await page.goto(url);
  await page.locator('#decisions-body button').first().waitFor();
  return page;
}

const { url, stop } = await startDemo();
const binary = process.env.CHROMIUM_BIN ?? '/usr/bin/chromium';
const browser = await chromium.launch({ executablePath: binary, args: ['--no-sandbox'] });
try {
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  const light = await open(browser, url, 1280, 860, 'light');
  await light.screenshot({ path: `${root}docs/guides/ui-light.png` });
  const dark = await open(browser, url, 1280, 860, 'dark');
  await dark.screenshot({ path: `${root}docs/guides/ui-dark.png` });
  const phone = await open(browser, url, 360, 760, 'light');
  await phone.screenshot({ path: `${root}docs/guides/ui-phone.png` });
  await light.locator('#decisions-body tbody tr', { hasText: 'completed' }).getByRole('button').first().click();
  await light.locator('dialog h3').first().waitFor();
  await light.locator('dialog').screenshot({ path: `${root}docs/guides/why.png` });
} finally {
  await browser.close();
  await stop();
}
