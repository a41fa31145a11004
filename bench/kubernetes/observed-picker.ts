// A picker as a process of its own that tells what it uses: takes its flags; answers every message with its usage since
// the one before.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { PoolController } from '../../dist/src/picker/control/pool-controller.js';
import type { Picker } from '../../dist/src/picker/picker.js';
import { startShardThreads } from '../../dist/src/picker/shards/shard-threads.js';
import { createPicker } from '../../dist/src/serve/create-picker.js';
import { parseServeFlags } from '../../dist/src/serve/flags.js';

export interface Usage {
  readonly seconds: number;
  /** CPU time of all threads. */
  readonly cpuMs: number;
  readonly controlCpuMs: number;
  readonly rssMb: number;
  readonly peakRssMb: number;
  /** Longest time for which the control thread did not take its turn. */
  readonly pauseMs: number;
  /** Times from the writing of a change to the last shard that has applied it. */
  readonly delaysMs: readonly number[];
  readonly endpoints: number;
}

let picker: Picker | undefined;
let pool: PoolController | undefined;
let waiting: { readonly version: number; readonly sentMs: number }[] = [];
let delaysMs: number[] = [];

const nowMs = () => performance.timeOrigin + performance.now();

const { apply, acknowledged } = PoolController.prototype;
PoolController.prototype.apply = function (update) {
  apply.call(this, update);
  pool = this;
  if ('endpoints' in update) return;
  for (const { labels } of update.set) {
    if (labels.sent !== undefined) waiting.push({ version: this.version, sentMs: Number(labels.sent) });
  }
};
PoolController.prototype.acknowledged = function () {
  acknowledged.call(this);
  waiting = waiting.filter(({ version, sentMs }) => {
    if (picker?.shards.own.hasApplied(version) !== true) return true;
    delaysMs.push(nowMs() - sentMs);
    return false;
  });
};

const parsed = parseServeFlags(process.argv.slice(2), {});
if ('help' in parsed) throw new Error('flags are needed');
const failed = (error: Error) => {
  throw error;
};
({ picker } = await createPicker(parsed, failed, startShardThreads(parsed.shards)));
const ports = await picker.start();

const pauses = monitorEventLoopDelay({ resolution: 1 });
let cpu = process.cpuUsage();
let controlCpu = process.threadCpuUsage();
let sinceMs = performance.now();

function usage(): Usage {
  const { user, system } = process.cpuUsage(cpu);
  const control = process.threadCpuUsage(controlCpu);
  const told = {
    seconds: (performance.now() - sinceMs) / 1000,
    cpuMs: (user + system) / 1000,
    controlCpuMs: (control.user + control.system) / 1000,
    rssMb: process.memoryUsage.rss() / 2 ** 20,
    peakRssMb: process.resourceUsage().maxRSS / 1024,
    pauseMs: pauses.max / 1e6,
    delaysMs,
    endpoints: pool?.assignments.length ?? 0,
  };
  cpu = process.cpuUsage();
  controlCpu = process.threadCpuUsage();
  sinceMs = performance.now();
  delaysMs = [];
  pauses.reset();
  return told;
}

// The pauses are found by a timer of its own, which costs more than an idle picker: only on demand.
process.on('message', (order: 'usage' | 'pauses') => {
  if (order === 'pauses') pauses.enable();
  process.send!(usage());
});
process.on('disconnect', () => process.exit());
process.send!(ports);
