import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ExportedSegment, IndexExport, parentsFirst } from '../core/index-export.js';
import type { IndexLog } from '../core/index-log.js';
import type { CoreInstance } from '../core/memory.js';

/** Segments that are applied in one turn of the event loop: a millisecond or two. */
const SEGMENTS_PER_TURN = 64;
/** Tries of a piece whose lock a dead thread holds. */
const BUSY_MAX = 1_000;

/**
 * Reads the whole prefix index, a piece in each turn of the event loop.
 * @param piece called with each piece, in turn
 */
export async function exportIndex(
  core: CoreInstance,
  piece: (segments: readonly ExportedSegment[]) => void | Promise<void>,
): Promise<void> {
  const reader = new IndexExport(core);
  let busy = 0;
  for (let segments = reader.next(); segments !== undefined; segments = reader.next()) {
    if (segments.length > 0) await piece(segments);
    else if (++busy > BUSY_MAX) throw new Error('the prefix index stays locked');
    await nextTurn();
  }
}

/**
 * Enters segments into the prefix index, parents first, some in each turn of the event loop.
 * @param slotOf slot of an endpoint's number in the segments; undefined = the endpoint is not in the pool
 * @returns pairs of block and endpoint that were entered
 */
export async function importSegments(
  log: IndexLog,
  segments: readonly ExportedSegment[],
  slotOf: (endpoint: number) => number | undefined,
): Promise<number> {
  let pairs = 0;
  let count = 0;
  for (const segment of parentsFirst(segments)) {
    pairs += importSegment(log, segment, slotOf);
    if (++count % SEGMENTS_PER_TURN !== 0) continue;
    log.apply();
    await nextTurn();
  }
  log.apply();
  return pairs;
}

function importSegment(
  log: IndexLog,
  { hashes, runs, parentHash }: ExportedSegment,
  slotOf: (endpoint: number) => number | undefined,
): number {
  let start = 0;
  let pairs = 0;
  for (const { end, slots } of runs) {
    const parent = start === 0 ? parentHash : hashes[start - 1];
    const run = hashes.subarray(start, end);
    for (const endpoint of slots) {
      const slot = slotOf(endpoint);
      if (slot === undefined) continue;
      log.add(slot, parent, run);
      pairs += run.length;
    }
    start = end;
  }
  return pairs;
}
