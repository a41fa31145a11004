/**
 * Whole exchanges from memory to memory: HTTP/2 frames in, frames out, through a real shard (transport, streams, core,
 * counters) on this thread. This is what a request costs without the kernel. CPU time of this thread would be the
 * fairer figure on a busy machine; the medians of many short runs come close to it.
 */

import { builtinPlugins } from '../dist/src/config/builtin-plugins.js';
import { type LoadedConfiguration, loadConfiguration } from '../dist/src/config/load.js';
import type { ScanMemory } from '../dist/src/core/scan-memory.js';
import { HeldBytes } from '../dist/src/ingress/byte-budget.js';
import type { StreamContext } from '../dist/src/ingress/exchange.js';
import { createStreamOpener } from '../dist/src/ingress/opener.js';
import { POOL_HEADER, PoolChoice } from '../dist/src/ingress/pool-choice.js';
import { PROCESS_PATH, type StreamEntry } from '../dist/src/ingress/transport.js';
import { type ConnectionWire, Http2Connection } from '../dist/src/ingress/transports/http2/connection.js';
import { createLogger } from '../dist/src/operations/log.js';
import { rehearsalPool } from '../dist/src/picker/control/rehearsal-pool.js';
import { reloadableSettings, restartSettings } from '../dist/src/picker/control/shard-settings.js';
import type { PoolStart, RehearsalPool, ShardSettings } from '../dist/src/picker/messages.js';
import { PoolStack } from '../dist/src/picker/shards/pool-stack.js';
import { shardDefinitions } from '../dist/src/picker/shards/shard-plugins.js';
import { threadClockMs } from '../dist/src/runtime/pool-clock.js';
import { requestHeaders, responseBody, responseHeaders } from '../test/ingress/envoy-messages.ts';
import { data, END_HEADERS, END_STREAM, frame, PREFACE, settings, windowUpdate } from '../test/ingress/http2/frames.ts';
import { BOUNDS, DECIDE, OBSERVE } from '../test/serve/default-sections.ts';
import type { Bench, Prepared } from './bench.ts';
import { framed, framedBody, headerBlocks } from './load/templates.ts';
import { chatHeaders } from './stream.ts';
import { rounds } from './threads/rounds.ts';

const WINDOW_BYTES = 2 ** 30;
/** Bytes that are given to the connection at one time, as a socket does. */
const READ_BYTES = 65_536;
/** Bytes at the prompt's end that differ from request to request. */
const SERIAL_DIGITS = 12;
const THREAD_SERIALS = 10_000_000_000;
const SERIAL_PLACE = '#'.repeat(SERIAL_DIGITS);
const BLOCKS = headerBlocks();
const USAGE = '"usage":{"prompt_tokens":1024,"completion_tokens":20,"total_tokens":1044}';

interface Shape {
  readonly promptBytes: number;
  /** 1 = JSON in one piece; more = server-sent events. */
  readonly chunks: number;
  /** Exchanges of one run. */
  readonly batch: number;
  /** The pools of the shard, and what chooses among them for each request; undefined = there is one. */
  readonly pools?: { readonly count: number; readonly by: 'header' | 'model' };
  /** Share of the requests that are traced; absent = traces are off. */
  readonly traced?: number;
  /** All requests come too late: they are refused at their header blocks. */
  readonly late?: boolean;
}

function settingsOf(configuration: LoadedConfiguration, traced: number | undefined): ShardSettings {
  const sampler = traced === undefined ? undefined : { parentBased: true, ratio: traced, propagates: true };
  return {
    listen: {
      ...{ addresses: { grpc: '', health: '', metrics: '' }, transport: 'lean', socket: undefined },
      ...{ grpcPort: 0, healthPort: 0, metricsPort: 0, metricsHosts: [], trustedProxies: [] },
      ...{ tls: undefined, metricsTls: undefined, certificate: undefined },
    },
    bounds: { ...BOUNDS, maxRequestBodyBytes: WINDOW_BYTES, maxBufferedBytes: WINDOW_BYTES, maxConnections: 1 },
    decide: DECIDE,
    observe: { ...OBSERVE, sampler, columnsEvery: 0 },
    restart: restartSettings(configuration, []),
    reloadable: reloadableSettings(configuration),
  };
}

