// What counting costs on the request path, and what a page of many series costs.
import { attachCore, createPoolMemory, defaultPoolSizes } from '../dist/src/core/memory.js';
import { MetricsExposition } from '../dist/src/operations/telemetry/exposition.js';
import { ShardRecorder } from '../dist/src/operations/telemetry/shard-recorder.js';
import type { Bench } from './bench.ts';

const LOOP = 1000;
const SERIES = 1000;

function make() {
  const pool = createPoolMemory({ ...defaultPoolSizes, endpoints: 64, indexBlocks: 1024, requests: 64, threads: 2 });
  const recorder = new ShardRecorder(attachCore(pool, 1), { endpointOf: () => undefined });
  const series = (model: number) =>
    recorder.series({ model: `model-${model}`, target: '', fairness: 'default-flow', priority: 0 });
  return { pool, recorder, series };
}

export const benches: readonly Bench[] = [
  {
    name: 'telemetry/observe',
    async setup() {
      const { recorder, series } = make();
      const at = series(0);
      return {
        opsPerRun: LOOP,
        run: () => {
          for (let i = 0; i < LOOP; i++) recorder.interTokenLatency(at, i / 500);
        },
      };
    },
  },
  {
    name: 'telemetry/series-of-8',
    async setup() {
      const { recorder } = make();
      const labels = Array.from({ length: 8 }, (_, index) => ({
        model: `model-${index}`,
        target: '',
        fairness: 'default-flow',
        priority: 0,
      }));
      return {
        opsPerRun: LOOP,
        run: () => {
          for (let i = 0; i < LOOP; i++) recorder.series(labels[i & 7]!);
        },
      };
    },
  },
  {
    name: `telemetry/page-${SERIES}-series`,
    async setup() {
      const { pool, recorder, series } = make();
      const usage = { promptTokens: 700, completionTokens: 30, totalTokens: 730, cachedTokens: 64 };
      for (let model = 0; model < SERIES; model++) {
        const at = series(model);
        recorder.routed(at, 3000);
        recorder.tokens(at, usage);
      }
      const exposition = new MetricsExposition({
        core: attachCore(pool, 0),
        poolName: 'bench',
        endpointOf: () => undefined,
        streamMetrics: false,
        build: { version: '', commit: '', buildRef: '' },
        processMetrics: false,
      });
      return {
        run: async () => {
          for await (const piece of exposition.pieces()) if (piece === '') throw new Error('an empty piece');
        },
      };
    },
  },
];
