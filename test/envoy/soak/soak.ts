// A picker behind a real Envoy with small windows, under traffic in which everything ends that can end: answers, resets
// at any moment, bodies of all sizes, streams that wait for a window. `npm run soak` runs it for minutes, a test for
// seconds.

import { setTimeout } from 'node:timers/promises';
import type { TransportName } from '../../../dist/src/contract/listen-settings.js';
import type { PickerProcess } from '../../../dist/tools/demo/picker-process.js';
import { Clients, type Outcome, type Traffic } from './clients.ts';
import { type Figures, leftOver, readFigures, type Trend, trend } from './figures.ts';
import { HastyProxy } from './hasty-proxy.ts';
import { startSoakServer } from './model-server.ts';
import { bufferedBytesFor, startPicker } from './picker.ts';
import { startProxy, type Windows } from './proxy.ts';

export interface SoakOptions {
  /** Path of Envoy. */
  readonly envoy: string;
  readonly seconds: number;
  readonly transport: TransportName;
  /** Of Envoy towards the picker; undefined = its own. */
  readonly windows: Windows | undefined;
  readonly traffic: Traffic;
  /** Requests that come at once before everything else; 0 = none. */
  readonly burst: number;
  /**
   * From the end of the last stream to the reading of the memory at rest: slabs go back a minute behind their last use.
   */
  readonly restMs: number;
  /** Hears each sample, and how many requests have ended in which way. */
  readonly report?: (figures: Figures & Clients['outcomes']) => void;
}

export interface SoakResult {
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Requests by the reason of their failure, and by that of their refusal with 408, 429 or 503. */
  readonly failures: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  /** `--max-buffered-bytes` of the picker. */
  readonly bufferedBytesMax: number;
  /** Streams of the proxy that ends them early. */
  readonly hasty: { readonly answered: number; readonly failed: number; readonly failures: readonly string[] };
  readonly streamsMax: number;
  readonly rssMb: {
    /** At rest behind the burst. */
    readonly afterBurst: number;
    readonly largest: number;
    /** At rest behind the last stream. */
    readonly atEnd: number;
    /** Over the second half. */
    readonly trend: Trend;
  };
  /**
   * Share of garbage collections in the time in which the shard was busy. Other programs that take its core away
   * lengthen both.
   */
  readonly collectionShare: number;
  readonly cpuMsPerRequest: number;
  /** What was not released when all streams had ended. */
  readonly left: readonly string[];
}

const SERVERS = 4;
const SAMPLE_MS = 1_000;
/** For the last streams to end, and for the shards to tell of it. */
const END_MS_MAX = 60_000;
/** Collections are counted from this share of the time on: before, code is compiled and buffers grow. */
const WARM_SHARE = 0.1;
/** Growth of the resident memory in the second half that is none, in MB. */
const GROWTH_MB_MIN = 4;

/** Runs the traffic and reads what the picker holds, during and after it. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const servers = await Promise.all(
      Array.from({ length: SERVERS }, (_, index) => startSoakServer(`server-${index}`)),
    );
    stops.push(() => Promise.all(servers.map((server) => server.stop())));
    const picker = await startPicker(servers, options.transport, stops, bufferedBytesFor(options.traffic));
    const proxy = await startProxy(options.envoy, picker.grpcPort, options.windows);
    stops.push(() => proxy.stop());
    return await run(options, picker, proxy.port);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function run(options: SoakOptions, picker: PickerProcess, port: number): Promise<SoakResult> {
  const read = () => readFigures(picker.metricsUrl, (performance.now() - startedAt) / 1_000);
  const startedAt = performance.now();
  const burst = await sendBurst(options, port, read);
  const samples: Figures[] = [];
  const clients = new Clients(port, options.traffic);
  const over = new AbortController();
  const hasty = new HastyProxy(picker.grpcPort);
  const load = Promise.all([clients.run(over.signal), hasty.run(over.signal)]);
  try {
    await sample(options, read, samples, clients.outcomes);
  } finally {
    over.abort();
    await load;
  }
  // Its connection stays: with a connection its streams end, too.
  const last = await atRest(read, options.restMs);
  clients.close();
  hasty.close();
  return resultOf({ traffic: options.traffic, clients, hasty, samples, last, burst });
}

/** Reads figures once a second for the time of the run. */
async function sample(
  { seconds, report }: SoakOptions,
  read: () => Promise<Figures | undefined>,
  samples: Figures[],
  outcomes: Clients['outcomes'],
): Promise<void> {
  const begunAt = performance.now();
  while (performance.now() - begunAt < seconds * 1_000) {
    await setTimeout(SAMPLE_MS);
    const figures = await read();
    if (figures === undefined) continue;
    samples.push(figures);
    report?.({ ...figures, ...outcomes });
  }
  if (samples.length === 0) throw new Error('the picker does not serve its metrics');
}

