// Keeps the code that V8 compiles of `pointsman serve` beside the program, so that its starts compile nothing: runs a
// picker once, with a rehearsal of requests, under the Node.js that runs this script.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Bound on the time until the picker serves, and until it ends. */
const START_MS_MAX = 60_000;
/** Programs whose code is kept: that of the control thread and that of a shard. */
const PROGRAMS = ['serve.cjs', 'shard.cjs'];

/**
 * @param root folder of the package
 * @throws when a program's code is not there in the end
 */
export async function keepCompiledCode(root: string): Promise<void> {
  const kept = join(root, 'dist/program/compiled');
  rmSync(kept, { recursive: true, force: true });
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-compile-'));
  const endpoints = join(folder, 'endpoints.yaml');
  writeFileSync(endpoints, 'endpoints:\n- {name: compiled, address: 127.0.0.1, port: 9}\n');
  const ports = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--bind-address=127.0.0.1'];
  const flags = [...ports, '--secure-serving=false', '--lame-duck=0s', '--warm-up=1s', '--idle-warm-up=0s'];
  const program = join(root, 'bin/pointsman.js');
  const picker = spawn(process.execPath, [program, 'serve', `--endpoints-file=${endpoints}`, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // Flags of Node.js would make code that other starts refuse.
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const timer = setTimeout(() => picker.kill('SIGKILL'), START_MS_MAX);
  await serving(picker);
  // The control thread keeps its code once it has served for a while, a shard at its end.
  while (!names(kept).includes('serve.cjs') && picker.exitCode === null && picker.signalCode === null) await pause(50);
  picker.kill('SIGTERM');
  if (picker.exitCode === null && picker.signalCode === null) await once(picker, 'exit');
  clearTimeout(timer);
  rmSync(folder, { recursive: true });
  const missing = PROGRAMS.filter((name) => !names(kept).includes(name));
  if (missing.length > 0) throw new Error(`no compiled code was kept of ${missing.join(' and ')} (${kept})`);
}

/** Programs with compiled code for this version of Node.js. */
function names(kept: string): string[] {
  const ending = `.${process.version}-${process.arch}`;
  try {
    const files = readdirSync(kept).filter((file) => file.endsWith(ending));
    return files.map((file) => file.slice(0, -ending.length));
  } catch {
    return [];
  }
}

async function serving(picker: ChildProcess): Promise<void> {
  let log = '';
  picker.stderr!.setEncoding('utf8').on('data', (piece: string) => {
    log = (log + piece).slice(-10_000);
  });
  while (!log.includes('pointsman is serving')) {
    if (picker.exitCode !== null || picker.signalCode !== null) throw new Error(`the picker does not start: ${log}`);
    await pause(20);
  }
}