/** Memory of a pool that the shards of several threads use. */
export type SharedPool = Pick<RehearsalPool, 'pool' | 'assignments'>;

const defaultConfiguration = (): LoadedConfiguration =>
  loadConfiguration({}, { allowExperimental: false, registry: builtinPlugins });

function makePool(shards: number): SharedPool {
  return rehearsalPool(defaultConfiguration().scheduling, shards, 0, { hashSeed: 1n });
}

interface StackOptions {
  readonly traced?: number | undefined;
  /** Number of the pool; 0 = the own one. */
  readonly pool?: number;
  /** Scans of the own pool; absent = it is that one. */
  readonly scans?: ScanMemory;
  /** Pool of several threads, and which of them this one is; absent = a pool of its own. */
  readonly shared?: (SharedPool & { readonly thread: number }) | undefined;
}

/** Stack of a pool with the default configuration, over eight endpoints. */
async function makeStack({ traced, pool = 0, scans, shared }: StackOptions): Promise<PoolStack> {
  const configuration = defaultConfiguration();
  const { pool: memory, assignments } = shared ?? makePool(1);
  const shardSettings = settingsOf(configuration, traced);
  const start: PoolStart = {
    pool,
    memory,
    settings: shardSettings,
    seed: '1',
    snapshot: {
      version: 1,
      assignments,
      rules: { objectives: [], rewrites: [], models: [] },
      facts: [],
      names: { models: new Set(Array.from({ length: 100 }, (_, i) => modelOf(i))), fairnessIds: new Set() },
    },
    route: undefined,
    port: undefined,
  };
  const definitions = await shardDefinitions(shardSettings.restart);
  const log = createLogger({ verbosity: 0 });
  const stack: PoolStack = new PoolStack({
    ...{ start, thread: shared?.thread ?? 1, definitions, log, scans },
    send: (message) => {
      if (message.kind !== 'traces') return;
      // What a message port does with it on this side.
      structuredClone(message);
      queueMicrotask(() => stack.receive({ kind: 'tracesTaken' }));
    },
  });
  return stack;
}

/** Names of the model and of the pool of a request, all of one length. */
const modelOf = (pool: number): string => `llama-${String(pool).padStart(3, '0')}`;
const poolOf = (pool: number): string => `pool-${String(pool).padStart(3, '0')}`;

function request(promptBytes: number, pool: number, byHeader: boolean): Buffer {
  const content = `${'a '.repeat((promptBytes - SERIAL_DIGITS) / 2)}${SERIAL_PLACE}`;
  const messages = [{ role: 'user', content }];
  const body = Buffer.from(JSON.stringify({ messages, model: modelOf(pool), max_tokens: 100 }));
  const head = requestHeaders({
    ...chatHeaders(body.length),
    ...(byHeader ? { [POOL_HEADER]: poolOf(pool) } : {}),
  });
  return Buffer.concat([frame('HEADERS', END_HEADERS, 1, BLOCKS.later), framed(head), framedBody(body)]);
}

function answer(chunks: number): Buffer {
  const type = chunks === 1 ? 'application/json' : 'text/event-stream';
  const head = framed(responseHeaders({ ':status': '200', 'content-type': type }));
  if (chunks === 1) return Buffer.concat([head, framed(responseBody(`{"id":"c",${USAGE}}`, true), END_STREAM)]);
  const events = Array.from({ length: chunks - 1 }, (_, i) =>
    framed(responseBody(`data: {"choices":[{"delta":{"content":"token ${i}"}}]}\n\n`, false)),
  );
  return Buffer.concat([
    head,
    ...events,
    framed(responseBody(`data: {${USAGE}}\n\ndata: [DONE]\n\n`, true), END_STREAM),
  ]);
}

