/**
 * Random numbers in [0, 1) for choices outside the core, such as weighted rewrites; equal seeds give equal sequences.
 * Mulberry32 (Tommy Ettinger): one word of state, good enough for weighted choices.
 */
export function seededRandom(seed: bigint): () => number {
  let state = Number(BigInt.asUintN(32, seed ^ (seed >> 32n)));
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
