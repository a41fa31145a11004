// Load on a picker in a process of its own, and what it costs that process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ModelServer } from '../compat/model-servers.ts';
import { PickerProcess, writePickerFiles } from '../compat/picker-process.ts';
import { type Answer, ProxyConnection, type ProxyOwner } from '../load/proxy-connection.ts';
import { ExchangeClient, type ExchangeShape } from './exchange-client.ts';

/** Our program, as it is installed. */
export const OWN_COMMAND: readonly string[] = [
  process.execPath,
  fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url)),
  'serve',
];
/** The default profile, written out: both pickers read the same file. */
export const CONFIGURATION = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
schedulingProfiles:
- name: default
  plugins: [{pluginRef: queue-scorer, weight: 2}, {pluginRef: kv-cache-utilization-scorer, weight: 2}, \
{pluginRef: prefix-cache-scorer, weight: 3}]
`;
/** Metrics pages are small and seldom read: reading is a cost by endpoints and seconds, not by requests. */
export const FLAGS = ['--refresh-metrics-interval=1s'];

const MIB = 1_048_576;
/** Connections of a burst: one for each thread of a proxy. */
const BURST_CONNECTIONS = 4;
/** For the connections to open. */
const BURST_PAUSE_MS = 200;

export interface LoadShape extends ExchangeShape {
  readonly endpoints: number;
  /** Exchanges under way at one time. */
  readonly concurrency: number;
}

export interface LoadTimes {
  readonly warmMs: number;
  readonly measuredMs: number;
}

export interface LoadResult {
  readonly requests: number;
  /** Of the picker's process, for one exchange. */
  readonly cpuUs: number;
  readonly pickP50Us: number;
  readonly pickP99Us: number;
  readonly residentBytes: number;
}

/** Starts a picker and measures one load on it. */
export async function measureLoad(
  command: readonly string[],
  shape: LoadShape,
  { warmMs, measuredMs }: LoadTimes,
): Promise<LoadResult> {
  return withPicker(command, shape.endpoints, async (picker) => {
    const client = new ExchangeClient(picker.port, shape);
    await closedLoop(client, shape.concurrency, warmMs);
    const before = usageOf(picker);
    const picks = await closedLoop(client, shape.concurrency, measuredMs);
    const after = usageOf(picker);
    client.close();
    picks.sort((a, b) => a - b);
    return {
      requests: picks.length,
      cpuUs: ((after.cpuSeconds - before.cpuSeconds) * 1e6) / picks.length,
      pickP50Us: quantile(picks, 0.5) * 1e3,
      pickP99Us: quantile(picks, 0.99) * 1e3,
      residentBytes: after.rssMb * MIB,
    };
  });
}

/**
 * The times of bursts, one behind the other, on a picker that has been ready for `readyMs`. The frames come from a
 * template: a client of a gRPC library takes longer to write 1,000 requests than a picker to place them.
 */
export async function measureBursts(
  command: readonly string[],
  endpoints: number,
  requests: number,
  bursts: number,
  readyMs = 0,
): Promise<number[]> {
  return withPicker(command, endpoints, async ({ port }) => {
    await pause(readyMs);
    const times: number[] = [];
    for (let i = 0; i < bursts; i++) times.push(await sendBurst(port, requests));
    return times;
  });
}

/** Milliseconds from sending `requests` at once until the last of them is picked. */
export async function sendBurst(port: number, requests: number): Promise<number> {
  const burst = new Burst(port, requests);
  await pause(BURST_PAUSE_MS);
  return burst.send();
}

/** Requests that come at once, over several connections of a proxy. */
class Burst implements ProxyOwner {
  readonly #connections: readonly ProxyConnection[];
  readonly #requests: number;
  readonly #all = Promise.withResolvers<number>();
  readonly #answers = { placed: 0, refused: 0, failed: 0 };
  #begin = 0;

  constructor(port: number, requests: number, connections = BURST_CONNECTIONS) {
    this.#requests = requests;
    this.#connections = Array.from({ length: connections }, () => new ProxyConnection(port, this));
  }

  now(): number {
    return performance.now();
  }

  /** @returns milliseconds until all have their destination */
  async send(): Promise<number> {
    this.#begin = this.now();
    for (let i = 0; i < this.#requests; i++) this.#connections[i % this.#connections.length]!.begin(this.#begin);
    for (const connection of this.#connections) connection.flush();
    try {
      return await this.#all.promise;
    } finally {
      for (const connection of this.#connections) connection.destroy();
    }
  }

  answered(_age: number, answer: Answer): void {
    this.#answers[answer]++;
    const { placed, refused, failed } = this.#answers;
    if (placed + refused + failed < this.#requests) return;
    if (placed === this.#requests) this.#all.resolve(this.now() - this.#begin);
    else this.#all.reject(new Error(`of a burst ${refused} requests were refused and ${failed} failed`));
  }

  ended(): void {}
}

/** Pause between two attempts to get a first answer. */
const ATTEMPT_PAUSE_MS = 3;

/** Resolves when a picker has placed a request; one that refuses connections or the request is asked again. */
async function firstAnswer(picker: PickerProcess): Promise<void> {
  const attempt = async () => {
    const burst = new Burst(picker.port, 1, 1);
    await burst.send();
  };
  for (let placed = false; !placed; ) {
    picker.checkStart();
    placed = await attempt().then(
      () => true,
      () => false,
    );
    if (!placed) await pause(ATTEMPT_PAUSE_MS);
  }
}

export interface StartFigures {
  /** From exec to the first answer. */
  readonly readyMs: number;
  /** Of the process until then, in steps of 10 ms. */
  readonly cpuMs: number;
  /** Memory some time later. */
  readonly idleBytes: number;
}

/** What a start takes, and memory `idleMs` behind it. */
export async function measureStart(
  command: readonly string[],
  { idleMs = 2_000, endpoints = 1 }: { readonly idleMs?: number; readonly endpoints?: number } = {},
): Promise<StartFigures> {
  return withFiles(endpoints, CONFIGURATION, async (configuration) => {
    const picker = await PickerProcess.launch(command, configuration, FLAGS);
    try {
      await firstAnswer(picker);
      const readyMs = performance.now() - picker.startedAt;
      const cpuMs = usageOf(picker).cpuSeconds * 1_000;
      await pause(idleMs);
      return { readyMs, cpuMs, idleBytes: usageOf(picker).rssMb * MIB };
    } finally {
      picker.stop();
    }
  });
}

function usageOf(picker: PickerProcess): NonNullable<PickerProcess['usage']> {
  const { usage } = picker;
  if (usage === undefined) throw new Error('CPU time and memory of a process are read from /proc: run it on Linux');
  return usage;
}

async function withPicker<Result>(
  command: readonly string[],
  endpoints: number,
  use: (picker: PickerProcess) => Promise<Result>,
): Promise<Result> {
  return withFiles(endpoints, CONFIGURATION, async (configuration) => {
    const picker = await PickerProcess.start(command, configuration, endpoints, FLAGS);
    try {
      return await use(picker);
    } finally {
      picker.stop();
    }
  });
}

/**
 * Calls `use` with the file of a configuration of a pool of so many endpoints, whose metrics page is served meanwhile.
 * @param configuration without discovery
 */
export async function withFiles<Result>(
  endpoints: number,
  configuration: string,
  use: (file: string) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-load-'));
  // One server shows the metrics page of all endpoints, which have distinct addresses of the loopback network.
  const server = await ModelServer.start('0.0.0.0');
  try {
    const all = Array.from({ length: endpoints }, (_, i) => ({
      name: `endpoint-${i}`,
      // Distinct addresses: llm-d-router tells endpoints by IP alone.
      address: `127.0.${1 + (i >> 8)}.${i & 255}`,
      port: server.address.port,
      labels: {},
    }));
    return await use(writePickerFiles(folder, configuration, all));
  } finally {
    server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Keeps `concurrency` exchanges under way. @returns times to the destination, in milliseconds */
async function closedLoop(client: ExchangeClient, concurrency: number, forMs: number): Promise<number[]> {
  const until = performance.now() + forMs;
  const picks: number[] = [];
  const one = async () => {
    while (performance.now() < until) picks.push(await client.exchange());
  };
  await Promise.all(Array.from({ length: concurrency }, one));
  return picks;
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
