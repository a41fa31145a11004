// Simulated engines as a process of their own, to be killed in the middle of their answers: takes host, ports, speedup
// and the file to which it writes the beginning and the end of every request, and tells how many run when it is asked.
import { type ChildProcess, fork } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';

export interface EngineProcess {
  /** Requests that run or wait now. */
  running(): Promise<number>;
  /**
   * Ends it as the kernel ends a process that is out of memory.
   * @returns ids of the requests that it had begun and not ended
   */
  kill(): Promise<readonly string[]>;
}

/** Starts engines on these ports of an address. */
export async function startEngineProcess(
  host: string,
  ports: readonly number[],
  speedup: number,
): Promise<EngineProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-engine-'));
  const file = join(folder, 'requests');
  const child: ChildProcess = fork(import.meta.filename, [host, ports.join(), String(speedup), file]);
  await once(child, 'message');
  return {
    async running() {
      child.send('running?');
      const [count] = (await once(child, 'message')) as [number];
      return count;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return [];
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      const unfinished = unfinishedOf(readFileSync(file, 'utf8'));
      rmSync(folder, { recursive: true });
      return unfinished;
    },
  };
}

/** Ids with a line of their beginning and none of their end. */
function unfinishedOf(lines: string): string[] {
  const ids = new Set<string>();
  for (const line of lines.split('\n').filter((one) => one !== '')) {
    if (line.startsWith('+')) ids.add(line.slice(1));
    else ids.delete(line.slice(1));
  }
  return [...ids];
}

/** Writes ids before anything else is done with the request, and after the last byte of its answer. */
function writeRequests(file: string): void {
  const to = openSync(file, 'a');
  const write = (sign: '+' | '-') => (message: unknown) => {
    const id = (message as { request: IncomingMessage }).request.headers['x-request-id'];
    if (id !== undefined) writeSync(to, `${sign}${id}\n`);
  };
  subscribe('http.server.request.start', write('+'));
  subscribe('http.server.response.finish', write('-'));
}

async function serve([host, ports, speedup, file]: readonly string[]): Promise<void> {
  writeRequests(file!);
  const options = (port: string) => ({ host: host!, port: Number(port), engine: { speedup: Number(speedup) } });
  const servers = await Promise.all(ports!.split(',').map((port) => startModelServer(options(port))));
  process.on('message', () => {
    process.send!(
      servers.map((server) => server.stats()).reduce((sum, { running, waiting }) => sum + running + waiting, 0),
    );
  });
  process.on('disconnect', () => process.exit());
  process.send!('listening');
}

if (process.argv[1] === import.meta.filename) await serve(process.argv.slice(2));
