import { CORE } from '../dist/src/core/core-names.js';
import type { Bench } from './bench.ts';
import { makeWorkload } from './prefix-workload.ts';

const EVENT_BLOCKS = 32;

/** A log of one session's events in this thread's input area: all its blocks, 32 at a time. @returns its length */
function writeLog(bytes: DataView, at: number, slot: number, hashes: BigUint64Array, remove: number, parent: number) {
  let end = at;
  for (let from = 0; from < hashes.length; from += EVENT_BLOCKS) {
    const part = hashes.subarray(from, from + EVENT_BLOCKS);
    bytes.setUint32(end, slot, true);
    bytes.setUint32(end + 4, (part.length | remove | (from > 0 ? parent : 0)) >>> 0, true);
    bytes.setBigUint64(end + 8, from > 0 ? hashes[from - 1]! : 0n, true);
    for (const [i, hash] of part.entries()) bytes.setBigUint64(end + 16 + i * 8, hash, true);
    end += 16 + part.length * 8;
  }
  return end - at;
}

function eventsBench(blocks: number, endpoints: number): Bench {
  return {
    name: `index/events-${blocks}-blocks-${endpoints}ep`,
    async setup() {
      const { core, sessions } = makeWorkload(blocks, endpoints, 1e6);
      const { EVENT_REMOVE, EVENT_PARENT } = CORE;
      const input = core.call.inputAddress() >>> 0;
      const room = CORE.THREAD_INPUT_BYTES / 2;
      const step = Math.ceil(blocks / EVENT_BLOCKS) * 16 + blocks * 8;
      const count = Math.min(sessions.length, Math.floor(room / step));
      let removes = 0;
      let stores = 0;
      const stride = Math.max(1, Math.floor(sessions.length / count));
      for (let i = 0; i < count; i++) {
        const { hashes, first } = sessions[i * stride]!;
        removes += writeLog(core.view, input + removes, first, hashes, EVENT_REMOVE, 0);
        stores += writeLog(core.view, input + room + stores, first, hashes, 0, EVENT_PARENT);
      }
      return {
        opsPerRun: 2 * count * blocks,
        run() {
          core.call.prefixApply(input, removes);
          core.call.prefixApply(input + room, stores);
        },
      };
    },
  };
}

/** Engine events of 32 blocks, removed and stored again: time per block. */
export const benches: readonly Bench[] = [eventsBench(64, 64), eventsBench(1560, 64), eventsBench(64, 512)];
