// `node bench/informer.ts`, a program of its own because it measures CPU time of a process and not the time of an
// operation.
//
// What the metrics informer costs: 100 endpoints with a 36 KB page each, polled every 50 ms. The model servers are in a
// process of their own; the share of a core is that of this process. Once with a scan that does nothing, which leaves
// the cost of HTTP, once with the core's scanner and the shared columns behind it.
//
// ENDPOINTS=1000 BUSY=50 CPU_PERCENT=25 is a pool in which 50 endpoints have traffic, with --scrape-cpu-percent=25.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ExpositionScanner } from '../dist/src/core/exposition-scanner.js';
import { attachCore, createPoolMemory, defaultPoolSizes, EndpointTable } from '../dist/src/core/index.js';
import { EngineTable } from '../dist/src/pool/engines/engine-table.js';
import type { SignalSink } from '../dist/src/pool/sources/informer-options.js';
import { MetricsInformer } from '../dist/src/pool/sources/metrics-informer.js';
import { PageReader, type PageScanner } from '../dist/src/pool/sources/page-reader.js';
import { PollPace } from '../dist/src/pool/sources/poll-pace.js';

const ENDPOINTS = Number(process.env.ENDPOINTS ?? 100);
const MEASURE_SECONDS = Number(process.env.MEASURE_SECONDS ?? 5);
const PAGE_BYTES = Number(process.env.PAGE_BYTES ?? 36 * 1024);
const BUSY = Number(process.env.BUSY ?? 0);
const CPU_PERCENT = process.env.CPU_PERCENT;
const INTERVAL_MS = 50;

/** A page as vLLM's: mostly histograms, a few series that are wanted. */
function makePage(): string {
  const wanted =
    'vllm:num_requests_running{engine="0",model_name="m"} ' +
    '4.0\nvllm:num_requests_waiting{engine="0",model_name="m"} 2.0\n' +
    ('vllm:kv_cache_usage_perc{engine="0",model_name="m"} ' +
      '0.25\nvllm:cache_config_info{block_size="16",num_gpu_blocks="2048"} 1.0\n') +
    'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters=""} 1.7e+09\n';
  const lines: string[] = [];
  for (let i = 0, bytes = wanted.length; bytes < PAGE_BYTES; i += 1) {
    const line = `vllm:time_to_first_token_seconds_bucket{engine="0",le="${i / 100}",model_name="m"} ${i}.0\n`;
    lines.push(line);
    bytes += line.length;
  }
  return lines.slice(0, lines.length >> 1).join('') + wanted + lines.slice(lines.length >> 1).join('');
}

async function serve() {
  const page = makePage();
  const answer = Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${page.length}\r\n\r\n${page}`);
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('data', () => socket.write(answer));
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  process.send!(typeof address === 'object' ? address?.port : 0);
}

async function measureBoth() {
  const servers = fork(import.meta.filename, ['servers'], { execArgv: process.execArgv });
  const [port] = (await once(servers, 'message')) as [number];
  const page = { found: [true, true, true, true, true], values: new Float64Array(5), labels: [] };
  if (CPU_PERCENT === undefined) {
    await measure(
      'informer-http-floor',
      port,
      { compile: () => 0, begin() {}, feed() {}, end: () => page },
      { publish: () => true, stale: () => true },
    );
  }
  const sizes = { ...defaultPoolSizes, endpoints: Math.max(ENDPOINTS, defaultPoolSizes.endpoints) };
  const core = attachCore(createPoolMemory(sizes, { hashSeed: 1n }), 0);
  const table = new EndpointTable(core);
  for (let slot = 0; slot < ENDPOINTS; slot += 1) table.open(slot, 1);
  await measure('informer', port, new ExpositionScanner(core), {
    publish: (slot, _, signals, _nowMs, agesFromMs) => table.publish(slot, signals, agesFromMs),
    stale: (slot) => table.markStale(slot),
  });
  servers.kill();
}

async function measure(name: string, port: number, scanner: PageScanner, sink: SignalSink) {
  const informer = new MetricsInformer({
    reader: new PageReader(scanner, new EngineTable(), 8 << 20, { info() {}, warn() {} }, () => {}),
    sink,
    log: { info() {}, warn() {} },
    intervalMs: INTERVAL_MS,
    pace: new PollPace(INTERVAL_MS, CPU_PERCENT === undefined ? undefined : Number(CPU_PERCENT) / 100),
    hasTraffic: (slot) => slot < BUSY,
  });
  informer.setEndpoints(
    Array.from({ length: ENDPOINTS }, (_, slot) => ({
      slot,
      generation: 1,
      endpoint: {
        id: `default/${slot}`,
        name: `${slot}`,
        namespace: 'default',
        address: '127.0.0.1',
        port,
        labels: {},
      },
    })),
  );
  await pause(CPU_PERCENT === undefined ? 1_000 : 5_000);
  const before = { cpu: process.cpuUsage(), scrapes: informer.counts.scrapes, at: performance.now() };
  await pause(MEASURE_SECONDS * 1000);
  const { user, system } = process.cpuUsage(before.cpu);
  const seconds = (performance.now() - before.at) / 1000;
  const { scrapes, faults } = informer.counts;
  const count = scrapes - before.scrapes;
  const { use, freshness } = informer;
  informer.stop();
  const row = {
    name,
    core_share: (user + system) / 1e6 / seconds,
    user_us_per_scrape: user / count,
    system_us_per_scrape: system / count,
    scrapes_per_second: count / seconds,
    busy_ms: use.busyMs,
    quiet_ms: use.quietMs,
    measured_share: use.usedShare,
    oldest_ms: freshness.oldestMs,
    faults: Object.values(faults).reduce((sum, number) => sum + number, 0),
    node: process.version,
  };
  console.log(JSON.stringify(row));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (process.argv[1] === import.meta.filename) {
  if (process.argv[2] === 'servers') await serve();
  else await measureBoth();
}