/** So many requests at the same time, and the memory behind them. */
async function sendBurst(
  options: SoakOptions,
  port: number,
  read: () => Promise<Figures | undefined>,
): Promise<Figures> {
  if (options.burst > 0) {
    const streams = options.burst;
    const quick = { ...options.traffic, streams, rate: streams, waveMs: 0, sizes: [{ bytes: 4_096, share: 1 }] };
    const clients = new Clients(port, quick);
    await clients.run(AbortSignal.timeout(0));
    clients.close();
  }
  return atRest(read, options.burst > 0 ? options.restMs : 0);
}

async function atRest(read: () => Promise<Figures | undefined>, restMs: number): Promise<Figures> {
  const figures = await settled(read);
  if (restMs === 0 || leftOver(figures).length > 0) return figures;
  await setTimeout(restMs);
  return settled(read);
}

/** Figures when nothing is left, or when it has stayed for too long. */
async function settled(read: () => Promise<Figures | undefined>): Promise<Figures> {
  const deadline = performance.now() + END_MS_MAX;
  for (;;) {
    // The shards tell of themselves once a second.
    await setTimeout(SAMPLE_MS);
    const figures = await read();
    const late = performance.now() > deadline;
    if (figures !== undefined && (late || leftOver(figures).length === 0)) return figures;
    if (late) throw new Error('the picker does not serve its metrics');
  }
}

interface Run {
  readonly traffic: Traffic;
  readonly hasty: HastyProxy;
  readonly clients: Clients;
  readonly samples: readonly Figures[];
  readonly last: Figures;
  readonly burst: Figures;
}

function resultOf({ traffic, clients, hasty, samples, last, burst }: Run): SoakResult {
  const { outcomes, failures, refusals } = clients;
  const warm = samples[Math.floor(samples.length * WARM_SHARE)]!;
  const [first, end] = [samples[0]!, samples.at(-1)!];
  const half = samples.slice(Math.floor(samples.length / 2));
  const requests = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  return {
    outcomes,
    failures,
    refusals,
    bufferedBytesMax: bufferedBytesFor(traffic),
    hasty: { answered: hasty.answered, failed: hasty.failed, failures: hasty.failures },
    streamsMax: Math.max(...samples.map(({ streams }) => streams)),
    rssMb: {
      afterBurst: burst.rssMb,
      largest: Math.max(...samples.map(({ rssMb }) => rssMb)),
      atEnd: last.rssMb,
      trend: trend(half.map(({ at, rssMb }) => [at, rssMb])),
    },
    collectionShare: (end.collectionSeconds - warm.collectionSeconds) / (end.busySeconds - warm.busySeconds),
    cpuMsPerRequest: (1_000 * (end.cpuSeconds - first.cpuSeconds)) / requests,
    left: leftOver(last),
  };
}

/** Faults that a run of any length shows; empty = none. */
export function faultsOf({ outcomes, failures, hasty, left }: SoakResult): string[] {
  return [
    ...(outcomes.answered > 0 ? [] : ['no request was answered']),
    ...(outcomes.failed > 0 ? [`${outcomes.failed} requests failed: ${listed(failures)}`] : []),
    ...(hasty.answered > 0 ? [] : ['no stream that ended early was answered']),
    ...(hasty.failed > 0 ? [`${hasty.failed} streams that ended early failed: ${hasty.failures.join('; ')}`] : []),
    ...left.map((what) => `not released: ${what}`),
  ];
}

/** Bounds of a run of minutes. */
export interface CostBounds {
  /** Requests that are refused. A picker without a core refuses what it cannot begin within seconds. */
  readonly refused: number;
  /** On resident memory at rest; undefined = none. */
  readonly rssMb: number | undefined;
  /** On the share of garbage collections. Where other programs take the cores, a collection waits for its threads. */
  readonly collectionShare: number;
}

function listed(reasons: Readonly<Record<string, number>>): string {
  return Object.entries(reasons)
    .map(([reason, count]) => `${count} x ${reason}`)
    .join('; ');
}

/**
 * Faults of a run of minutes on a machine that does nothing else: requests that are refused, memory that grows, time
 * for garbage.
 */
export function costsOf({ outcomes, refusals, rssMb, collectionShare }: SoakResult, bounds: CostBounds): string[] {
  const { growth, noise } = rssMb.trend;
  const most = Math.max(GROWTH_MB_MIN, noise);
  const rest = Math.max(rssMb.afterBurst, rssMb.atEnd);
  return [
    ...(outcomes.refused <= bounds.refused ? [] : [`${outcomes.refused} requests were refused: ${listed(refusals)}`]),
    ...(growth <= most
      ? []
      : [`the resident memory grew by ${growth.toFixed(1)} MB, above its noise of ${most.toFixed(1)} MB`]),
    ...(collectionShare < bounds.collectionShare
      ? []
      : [
          `garbage collections took ${(100 * collectionShare).toFixed(1)} % of the busy time, the bound is ` +
            `${100 * bounds.collectionShare} %`,
        ]),
    ...(bounds.rssMb === undefined || rest <= bounds.rssMb
      ? []
      : [`the resident memory at rest is ${rest.toFixed(0)} MB, the bound is ${bounds.rssMb} MB`]),
  ];
}
