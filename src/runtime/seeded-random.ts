/**
 * Random numbers in [0, 1) for choices outside the core, such as weighted rewrites and simulated traffic; equal seeds
 * give equal sequences. Mulberry32 (Tommy Ettinger, public domain): one word of state, good enough for weighted
 * choices.
 * @param seed of a number the lower 32 bits count
 */
export function seededRandom(seed: bigint | number): () => number {
  let state = typeof seed === 'number' ? seed | 0 : Number(BigInt.asIntN(32, seed ^ (seed >> 32n)));
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
