import { setImmediate as nextTurn } from 'node:timers/promises';
import { CORE } from '../core/core-names.js';
import { type ExportedSegment, type HeldRun, IndexExport, parentsFirst } from '../core/index-export.js';
import type { IndexLog } from '../core/index-log.js';
import type { CoreInstance } from '../core/memory.js';

/** Segments, and runs at an endpoint, that are applied in one turn of the event loop: a millisecond or two. */
const SEGMENTS_PER_TURN = 64;
const RECORDS_PER_TURN = 512;
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
  let [count, records] = [0, 0];
  for (const segment of parentsFirst(segments)) {
    for (const { parent, blocks, slots, places } of runsOf(segment)) {
      for (const [i, endpoint] of slots.entries()) {
        const slot = slotOf(endpoint);
        if (slot === undefined) continue;
        log.add(slot, parent, blocks, undefined, places?.[i] ?? CORE.PLACE_GPU);
        pairs += blocks.length;
        records++;
      }
      if (records < RECORDS_PER_TURN) continue;
      records = 0;
      log.apply();
      await nextTurn();
    }
    if (++count % SEGMENTS_PER_TURN !== 0) continue;
    log.apply();
    await nextTurn();
  }
  log.apply();
  return pairs;
}

interface Run {
  readonly parent: bigint | undefined;
  readonly blocks: BigUint64Array;
  readonly slots: HeldRun['slots'];
  readonly places: HeldRun['places'];
}

function* runsOf({ hashes, runs, parentHash }: ExportedSegment): Generator<Run> {
  let start = 0;
  for (const { end, slots, places } of runs) {
    yield { parent: start === 0 ? parentHash : hashes[start - 1], blocks: hashes.subarray(start, end), slots, places };
    start = end;
  }
}

/** A segment with positions in a list of endpoints in the place of slots; others are left out. */
export function atPositions(segment: ExportedSegment, positions: ReadonlyMap<number, number>): ExportedSegment {
  return { ...segment, runs: segment.runs.map((run) => runAtPositions(run, positions)) };
}

function runAtPositions({ end, slots, places }: HeldRun, positions: ReadonlyMap<number, number>): HeldRun {
  const known = [...slots.keys()].filter((i) => positions.has(slots[i]!));
  return {
    end,
    slots: known.map((i) => positions.get(slots[i]!)!),
    ...(places !== undefined && { places: Uint8Array.from(known, (i) => places[i]!) }),
  };
}
