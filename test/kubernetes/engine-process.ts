// Simulated engines as a process of their own, to be killed in the middle of their answers: takes host, ports and speedup, and
// tells how many requests run when it is asked.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { startModelServer } from '../../dist/simulator/server/model-server.js';

export interface EngineProcess {
  /** Requests that run or wait now. */
  running(): Promise<number>;
  /** Ends it as the kernel ends a process that is out of memory. */
  kill(): Promise<void>;
}

/** Starts engines on these ports of an address. */
export async function startEngineProcess(
  host: string,
  ports: readonly number[],
  speedup: number,
): Promise<EngineProcess> {
  const child: ChildProcess = fork(import.meta.filename, [host, ports.join(), String(speedup)]);
  await once(child, 'message');
  return {
    async running() {
      child.send('running?');
      const [count] = (await once(child, 'message')) as [number];
      return count;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function serve([host, ports, speedup]: readonly string[]): Promise<void> {
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
