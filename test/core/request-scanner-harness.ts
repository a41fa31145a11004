// A scanner over a small pool's memory, and everything that can be read of one scan.
import {
  attachCore,
  createPoolMemory,
  defaultPoolSizes,
  loadCoreModule,
  type PoolSizes,
} from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import type { PromptKind } from '../../dist/src/core/types.js';

export const seed = 0x0123456789abcdefn;
export const sizes: PoolSizes = {
  ...defaultPoolSizes,
  endpoints: 64,
  indexBlocks: 1024,
  requests: 64,
  chainBlocks: 1200,
  threads: 1,
  scans: 8,
  telemetryBytes: 64,
};
const module = loadCoreModule();
export const openScanner = (change: Partial<PoolSizes> = {}) => {
  const core = attachCore(createPoolMemory({ ...sizes, ...change }, { module, hashSeed: seed }), 0);
  return { core, scanner: new RequestScanner(core) };
};
export const { core, scanner } = openScanner();

/** Scan a body given in pieces and read everything that can be read. */
export function scan(kind: PromptKind, pieces: readonly Uint8Array[], blockBytes = 64, model = 'target') {
  const id = scanner.open(kind, blockBytes);
  const accepted = pieces.every((piece) => scanner.feed(id, piece)) && scanner.finish(id);
  const outcome = {
    accepted,
    refusal: scanner.refusal(id),
    result: accepted ? scanner.result(id) : undefined,
    hashes: accepted ? readChain(id, model) : undefined,
  };
  scanner.close(id);
  return outcome;
}

/** The chain hashes of an open scan, the tail's included. */
export function readChain(id: number, model: string): bigint[] {
  const { blocks, tail } = scanner.chain(id, model);
  const at = core.call.hashesAddress() >>> 0;
  return Array.from({ length: blocks + (tail ? 1 : 0) }, (_, i) => core.view.getBigUint64(at + 8 * i, true));
}
