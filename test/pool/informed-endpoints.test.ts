import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ExpositionScanner } from '../../dist/src/core/exposition-scanner.js';
import { attachCore, createPoolMemory, EndpointTable } from '../../dist/src/core/index.js';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';
import { SlotTable } from '../../dist/src/pool/slots.js';
import { MetricsInformer } from '../../dist/src/pool/sources/metrics-informer.js';
import { PageReader } from '../../dist/src/pool/sources/page-reader.js';
import { smallSizes } from '../core/pool.js';
import { endpointOf } from './endpoints.js';

const PAGE = `# HELP vllm:num_requests_waiting Requests, with "quotes" {braces}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a\\"b,c}"} 1.0e+01 1700000000000
vllm:num_requests_waiting{engine="1",model_name="m"} 2
vllm:num_requests_waiting_by_reason{reason="x"} 77
vllm:num_requests_running{engine="0"} 5
vllm:kv_cache_usage_perc{engine="0"} 2.5E-1
vllm:cache_config_info{block_size="16",num_gpu_blocks="2048"} 1.0
vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters="c"} 1.7e9
`;

describe('informed endpoints', () => {
  it('informed endpoints have the signals of their page in the shared columns, scanned by the core', async () => {
    const server = createServer((_, response) => response.end(PAGE));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;

    const core = attachCore(createPoolMemory(smallSizes, { hashSeed: 7n }), 0);
    const table = new EndpointTable(core);
    const { added } = new SlotTable(smallSizes.endpoints).apply([endpointOf('a', '127.0.0.1', port)]);
    for (const { slot, generation } of added) table.open(slot, generation);
    let clockMs = 1_000;
    const read = await new Promise<ReturnType<EndpointTable['read']>>((resolve) => {
      const informer = new MetricsInformer({
        reader: new PageReader(
          new ExpositionScanner(core),
          new EngineTable(),
          8 << 20,
          { info() {}, warn() {} },
          () => {},
        ),
        log: { info() {}, warn() {} },
        now: () => clockMs,
        sink: {
          publish(slot, _, signals, nowMs) {
            const applied = table.publish(slot, signals, nowMs);
            informer.stop();
            resolve(table.read(slot));
            return applied;
          },
          stale: (slot) => table.markStale(slot),
        },
        intervalMs: 1,
      });
      informer.setEndpoints(added);
      // From here on the clock stands still, so that the time of the signals is known; the first poll is due.
      clockMs = 1_234;
    });
    server.close();
    expect(read).toMatchObject({
      generation: 1,
      waiting: 12,
      running: 5,
      kvUsage: 0.25,
      blockTokens: 16,
      blockCount: 2048,
      signalTimeMs: 1234,
    });
  });
});
