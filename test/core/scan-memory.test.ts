import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, createPoolMemory, loadCoreModule } from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import { ScanMemory, type ScannedChains } from '../../dist/src/core/scan-memory.js';
import { TokenChain } from '../../dist/src/core/token-chain.js';
import { PromptKind } from '../../dist/src/core/types.js';
import { documentText, kind } from './request-scanner-documents.ts';
import { seed, sizes } from './request-scanner-harness.ts';

const module = loadCoreModule();
const poolOf = (hashSeed: bigint, chainBlocks = sizes.chainBlocks) =>
  attachCore(createPoolMemory({ ...sizes, chainBlocks }, { module, hashSeed }), 0);
const [scanned, decided, alone] = [poolOf(seed), poolOf(seed), poolOf(seed)];
const scans = new ScanMemory(scanned);
const own = new RequestScanner(alone);

afterEach(() => expect([scans.requests.openScans, own.openScans]).toEqual([0, 0]));

/** Chain hashes in the memory of a pool. */
function hashesIn({ call, view }: typeof scanned, { blocks, tail }: { blocks: number; tail: boolean }): bigint[] {
  const at = call.hashesAddress() >>> 0;
  return Array.from({ length: blocks + (tail ? 1 : 0) }, (_, i) => view.getBigUint64(at + 8 * i, true));
}

/** Bytes that a chain notes of the prompt's beginning. */
function beginningIn({ call, bytes }: typeof scanned): Buffer {
  const at = (call.requestAddress() >>> 0) + CORE.REQUEST_BEGINNING;
  return Buffer.from(bytes.slice(at, at + CORE.REQUEST_BEGINNING_BYTES));
}

function chainOf(scanner: RequestScanner, which: PromptKind, body: Uint8Array, read: (id: number) => bigint[]) {
  const id = scanner.open(which, 64);
  const accepted = scanner.feed(id, body) && scanner.finish(id);
  const hashes = accepted ? read(id) : undefined;
  scanner.close(id);
  return hashes;
}

describe('scans in the memory of another pool', () => {
  it('scans in the memory of another pool give its decisions the hashes that its own scan would give', () => {
    const chains = scans.chainsFor(decided);
    fc.assert(
      fc.property(kind, documentText, (which, body) => {
        const copied = chainOf(scans.requests, which, body, (id) => hashesIn(decided, chains.chain(id, 'target')));
        const direct = chainOf(own, which, body, (id) => hashesIn(alone, own.chain(id, 'target')));
        expect(copied).toEqual(direct);
        if (direct !== undefined) expect(beginningIn(decided)).toEqual(beginningIn(alone));
      }),
    );
  });

  it('scans in the memory of another pool carry prompts as long as a chain', () => {
    const body = Buffer.from(JSON.stringify({ prompt: 'x'.repeat(64 * sizes.chainBlocks) }));
    const which = PromptKind.completions;
    const copied = chainOf(scans.requests, which, body, (id) =>
      hashesIn(decided, scans.chainsFor(decided).chain(id, 'm')),
    );
    expect(copied).toHaveLength(sizes.chainBlocks);
    expect(copied).toEqual(chainOf(own, which, body, (id) => hashesIn(alone, own.chain(id, 'm'))));
  });

  it('scans in the memory of another pool note the beginning of the text beside a chain of tokens', () => {
    const body = Buffer.from(JSON.stringify({ prompt: 'x'.repeat(200) }));
    const tokens = { ids: Uint32Array.from({ length: 64 }, (_, i) => i), features: [] };
    const noted = (scanner: RequestScanner, core: typeof scanned, chains: ScannedChains) => {
      chainOf(scanner, PromptKind.completions, body, (id) => {
        new TokenChain(core).chain(tokens, 'target', undefined, 16);
        chains.noteBeginning(id);
        return [];
      });
      return beginningIn(core);
    };
    const copied = noted(scans.requests, decided, scans.chainsFor(decided));
    expect(copied).toEqual(noted(own, alone, own));
    expect(copied.readBigUInt64LE()).not.toBe(0n);
  });

  it('scans in the memory of another pool are refused where seeds differ or fewer blocks fit', () => {
    expect(scans.serves(decided)).toBe(true);
    expect(scans.serves(poolOf(seed + 1n))).toBe(false);
    expect(scans.serves(poolOf(seed, sizes.chainBlocks - 1))).toBe(false);
  });
});
