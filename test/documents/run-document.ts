// Runs the commands of one document in a copy of the project: node test/documents/run-document.ts README.md envoy,nats
// Prints a line of JSON for each block. The caller gives it a network of its own, where it may: documents use the
// default ports.
import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { blocksOf, type CommandBlock, missingLine } from './blocks.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const BLOCK_MS_MAX = 60_000;
/** What a clone has, as far as commands use it. */
const PARTS = [
  '.npmrc',
  '.tools',
  'bin',
  'deploy',
  'dist',
  'docs',
  'examples',
  'node_modules',
  'package.json',
  'scripts',
];

/** What came of a block. */
export interface BlockResult {
  readonly line: number;
  /** Empty when the block does what its document says. */
  readonly failure: string;
  /** Components that are missing, so that the block was not run; or the reason of its document. */
  readonly skipped: string;
  readonly ms: number;
}

const [page = '', present = ''] = process.argv.slice(2);
interface Shell {
  readonly child: ChildProcess;
  /** Exit code of its work; null while it works. */
  code(): number | null;
  output(): string;
}

const components = present.split(',');
const folder = mkdtempSync(join(tmpdir(), 'document '));
for (const part of PARTS) symlinkSync(join(root, part), join(folder, part));
const tools = ['.tools/envoy/envoy/_bin', '.tools/nats', '.tools/otelcol'].map((path) => join(root, path));
const path = [dirname(process.execPath), ...tools, process.env.PATH].join(delimiter);
// As users run it: the core that is shipped, and nothing of the tests.
const { POINTSMAN_CORE: _, NODE_OPTIONS: __, ...given } = process.env;
const env = {
  ...given,
  PATH: path,
  npm_config_cache: join(folder, '.npm'),
  SETTINGS: join(root, 'test/documents/settings.sh'),
};
const started: ChildProcess[] = [];
let shells = 0;

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end(1));
process.on('uncaughtException', (error) => {
  console.error(error);
  end(1);
});
for (const block of blocksOf(readFileSync(join(root, page), 'utf8'))) {
  const begin = performance.now();
  const skipped = 'file' in block ? '' : skipReasonOf(block);
  const failure = skipped !== '' ? '' : 'file' in block ? write(block.file, block.text) : await run(block);
  const result: BlockResult = { line: block.line, failure, skipped, ms: Math.round(performance.now() - begin) };
  console.log(JSON.stringify(result));
  if (failure !== '') break;
}
end(0);

function end(code: number): never {
  stopAll();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  process.exit(code);
}

function write(file: string, text: string): '' {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
  return '';
}

function skipReasonOf({ notRun, needs }: CommandBlock): string {
  if (notRun !== undefined) return notRun;
  const missing = needs.filter((need) => !components.includes(need));
  return missing.length === 0 ? '' : `no ${missing.join(', ')}`;
}

/** @returns what is wrong */
async function run(block: CommandBlock): Promise<string> {
  if (block.alone) stopAll();
  if (block.before.length > 0) {
    const before = shell(['. "$SETTINGS"', ...block.before].join('\n'));
    if ((await codeOf(before)) !== 0) return problem('the command before it failed', block, before.output());
  }
  const text = block.instead.reduce((whole, [from, to]) => whole.replace(from, () => to), block.text);
  return block.stays ? runOn(block, text) : toTheEnd(block, text);
}

/** Runs a block that keeps running. */
async function runOn(block: CommandBlock, text: string): Promise<string> {
  const { code, output } = shell(text);
  const deadline = performance.now() + BLOCK_MS_MAX;
  while (lacks(block, output()) !== undefined && code() === null && performance.now() < deadline) await pause(100);
  const missing = lacks(block, output());
  if (missing !== undefined) return problem(`it does not print: ${missing}`, block, output());
  return code() === null ? '' : problem(`it ended with exit code ${code()}`, block, output());
}

/** Runs a block to its end, again and again where it waits for something. */
async function toTheEnd(block: CommandBlock, text: string): Promise<string> {
  const deadline = performance.now() + BLOCK_MS_MAX;
  for (;;) {
    const run = shell(text);
    const code = await codeOf(run);
    const missing = lacks(block, run.output());
    if (code === block.exit && missing === undefined) return '';
    if (block.until === undefined || performance.now() > deadline) {
      const what = code === block.exit ? `it does not print: ${missing}` : `exit code ${code}, not ${block.exit}`;
      return problem(what, block, run.output());
    }
    await pause(100);
  }
}

function lacks({ shows, until }: CommandBlock, output: string): string | undefined {
  return missingLine(output, shows) ?? (until === undefined ? undefined : missingLine(output, [until]));
}

function problem(what: string, { line, text }: CommandBlock, output: string): string {
  return `${page}:${line}: ${what}\n${text}\n${output.slice(-4_000)}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * A shell with a process group of its own, which ends its work at the first command that fails. It lives on while its
 * background jobs do, as a terminal does: Envoy ends with its parent.
 */
function shell(text: string): Shell {
  const file = join(folder, `.output-${++shells}`);
  const output = openSync(file, 'w');
  const script = `trap 'echo $? > "${file}.code"; wait' EXIT\n${text}`;
  const child = spawn('bash', ['-eo', 'pipefail', '-c', script], {
    ...{ cwd: folder, env, detached: true },
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  started.push(child);
  const code = () =>
    existsSync(`${file}.code`) ? Number(readFileSync(`${file}.code`, 'utf8') || NaN) : child.exitCode;
  return { child, code, output: () => readFileSync(file, 'utf8') };
}

/** Waits for the end of a shell's work, for a minute. @returns its exit code; undefined = it had to be killed */
async function codeOf({ child, code }: Shell): Promise<number | undefined> {
  const deadline = performance.now() + BLOCK_MS_MAX;
  while (code() === null || Number.isNaN(code())) {
    if (performance.now() > deadline) {
      kill(child);
      return undefined;
    }
    await pause(50);
  }
  return code() ?? undefined;
}

/** Ends a shell and everything that it has started. */
function kill(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // All of it has ended.
  }
}

function stopAll(): void {
  for (const child of started.splice(0).reverse()) kill(child);
}