/**
 * Age of late requests, and time for which they must have come until every one is refused (`waitMsMax` of
 * `shard-turn-budget.ts`).
 */
const LATE_MS = 10_000;
const PRESSURE_MS = 2_500;

/** Lets requests wait for too long until all of them are refused. */
async function press(open: StreamEntry): Promise<void> {
  const end = performance.now() + PRESSURE_MS;
  while (performance.now() < end) {
    open.turnAway?.(performance.now() - LATE_MS, false, false);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Frames of one run's exchanges, with the places that differ from run to run. */
class Script {
  readonly bytes: Buffer;
  readonly #streams: number[] = [];
  readonly #serials: number[] = [];
  readonly #perExchange: number;
  readonly #thread: number;
  #next = 3;

  /** @param thread whose prompts differ from those of other threads */
  constructor({ promptBytes, chunks, batch, pools, late }: Shape, thread: number) {
    this.#thread = thread;
    const { count, by } = pools ?? { count: 1, by: 'model' };
    const exchanges = Array.from({ length: batch }, (_, i) =>
      Buffer.concat([
        request(promptBytes, i % count, by === 'header'),
        late === true ? data(1, Buffer.alloc(0), END_STREAM) : answer(chunks),
      ]),
    );
    this.bytes = Buffer.concat(exchanges);
    for (let at = 0; at < this.bytes.length; at += 9 + this.bytes.readUIntBE(at, 3)) this.#streams.push(at + 5);
    this.#perExchange = this.#streams.length / batch;
    for (let at = this.bytes.indexOf(SERIAL_PLACE); at >= 0; at = this.bytes.indexOf(SERIAL_PLACE, at + 1)) {
      this.#serials.push(at);
    }
  }

  /** Gives the exchanges new streams and new prompts. */
  renew(): void {
    this.#streams.forEach((at, i) => {
      this.bytes.writeUInt32BE(this.#next + 2 * Math.floor(i / this.#perExchange), at);
    });
    this.#serials.forEach((at, i) => {
      const serial = this.#thread * THREAD_SERIALS + this.#next + 2 * i;
      this.bytes.write(String(serial).padStart(SERIAL_DIGITS, '0'), at, 'latin1');
    });
    this.#next += 2 * this.#serials.length;
  }
}

/** Entry of a shard that serves this many pools. */
async function makeEntry({ pools, traced }: Shape, shared: StackOptions['shared']): Promise<StreamEntry> {
  const own = await makeStack({ traced, shared });
  const services = own.rehearsalServices();
  if (pools === undefined) return createStreamOpener(services);
  const choice = new PoolChoice<StreamContext>();
  const opener = createStreamOpener(services, choice);
  for (let pool = 0; pool < pools.count; pool++) {
    const use = { streams: 0, idle: undefined };
    const stack = await makeStack({ traced, pool: pool + 1, scans: own.scans });
    choice.add({ name: poolOf(pool), models: [modelOf(pool)] }, opener.contextOf(stack.rehearsalServices(), use));
  }
  return opener;
}

