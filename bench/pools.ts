// Memory of one process with 100 pools of 8 endpoints each, idle but for its scrapes: `npm run bench -- idle-pools`.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Report } from './bench.ts';

const PROGRAM = fileURLToPath(new URL('../bin/pointsman.js', import.meta.url));
const POOLS = 100;
const ENDPOINTS = 8;
/** Time until the memory of the start has been freed (src/serve/serve.ts). */
const SETTLED_MS = 8_000;
const LOOK_MS = 50;
const METRICS = 'vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.5\n';

async function engine(): Promise<Server> {
  const server = createServer((_, response) => response.end(METRICS));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function writePools(folder: string, engines: readonly Server[], count: number): string {
  const endpoints = engines.map((server, i) => {
    const port = String((server.address() as AddressInfo).port);
    return { name: `server-${i}`, address: '127.0.0.1', port };
  });
  writeFileSync(join(folder, 'endpoints.yaml'), JSON.stringify({ endpoints }));
  const pools = Array.from({ length: count }, (_, i) => ({ name: `pool-${i}`, endpointsFile: 'endpoints.yaml' }));
  const file = join(folder, 'pools.yaml');
  writeFileSync(file, JSON.stringify({ pools }));
  return file;
}

/** Megabytes of a process, and milliseconds until it served. */
async function idle(file: string): Promise<{ readonly mb: number; readonly startMs: number }> {
  const flags = [`--pools=${file}`, '--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0'];
  const local = ['--bind-address=127.0.0.1', '--secure-serving=false', '--metrics-endpoint-auth=false'];
  const begin = performance.now();
  const picker = spawn(process.execPath, [PROGRAM, 'serve', ...flags, ...local, '--refresh-metrics-interval=1s'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    await serves(picker);
    const startMs = performance.now() - begin;
    await pause(SETTLED_MS);
    const [, kb] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${picker.pid}/status`, 'utf8'))!;
    return { mb: Number(kb) / 1_024, startMs };
  } finally {
    picker.kill('SIGKILL');
  }
}

async function serves(picker: ChildProcess): Promise<void> {
  let log = '';
  picker.stderr!.on('data', (piece: Buffer) => (log += piece));
  while (!log.includes('pointsman is serving')) {
    if (picker.exitCode !== null) throw new Error(log);
    await pause(LOOK_MS);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export const reports: readonly Report[] = [
  {
    name: 'idle-pools',
    timeMs: SETTLED_MS,
    async *run() {
      const engines = await Promise.all(Array.from({ length: ENDPOINTS }, engine));
      const folder = mkdtempSync(join(tmpdir(), 'pointsman-pools-'));
      try {
        for (const count of [1, POOLS]) {
          const { mb, startMs } = await idle(writePools(folder, engines, count));
          yield { name: `idle-pools/${count}`, median: Math.round(mb), unit: 'MB', startMs: Math.round(startMs) };
        }
      } finally {
        for (const server of engines) server.close().closeAllConnections();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  },
];
