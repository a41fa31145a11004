// What a trip to a worker thread and back costs: the reason why decisions are made on the thread that has the request.
import { Piscina } from 'piscina';
import type { Bench } from './bench.ts';

const BATCHES = [1, 16, 256];

const worker = new URL('./piscina-worker.mjs', import.meta.url).href;

function roundTrip(batch: number): Bench {
  return {
    name: `piscina/round-trip/${batch}`,
    async setup() {
      const pool = new Piscina({ filename: worker, name: 'count', minThreads: 1, maxThreads: 1 });
      const items = Array.from({ length: batch }, (_, index) => index);
      await pool.run(items);
      return {
        opsPerRun: batch,
        run: async () => {
          await pool.run(items);
        },
        teardown: () => pool.destroy(),
      };
    },
  };
}

export const benches: readonly Bench[] = BATCHES.map(roundTrip);