/** @param shared pool of several threads; absent = one of its own */
export async function memoryBench(shape: Shape, shared?: StackOptions['shared']): Promise<Prepared> {
  const open = await makeEntry(shape, shared);
  let sent = 0;
  const wire: ConnectionWire = {
    write: (bytes) => {
      sent += bytes.length;
    },
    end: () => undefined,
    unsent: 0,
  };
  const connection = new Http2Connection(wire, {
    methods: new Map([[PROCESS_PATH, { open, turnAway: (arrivedAt, ...rest) => open.turnAway?.(arrivedAt, ...rest) }]]),
    budget: new HeldBytes(WINDOW_BYTES),
    heldBytesMax: WINDOW_BYTES,
    messageBytesMax: WINDOW_BYTES,
    replyBytesMax: WINDOW_BYTES,
    streamsMax: 10_000,
    stallMs: Number.POSITIVE_INFINITY,
    now: threadClockMs,
  });
  const say = (bytes: Buffer): void => {
    const arrivedAt = performance.now() - (shape.late === true ? LATE_MS : 0);
    for (let at = 0; at < bytes.length; at += READ_BYTES) {
      connection.receive(bytes, at, Math.min(bytes.length, at + READ_BYTES), arrivedAt);
    }
  };
  say(Buffer.concat([PREFACE, settings({ 4: WINDOW_BYTES }), windowUpdate(0, WINDOW_BYTES)]));
  // The first stream fills the table of header fields.
  say(frame('HEADERS', END_HEADERS | END_STREAM, 1, BLOCKS.first));
  const script = new Script(shape, shared?.thread ?? 0);
  if (shape.late === true) await press(open);
  return {
    opsPerRun: shape.batch,
    run: async () => {
      script.renew();
      if (sent > 0) say(windowUpdate(0, sent));
      sent = 0;
      say(script.bytes);
      // New work has its slice of every turn of the event loop; while the code is cold some of it waits for the next
      // one.
      do await new Promise((resolve) => setImmediate(resolve));
      while (connection.streamCount > 0);
      if (connection.isClosed || sent === 0) throw new Error('the exchanges were not answered');
    },
    teardown: () => connection.destroy(),
  };
}

export const benches: readonly Bench[] = [
  { name: 'memory/chat-4k', setup: () => memoryBench({ promptBytes: 4_000, chunks: 1, batch: 16 }) },
  // All of them wait for their turn at one time, as under overload: what lives long is dearer to collect.
  { name: 'memory/chat-4k-1000-at-once', setup: () => memoryBench({ promptBytes: 4_000, chunks: 1, batch: 1_000 }) },
  {
    name: 'memory/refused-chat-4k',
    setup: () => memoryBench({ promptBytes: 4_000, chunks: 1, batch: 64, late: true }),
  },
  {
    name: 'memory/chat-4k-traced-1-percent',
    setup: () => memoryBench({ promptBytes: 4_000, chunks: 1, batch: 16, traced: 0.01 }),
  },
  { name: 'memory/chat-400k', setup: () => memoryBench({ promptBytes: 400_000, chunks: 1, batch: 2 }) },
  {
    name: 'memory/chat-4k-one-pool',
    setup: () => memoryBench({ promptBytes: 4_000, chunks: 1, batch: 100 }),
  },
  {
    name: 'memory/chat-4k-100-pools-header',
    setup: () => memoryBench({ promptBytes: 4_000, chunks: 1, batch: 100, pools: { count: 100, by: 'header' } }),
  },
  {
    name: 'memory/chat-4k-100-pools-model',
    setup: () => memoryBench({ promptBytes: 4_000, chunks: 1, batch: 100, pools: { count: 100, by: 'model' } }),
  },
  { name: 'memory/chat-4k-20-chunks', setup: () => memoryBench({ promptBytes: 4_000, chunks: 20, batch: 16 }) },
  ...[1, 2].map((threads) => ({ name: `threads/chat-4k-${threads}`, setup: () => shardThreads(threads) })),
];

/** Batches of a round, and exchanges of a batch (`threads/exchange-worker.ts`). */
const ROUND_BATCHES = 64;
const BATCH = 16;

/** Shards on threads of their own exchange over one pool. */
function shardThreads(threads: number): Promise<Prepared> {
  const { pool, assignments } = makePool(threads);
  const file = new URL('./threads/exchange-worker.ts', import.meta.url);
  return rounds(file, threads, ROUND_BATCHES * BATCH, () => ({
    shared: { pool, assignments },
    batches: ROUND_BATCHES,
    batch: BATCH,
  }));
}
