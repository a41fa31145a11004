import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from '../../dist/src/serve/port.js';
import { PROGRAM } from '../picker/serving.ts';
import type { Server } from './test-bed.ts';

/** A simulated model server in a process of its own, to be killed. */
export interface ServerProcess extends Server {
  /** Ends it at once, as kill -9 does. Idempotent. */
  kill(): Promise<void>;
}

/** Starts `count` of them and waits until they listen. */
export async function startServerProcesses(count: number, speedup: number): Promise<readonly ServerProcess[]> {
  const ports = await freePorts(count);
  return Promise.all(ports.map((port, number) => startServerProcess(`server-${number}`, port, speedup)));
}

async function startServerProcess(name: string, port: number, speedup: number): Promise<ServerProcess> {
  const flags = [`--port=${port}`, `--name=${name}`, `--speedup=${speedup}`];
  const child = spawn(process.execPath, [PROGRAM, 'model-server', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  await Promise.race([once(child.stdout, 'data'), ended.then(() => Promise.reject(new Error(`${name} ended`)))]);
  const kill = async () => {
    killed();
    await ended;
    process.off('exit', killed);
  };
  return { name, address: '127.0.0.1', port, kill, stop: kill };
}
