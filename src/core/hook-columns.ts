import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';

/**
 * The endpoint columns that hook plugins may read, one cell per slot. They are views, because other threads write them.
 */
export interface EndpointColumns {
  readonly known: Uint32Array;
  readonly waiting: Float32Array;
  readonly running: Float32Array;
  readonly kvUsage: Float32Array;
  readonly inflight: Uint32Array;
  readonly inflightTokens: Uint32Array;
  readonly prefillTokens: Uint32Array;
  /** Blocks of this thread's last decided prompt that each slot held before the decision. */
  readonly matched: Uint32Array;
  /** Bits of `known`. */
  readonly signals: { readonly waiting: number; readonly running: number; readonly kvUsage: number };
}

/** Views of the endpoint columns of a pool. */
export function endpointColumns(core: CoreInstance): EndpointColumns {
  const { call, sizes, u32, f32 } = core;
  const region = (call.regionAddress(CORE.REGION_ENDPOINTS) >>> 0) >>> 2;
  const column = <Cells extends Uint32Array | Float32Array>(cells: Cells, number: number): Cells => {
    const start = region + number * sizes.endpoints;
    return cells.subarray(start, start + sizes.endpoints) as Cells;
  };
  return {
    known: column(u32, CORE.COLUMN_KNOWN),
    waiting: column(f32, CORE.COLUMN_WAITING),
    running: column(f32, CORE.COLUMN_RUNNING),
    kvUsage: column(f32, CORE.COLUMN_KV_USAGE),
    inflight: column(u32, CORE.COLUMN_INFLIGHT),
    inflightTokens: column(u32, CORE.COLUMN_INFLIGHT_TOKENS),
    prefillTokens: column(u32, CORE.COLUMN_PREFILL_TOKENS),
    matched: matchColumn(core),
    signals: {
      waiting: CORE.SIGNAL_WAITING,
      running: CORE.SIGNAL_RUNNING,
      kvUsage: CORE.SIGNAL_KV_USAGE,
    },
  };
}

function matchColumn({ call, sizes, u32 }: CoreInstance): Uint32Array {
  const start = (call.matchAddress() >>> 0) >>> 2;
  return u32.subarray(start, start + sizes.endpoints);
}

/**
 * A column of this thread that OP_FILTER_HOST and OP_SCORE_HOST read, one cell per slot.
 * @throws RangeError when there is no column of that number.
 */
export function hookColumn(core: CoreInstance, column: number): Float32Array {
  const { call, sizes, f32 } = core;
  if (!Number.isInteger(column) || column < 0 || column >= CORE.HOST_COLUMNS) {
    throw new RangeError(`there are ${CORE.HOST_COLUMNS} host columns, none has the number ${column}`);
  }
  const start = ((call.hostAddress() >>> 0) >>> 2) + column * sizes.endpoints;
  return f32.subarray(start, start + sizes.endpoints);
}
