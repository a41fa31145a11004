import type { Bench } from './bench.ts';
import { makeWorkload } from './prefix-workload.ts';

function activeBench(blocks: number, live: number): Bench {
  return {
    name: `active/${blocks}-blocks`,
    async setup() {
      const { core, index, sessions } = makeWorkload(blocks, 64, 1e6);
      const { activeAddLocked, activeRemoveLocked } = core.call;
      const handles = Array.from({ length: live }, (_, i) => {
        index.writeHashes(sessions[i % sessions.length]!.hashes);
        return activeAddLocked(i & 63, blocks);
      });
      if (handles.includes(0)) throw new Error('not every request could be accounted');
      const calls = 64;
      let oldest = 0;
      let next = 0;
      return {
        opsPerRun: calls,
        run() {
          // One prompt a run: writing it costs more than what is measured.
          next = next + 1 === sessions.length ? 0 : next + 1;
          index.writeHashes(sessions[next]!.hashes);
          for (let i = 0; i < calls; i++) {
            activeRemoveLocked(oldest & 63, handles[oldest]!, blocks);
            handles[oldest] = activeAddLocked(oldest & 63, blocks);
            oldest = oldest + 1 === live ? 0 : oldest + 1;
          }
        },
      };
    },
  };
}

/** Charge and release of one request's blocks beside others. */
export const benches: readonly Bench[] = [activeBench(64, 1024), activeBench(1560, 128)];
