// A thread of the core that ends at its n-th store into the shared memory, as one that is terminated there: what it has
// written stays, what would have followed does not. Its module is the release core with a call before every store.
import { readFileSync } from 'node:fs';
import binaryen from 'binaryen';
import { CORE, uniformCalls } from '../../dist/src/core/core-names.js';
import { attachCore, type CoreInstance, type PoolMemory } from '../../dist/src/core/index.js';

/** The thread has ended. */
export class Killed extends Error {}

/** The release core with imports that are called at loads and stores. */
function countingModule(): WebAssembly.Module {
  const url = new URL('../../dist/src/core/core.wasm', import.meta.url);
  const module = binaryen.readBinary(new Uint8Array(readFileSync(url)));
  module.setFeatures(binaryen.Features.All);
  module.runPasses(['instrument-memory']);
  return new WebAssembly.Module(Uint8Array.from(module.emitBinary()));
}

let counting: WebAssembly.Module | undefined;

/** Stores of a thread into what it shares so far, and the one at which it ends. */
export interface Stores {
  count: number;
  killedAt: number;
}

/** Addresses from the first to behind the last of what each thread has for itself: nobody misses a store there. */
export function ownAreas({ call }: CoreInstance): readonly [number, number] {
  return [call.regionAddress(CORE.REGION_THREADS) >>> 0, call.regionAddress(CORE.REGION_ADAPTERS) >>> 0];
}

/** Attaches a thread whose stores are counted. */
export function attachCounted(pool: PoolMemory, thread: number, stores: Stores): CoreInstance {
  counting ??= countingModule();
  const passed = (_id: number, value: unknown) => value;
  const others = WebAssembly.Module.imports(counting).filter(({ kind }) => kind === 'function');
  const env: Record<string, unknown> = { memory: pool.memory };
  for (const { name } of others) env[name] = passed;
  const attached = attachCore(pool, thread);
  const [first, behind] = ownAreas(attached);
  // Arguments: number of the instruction, bytes, offset, address; the address is what the instruction goes on with.
  env.load_ptr = (_id: number, _bytes: number, _offset: number, address: number) => address;
  env.store_ptr = (_id: number, _bytes: number, offset: number, address: number) => {
    const at = (address >>> 0) + offset;
    if (at >= first && at < behind) return address;
    if (++stores.count === stores.killedAt) throw new Killed();
    return address;
  };
  const { exports } = new WebAssembly.Instance(counting, { env });
  const call = uniformCalls(exports as never);
  if (call.attach(thread) !== 0) throw new Error('the thread cannot attach');
  return { ...attached, call };
}
