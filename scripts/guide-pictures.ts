// Makes the pictures of docs/guides that show one picker with three pools, and an Envoy with small bounds: `npm run
// pictures`. Needs Chromium (CHROMIUM_BIN, or /usr/bin/chromium) and Envoy (scripts/install-envoy.sh); `-- pools`, `--
// lint`, `-- preflight` and `-- agents`, of the table in the guide, make a part of them.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { freePorts } from '../dist/src/serve/port.js';
import { columns } from '../dist/tools/command-line/text-columns.js';
import { findEnvoy, runEnvoy } from '../dist/tools/demo/envoy-process.js';
import { agentsPicture, loadsOf } from './agents-picture.ts';
import { envoyWithSmallBounds } from './small-bounds-envoy.ts';
import { terminalPicture } from './terminal-picture.ts';
import { PROGRAM, startServing, startThreePools, type ThreePools } from './three-pools.ts';
import { tracePicture, treeOf } from './trace-picture.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const guides = join(root, 'docs/guides');
/** Time for the charts to fill. */
const LOOK_MS = 40_000;
const draw = (name: string, svg: string) => writeFile(join(guides, name), svg);

/** The standard output of a command of the program. Its exit code tells the worst finding and is not looked at. */
async function printed(argv: readonly string[], cwd = root): Promise<string> {
  const child = execFile(process.execPath, [PROGRAM, ...argv], { cwd });
  let text = '';
  child.stdout!.on('data', (piece: string) => {
    text += piece;
  });
  child.stderr!.pipe(process.stderr);
  await once(child, 'close');
  if (text === '') throw new Error(`pointsman ${argv.join(' ')}: printed nothing`);
  return text;
}

/** The heads of the pages of all pools, side by side, and the candidate of one. */
async function pagePictures(browser: Browser, url: string): Promise<void> {
  const shots: string[] = [];
  for (const pool of ['chat', 'code', 'batch']) {
    const page = await browser.newPage({ viewport: { width: 420, height: 554 }, colorScheme: 'light' });
    await page.goto(`${url}/ui/?pool=${pool}`);
    await page.locator('#decisions-body button').first().waitFor();
    shots.push((await page.screenshot()).toString('base64'));
    await page.close();
  }
  const side = await browser.newPage({ viewport: { width: 1300, height: 574 } });
  const images = shots.map((shot) => `<img src="data:image/png;base64,${shot}">`).join('');
  await side.setContent(
    `<style>body{margin:0;padding:10px;display:flex;gap:10px;background:#d0d7de}</style><body>${images}</body>`,
  );
  await side.screenshot({ path: join(guides, 'pools.png') });
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: 'light' });
  await page.goto(`${url}/ui/?pool=chat`);
  await page.locator('#candidate table').waitFor();
  await page.locator('#candidate').screenshot({ path: join(guides, 'shadow.png') });
}

async function replayPicture(url: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-recording-'));
  const recording = join(folder, 'decisions.bin');
  const answer = await fetch(`${url}/debug/recording?pool=chat&seconds=20`, { method: 'POST' });
  await writeFile(recording, Buffer.from(await answer.arrayBuffer()));
  const output = await printed(['replay', recording, '--config', join(root, 'examples/active-blocks.yaml')]);
  const command = 'pointsman replay decisions.bin --config examples/active-blocks.yaml';
  await draw('replay.svg', terminalPicture({ command, output }));
  await rm(folder, { recursive: true });
}

async function poolPictures(pools: ThreePools): Promise<void> {
  const executablePath = process.env.CHROMIUM_BIN ?? '/usr/bin/chromium';
  await pause(LOOK_MS);
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    await pagePictures(browser, pools.url);
  } finally {
    await browser.close();
  }
  const output = await printed(['doctor', '--pool', 'batch', '--picker', pools.url]);
  await draw('doctor.svg', terminalPicture({ command: 'pointsman doctor --pool batch', output }));
  await replayPicture(pools.url);
  await draw('tracing.svg', tracePicture(treeOf(await pools.trace())));
}

interface UsageLine {
  readonly tenant: string;
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_share: number | null;
  readonly wait_seconds: number;
}

/** A daily file as `jq` and `column` print it. */
function usagePicture(file: string, text: string): string {
  const fields = ['tenant', 'requests', 'input_tokens', 'output_tokens', 'cached_share', 'wait_seconds'] as const;
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as UsageLine);
  const rows = lines.map((line) => fields.map((field) => String(line[field])));
  const command =
    `jq -r '[${fields.map((field) => `.${field}`).join(', ')}] | @tsv' ${file} | column -t -N ` + `${fields.join(',')}`;
  return terminalPicture({ command, output: columns([[...fields], ...rows]).join('\n') });
}

async function lintPicture(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-lint-'));
  await writeFile(join(folder, 'envoy.yaml'), await envoyWithSmallBounds(8081, 19000, 9002));
  const argv = ['lint', '--envoy', 'envoy.yaml'];
  await draw(
    'lint-envoy.svg',
    terminalPicture({ command: `pointsman ${argv.join(' ')}`, output: await printed(argv, folder) }),
  );
  await rm(folder, { recursive: true });
}

async function preflightPicture(): Promise<void> {
  const binary = findEnvoy();
  if (binary === undefined) throw new Error('no Envoy: sh scripts/install-envoy.sh installs one');
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-preflight-'));
  const endpoints = join(folder, 'endpoints.yaml');
  const [port, adminPort] = await freePorts(2);
  await writeFile(endpoints, `endpoints:\n- {name: server-0, address: 127.0.0.1, port: "${port}"}\n`);
  const picker = await startServing(['--endpoints-file', endpoints]);
  picker.output.resume();
  const text = await envoyWithSmallBounds(port!, adminPort!, picker.grpcPort);
  const envoy = await runEnvoy(binary, text, { port: port!, adminPort: adminPort! });
  const [gateway, admin] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`];
  const places = ['--gateway', gateway, '--admin', admin, '--picker', picker.url, '--endpoints-file', endpoints];
  const output = await printed(['preflight', ...places, '--concurrency', '400', '--seconds', '5']);
  const command =
    'pointsman preflight --gateway http://127.0.0.1:8081 --admin http://127.0.0.1:19000 --picker ' +
    'http://127.0.0.1:9090 ' +
    '--endpoints-file endpoints.yaml --concurrency 400 --seconds 5';
  await draw('preflight.svg', terminalPicture({ command, output }));
  await envoy.stop();
  await picker.stop();
  await rm(folder, { recursive: true });
}

/** The parts of the pictures, by the name that makes one part alone. */
const parts: Readonly<Record<string, () => Promise<void>>> = {
  pools: async () => {
    const pools = await startThreePools();
    await poolPictures(pools);
    const { file, text } = await pools.stop();
    await draw('usage.svg', usagePicture(file, text));
  },
  agents: async () => {
    await draw('agents.svg', agentsPicture(loadsOf(await readFile(join(guides, 'agents.md'), 'utf8'))));
  },
  lint: lintPicture,
  preflight: preflightPicture,
};

for (const part of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(parts)) {
  const make = parts[part];
  if (make === undefined) throw new Error(`${part}: expected ${Object.keys(parts).join(', ')}`);
  await make();
}
