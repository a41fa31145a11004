import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { Decider } from '../../dist/src/core/decider.js';
import { EndpointTable } from '../../dist/src/core/endpoint-table.js';
import { attachCore, type CoreBuild, createPoolMemory, loadCoreModule } from '../../dist/src/core/memory.js';
import { PrefixIndex } from '../../dist/src/core/prefix-index.js';
import { ProgramTable } from '../../dist/src/core/programs.js';
import { makeGate } from './gate-pool.ts';
import { chain, put, run } from './index-pool.ts';
import { pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

const COMMIT_LOCK = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
const INDEX_LOCK = CORE.HEADER + CORE.HEADER_INDEX_LOCK;
const debugModule = loadCoreModule('debug');

/** A pool of four live endpoints over a build of the core. */
function poolOf(build: CoreBuild) {
  const module = build === 'debug' ? debugModule : loadCoreModule(build);
  const memory = createPoolMemory(smallSizes, { module, hashSeed: 7n });
  const control = attachCore(memory, 0);
  const table = new EndpointTable(control);
  for (const slot of [0, 1, 2, 3]) {
    table.open(slot, 1);
    table.setState(slot, 'live');
  }
  new ProgramTable(control).publish(0, [scorer('OP_SCORE_ACTIVE_REQUEST', 1, 0, 1), pickMax], { inserts: true });
  const core = attachCore(memory, 1);
  return { control, core, table, decider: new Decider(core, 42n), index: new PrefixIndex(core) };
}

/** A shard with one request that waits, since the only endpoint takes one at a time. */
function oneWaits() {
  const { gate, shard: open } = makeGate({ mode: 'requests', maxRequests: 1, maxTokens: 1 }, [{ waiting: 0 }]);
  const shard = open(1);
  shard.ask();
  return { gate, shard, waiting: shard.ask().waitSlot };
}

/** Adds one to a cell of an endpoint column, behind the back of the ledger. */
function addOne({ control }: ReturnType<typeof poolOf>, column: number, slot: number): void {
  const address = (control.call.columnAddress(column) >>> 0) + slot * 4;
  control.u32[address >>> 2]! += 1;
}

const text = (name: string) => readFileSync(new URL(`../../dist/src/core/${name}`, import.meta.url)).toString('latin1');

describe('the debug build of the core', () => {
  it('the debug build of the core finds a load column that no charge accounts for, at the next release of the commit lock', () => {
    const pool = poolOf('debug');
    addOne(pool, CORE.COLUMN_INFLIGHT, 2);
    expect(() => pool.decider.decide(plainRequest)).toThrow('ledgerCheck found 1 at the release of a lock');
  });

  it('the debug build of the core finds an unaccounted count of the prefix index when its lock is released', () => {
    const pool = poolOf('debug');
    put(pool.index, chain(...run(0, 10)));
    addOne(pool, CORE.COLUMN_PREFIX_BLOCKS, 2);
    expect(() => pool.index.insert(1, 10)).toThrow('prefixCheck found 40 at the release of a lock');
  });

  it('the debug build of the core names file, line and condition of an assertion that fails', () => {
    const { core } = poolOf('debug');
    expect(() => core.call.lockRelease(COMMIT_LOCK)).toThrow(
      /^assembly\/lock\.ts:\d+: it does not hold that the lock is held by the thread that releases it$/,
    );
  });

  it('the debug build of the core refuses to take the second lock while the first one is held', () => {
    const { core } = poolOf('debug');
    expect(core.call.lockAcquire(COMMIT_LOCK, 1)).toBe(1);
    expect(() => core.call.lockAcquire(INDEX_LOCK, 1)).toThrow('this thread holds no other lock');
  });

  it('the debug build of the core finds more numbers in a ring than it has room for', () => {
    const { shard, waiting } = oneWaits();
    const enqueue = () => shard.core.call.waitSlotEnqueue(waiting);
    for (let i = 1; i < 2 * shard.core.sizes.scans; i++) enqueue();
    expect(enqueue).toThrow('a ring holds what was pushed to it');
  });

  it('the debug build of the core lets no request be forgotten that its shard has not given up', () => {
    const { gate, waiting } = oneWaits();
    expect(() => gate.forgotten(1, waiting)).toThrow('a forgotten request was given up by its shard');
  });

  it('the debug build of the core has nothing to say about charges, releases and capacities in any order', () => {
    const step = fc.record({ kind: fc.nat(4), slot: fc.nat(3), blocks: fc.integer({ min: 1, max: 200 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const pool = poolOf('debug');
        const held: { ticket: number; generation: number }[] = [];
        for (const [now, { kind, slot, blocks }] of steps.entries()) {
          put(pool.index, chain(...run(slot * 64, blocks)));
          if (kind === 0) pool.index.insert(slot, blocks);
          else if (kind === 1) pool.index.setCapacity(slot, blocks);
          else if (kind === 2 && held.length > 0) {
            const { ticket, generation } = held.splice(blocks % held.length, 1)[0]!;
            pool.decider.release(ticket, generation);
          } else {
            const { ticket, ticketGeneration } = pool.decider.decide({ ...plainRequest, blocks, nowMs: now });
            if (ticket !== 0) held.push({ ticket, generation: ticketGeneration });
          }
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('the release build of the core', () => {
  it('the release build of the core holds no trace of assertions and checks', () => {
    expect(WebAssembly.Module.imports(loadCoreModule('release')).map(({ name }) => name)).toEqual(['memory']);
    for (const trace of ['lockReleasing', 'abort']) {
      expect(text('core.wasm')).not.toContain(trace);
      expect(text('core-debug.wasm')).toContain(trace);
    }
  });

  it('the release build of the core exports what the debug build exports', () => {
    const names = (build: CoreBuild) => WebAssembly.Module.exports(loadCoreModule(build)).map(({ name }) => name);
    expect(names('debug').sort()).toEqual(names('release').sort());
  });
});

describe('POINTSMAN_CORE', () => {
  it('POINTSMAN_CORE names the build that is loaded, and no other name is taken', () => {
    const before = process.env.POINTSMAN_CORE;
    try {
      process.env.POINTSMAN_CORE = 'debug';
      expect(WebAssembly.Module.imports(loadCoreModule()).map(({ name }) => name)).toContain('lockReleasing');
      process.env.POINTSMAN_CORE = 'fast';
      expect(() => loadCoreModule()).toThrow('POINTSMAN_CORE is "fast": use "release" or "debug"');
    } finally {
      if (before === undefined) delete process.env.POINTSMAN_CORE;
      else process.env.POINTSMAN_CORE = before;
    }
  });
});
