import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { PROGRAM } from './program.ts';

type Thread = 'control' | 'shard';

/** Writes again and again which modules of Node.js the thread has loaded. */
const observer = (folder: string) => `
  const { renameSync, writeFileSync } = require('node:fs');
  const file = ${JSON.stringify(folder)} + (require('node:worker_threads').isMainThread ? '/control' : '/shard');
  setInterval(() => {
    writeFileSync(file + '.next', JSON.stringify(process.moduleLoadList));
    renameSync(file + '.next', file);
  }, 50).unref();`;

/** Modules of Node.js in the threads of a picker that serves without TLS. */
async function modulesOfPicker(): Promise<Readonly<Record<Thread, readonly string[]>>> {
  const folder = mkdtempSync(join(tmpdir(), 'start-modules-'));
  const preload = join(folder, 'observer.cjs');
  const endpoints = join(folder, 'endpoints.yaml');
  writeFileSync(preload, observer(folder));
  writeFileSync(endpoints, 'endpoints:\n- {name: one, address: 127.0.0.1, port: 9}\n');
  const ports = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--bind-address=127.0.0.1'];
  const flags = [`--endpoints-file=${endpoints}`, ...ports, '--secure-serving=false', '--metrics-endpoint-auth=false'];
  // A rehearsal changes flags of V8, and loads `node:v8` for it.
  flags.push('--idle-warm-up=0s');
  const env = { ...process.env, NODE_OPTIONS: `--require=${preload}` };
  const picker = spawn(process.execPath, [PROGRAM, 'serve', ...flags], { stdio: ['ignore', 'ignore', 'pipe'], env });
  try {
    let log = '';
    for await (const piece of picker.stderr) {
      log += piece;
      if (log.includes('pointsman is serving')) break;
    }
    return { control: await listOf(join(folder, 'control')), shard: await listOf(join(folder, 'shard')) };
  } finally {
    picker.kill('SIGKILL');
    if (picker.exitCode === null && picker.signalCode === null) await once(picker, 'exit');
    rmSync(folder, { recursive: true });
  }
}

/** The list that is written after the call. */
async function listOf(file: string): Promise<readonly string[]> {
  rmSync(file, { force: true });
  while (!existsSync(file)) await pause(20);
  const list = JSON.parse(readFileSync(file, 'utf8')) as readonly string[];
  return list.flatMap((entry) => (entry.startsWith('NativeModule ') ? [entry.slice('NativeModule '.length)] : []));
}

describe('the programs of a start', () => {
  test.each(['serve.cjs', 'shard.cjs'])('%s asks V8 for no callers, for which it would count the lines', (name) => {
    const program = readFileSync(join(import.meta.dirname, '../../dist/program', name), 'latin1');
    expect(program).toContain('pointsman');
    expect(program).not.toContain('getCallSites');
  });
});

describe('a picker that serves without TLS', () => {
  let modules: Readonly<Record<Thread, readonly string[]>>;
  beforeAll(async () => {
    modules = await modulesOfPicker();
  });

  test.each(['control', 'shard'] as const)('the %s thread loads neither TLS nor what only asserts', (thread) => {
    expect(modules[thread]).toContain('net');
    expect(modules[thread].filter((name) => ['assert', 'https', 'tls'].includes(name))).toEqual([]);
  });

  test('a shard that finds compiled code does not ask V8 for its flags', () => {
    expect(modules.shard).not.toContain('v8');
  });

  test('a shard does without what loads modules', () => {
    expect(modules.shard).not.toContain('internal/modules/esm/loader');
  });
});
