import type { PoolSizes } from '../../dist/src/core/index.js';

/** The least pool for a scanner alone. */
export const SCANNER_SIZES: PoolSizes = {
  endpoints: 64,
  indexBlocks: 64,
  requests: 16,
  chainBlocks: 16,
  threads: 1,
  scans: 4,
  telemetryBytes: 64,
};
