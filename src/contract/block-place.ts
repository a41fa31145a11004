/** Nearest place of a block on an endpoint: the one from which its engine takes it. */
export type BlockPlace = 'gpu' | 'host' | 'disk' | 'remote';

export type LowerPlace = Exclude<BlockPlace, 'gpu'>;

/** Cost of loading a block from a tier, beside computing it: 0 = as good as on the GPU, 1 = as none. */
export type TierPrices = Readonly<Record<LowerPlace, number>>;

/** Blocks, or tokens, of a prompt at each place. */
export type PlaceCounts = Readonly<Record<BlockPlace, number>>;

/** Beginnings of the names of mediums (vLLM, SGLang, LMCache, llm-d's offloading connectors). */
const BEGINNINGS: ReadonlyArray<readonly [string, BlockPlace]> = [
  ['gpu', 'gpu'],
  ['device', 'gpu'],
  ['hbm', 'gpu'],
  ['cpu', 'host'],
  ['host', 'host'],
  ['dram', 'host'],
  ['pinned', 'host'],
  ['disk', 'disk'],
  ['fs', 'disk'],
  ['local', 'disk'],
  ['nvme', 'disk'],
  ['ssd', 'disk'],
  ['storage', 'disk'],
];

/** Place that an engine means by the medium of an event; one without a known name is the farthest. */
export function placeOfMedium(medium: string): BlockPlace {
  const name = medium.toLowerCase();
  return BEGINNINGS.find(([beginning]) => name.startsWith(beginning))?.[1] ?? 'remote';
}
