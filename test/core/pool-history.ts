import type { makePool } from './pool.js';

/**
 * Lets a prompt of `blocks` blocks, told from others by `name`, stand for the next decisions; returns the request's
 * part.
 */
export function prompt(core: ReturnType<typeof makePool>['core'], name: number, blocks: number, own = 0) {
  const input = core.call.inputAddress() >>> 0;
  for (let block = 0; block < blocks + own; block++) {
    core.bytes.fill(block < blocks ? name : 200 + name, input + block * 256, input + block * 256 + 256);
  }
  core.call.hashBlocks((blocks + own) * 256, 256);
  return { blocks: blocks + own, promptTokens: (blocks + own) * 64 };
}
