import type { Bench } from './bench.ts';
import { makeWorkload } from './prefix-workload.ts';

const CALLS = 256;

function matchBench(blocks: number, endpoints: number, millions: number): Bench {
  return {
    name: `match/${blocks}-blocks-${endpoints}ep-${millions}M`,
    async setup() {
      const { core, queries } = makeWorkload(blocks, endpoints, millions * 1e6);
      const match = core.call.prefixMatchAt;
      let at = 0;
      return {
        opsPerRun: CALLS,
        run() {
          for (let i = 0; i < CALLS; i++) {
            match(queries[at]!, blocks);
            at = at + 1 === queries.length ? 0 : at + 1;
          }
        },
      };
    },
  };
}

/** Overlap of every endpoint with a prompt, each call with another prompt. */
export const benches: readonly Bench[] = [64, 1560].flatMap((blocks) =>
  [1, 4].flatMap((millions) => [64, 512, 10_240].map((endpoints) => matchBench(blocks, endpoints, millions))),
);
