// Takes the pictures of the page that a release is looked at with: `npm run page-states -- FOLDER`. An empty pool, one
// endpoint, 200, and eight of which some fail, each in light and dark at 360, 800 and 1600 px; simulated servers and a
// short load stand behind each. Needs Chromium (CHROMIUM_BIN, or chromium from PATH).
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { freePorts } from '../dist/src/serve/port.js';
import { type ModelServer, startModelServer } from '../dist/tools/simulator/server/model-server.js';

const PROGRAM = fileURLToPath(new URL('../bin/pointsman.js', import.meta.url));
const WIDTHS = [360, 800, 1600];
const SCHEMES = ['light', 'dark'] as const;
/** Time for the charts to get some points. */
const LOOK_MS = 12_000;
const CALLERS = 12;
const PAUSE_MS = 50;

interface State {
  readonly name: string;
  readonly endpoints: number;
  /** What happens to the servers once the load runs. */
  readonly fault?: (servers: readonly ModelServer[]) => Promise<void>;
}

const STATES: readonly State[] = [
  { name: 'empty', endpoints: 0 },
  { name: 'one', endpoints: 1 },
  { name: '200', endpoints: 200 },
  {
    name: 'failing',
    endpoints: 8,
    fault: async (servers) => {
      servers[0]!.failWith(503);
      servers[1]!.slowDown(20);
      await servers[2]!.stop();
    },
  },
];

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks the gateway until the end. */
function load(port: number): () => Promise<void> {
  let goesOn = true;
  const caller = async (number: number) => {
    let prompt = `You are the assistant of customer ${number}. `.repeat(60);
    for (let turn = 0; goesOn; turn++) {
      prompt += `Question ${turn} of customer ${number}, who asks at some length. `.repeat(8);
      const body = JSON.stringify({ model: 'demo-model', prompt, max_tokens: 30, stream: true });
      const headers = { 'content-type': 'application/json', 'x-gateway-inference-fairness-id': `tenant-${number % 3}` };
      // Refused requests belong to the picture.
      await fetch(`http://127.0.0.1:${port}/v1/completions`, { method: 'POST', headers, body })
        .then((response) => response.text())
        .catch(() => undefined);
      await pause(PAUSE_MS);
    }
  };
  const callers = Array.from({ length: CALLERS }, (_, number) => caller(number));
  return async () => {
    goesOn = false;
    await Promise.all(callers);
  };
}

async function ready(url: string): Promise<void> {
  for (let i = 0; i < 400; i++) {
    const answer = await fetch(url).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer !== undefined) return;
    await pause(PAUSE_MS);
  }
  throw new Error(`${url} does not answer`);
}

async function take(browser: Browser, url: string, folder: string, name: string): Promise<void> {
  for (const width of WIDTHS) {
    for (const colorScheme of SCHEMES) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      await page.goto(url);
      await page.locator('#endpoints-body').locator(':scope > *').first().waitFor();
      await pause(1_500);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      await page.close();
    }
  }
}

async function show(browser: Browser, folder: string, { name, endpoints, fault }: State): Promise<void> {
  const servers = await Promise.all(
    Array.from({ length: endpoints }, (_, i) => startModelServer({ name: `vllm-${i}` })),
  );
  const made = mkdtempSync(join(tmpdir(), 'pointsman-states-'));
  const entries = servers.map(({ address, port }, i) => ({ name: `vllm-${i}`, address, port: String(port) }));
  const file = join(made, 'endpoints.yaml');
  writeFileSync(file, JSON.stringify({ endpoints: entries }));
  const [grpc, health, metrics, gateway] = (await freePorts(4)) as [number, number, number, number];
  const flags = [`--grpc-port=${grpc}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`, '--shards=1'];
  const local = ['--bind-address=127.0.0.1', '--secure-serving=false', '--metrics-endpoint-auth=false'];
  const children: ChildProcess[] = [];
  const start = (...args: string[]) => children.push(spawn(process.execPath, [PROGRAM, ...args], { stdio: 'ignore' }));
  try {
    start('serve', `--endpoints-file=${file}`, ...flags, ...local);
    start('gateway', `--port=${gateway}`, `--picker=127.0.0.1:${grpc}`);
    await Promise.all([`http://127.0.0.1:${metrics}/ui/`, `http://127.0.0.1:${gateway}/`].map(ready));
    const end = endpoints === 0 ? undefined : load(gateway);
    await pause(LOOK_MS / 2);
    await fault?.(servers);
    await pause(LOOK_MS / 2);
    await take(browser, `http://127.0.0.1:${metrics}/ui/`, folder, name);
    await end?.();
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(servers.map((server) => server.stop()));
    rmSync(made, { recursive: true, force: true });
  }
}

const [folder, only] = process.argv.slice(2);
if (folder === undefined) throw new Error('name the folder of the pictures: npm run page-states -- FOLDER');
mkdirSync(folder, { recursive: true });
const binary = process.env.CHROMIUM_BIN ?? 'chromium';
const executablePath = binary.includes('/') ? binary : `/usr/bin/${binary}`;
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  for (const state of STATES) if (only === undefined || only === state.name) await show(browser, folder, state);
} finally {
  await browser.close();
}
