/**
 * A shard that throws what nothing catches: from the fault to the end of its last connection, and until its successor
 * listens.
 */

import { collect, dialPicker, firstReply } from '../test/ingress/proxy-client.ts';
import { ask, Setting, startPicker } from '../test/picker/serving.ts';
import { eventually } from '../test/tools/gateway/client.ts';
import { type Figure, type Report, round } from './bench.ts';

const RUNS = 10;
const CONNECTIONS = 64;
const NS_PER_MS = 1e6;

type Started = Awaited<ReturnType<typeof startPicker>>;

/** Connections with an open stream each, and the times at which they end. */
async function open(port: number) {
  const endedMs: number[] = [];
  const clients = Array.from({ length: CONNECTIONS }, () => dialPicker(port));
  for (const client of clients) {
    const call = ask(client, 'hello');
    const first = firstReply(call);
    void collect(call).then(() => endedMs.push(performance.now()));
    await first;
  }
  return { endedMs, close: () => clients.map((client) => client.close()) };
}

async function fault({ picker, ports }: Started, run: number) {
  const { endedMs, close } = await open(ports.grpcPort);
  const [worker] = picker.shards.workers.threads;
  const ended = new Promise((resolve) => worker!.once('exit', resolve));
  const beganMs = performance.now();
  // The shard cannot read such a message.
  worker!.postMessage({ niceIncrement: 0 });
  await ended;
  await eventually(`both shards listen after fault ${run}`, () => picker.shards.listening === 2);
  const listensMs = performance.now() - beganMs;
  const closedMs = Math.max(...endedMs) - beganMs;
  close();
  return { closedMs, listensMs };
}

function figure(name: string, ms: readonly number[]): Figure {
  const sorted = [...ms].sort((a, b) => a - b);
  const ns = (value: number) => round(value * NS_PER_MS);
  return { name, unit: 'ns', median: ns(sorted[sorted.length >> 1]!), p99: ns(sorted.at(-1)!), runs: ms.length };
}

export const reports: readonly Report[] = [
  {
    name: 'shard-fault',
    timeMs: 1_000,
    async *run() {
      const faults = [];
      for (let run = 0; run < RUNS; run++) {
        const setting = await Setting.create([{ name: 'server', port: 20_000 }]);
        const started = await startPicker([...setting.flags, '--shards=2']);
        faults.push(await fault(started, run));
        await started.picker.stop(0);
        await setting.remove();
      }
      yield figure(
        'shard-fault/last-connection-closed',
        faults.map(({ closedMs }) => closedMs),
      );
      yield figure(
        'shard-fault/both-shards-listen',
        faults.map(({ listensMs }) => listensMs),
      );
    },
  },
];
