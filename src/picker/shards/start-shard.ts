// The task of the bundled shard threads: a shard with the code that was compiled before.
import { fileURLToPath } from 'node:url';
import { loadProgram } from '../../runtime/compiled-program.js';
import type { ShardStart } from '../messages.js';

const importModule = (specifier: string): Promise<unknown> => import(specifier);
const file = fileURLToPath(new URL('./shard.cjs', import.meta.url));
const { exports, keep } = loadProgram<typeof import('./shard.js')>(file, require, importModule);

/** As `shard` of the program. */
export async function shard(start: ShardStart): Promise<void> {
  try {
    await exports.shard(start);
  } finally {
    keep();
  }
}
