import type { MetricsExposition } from '../telemetry/exposition.js';

/** Pieces of text whose tokens a shard remembers. */
interface Segments {
  readonly bytes: number;
  /** Time of the last use of the least recently used piece; undefined = there is none. */
  readonly oldestMs: number | undefined;
}

/** Registers the caches of the tokeniser. @param segments by shard, as the shards have told within the last second */
export function addTokeniserMetrics(
  exposition: MetricsExposition,
  segments: ReadonlyMap<number, Segments>,
  now: () => number,
): void {
  const labels = ['shard'];
  exposition.addGauge({
    name: 'pointsman_tokeniser_cache_bytes',
    help:
      'Bytes of the pieces of text whose tokens a shard remembers; at most 64 MiB for each of its tokeniser ' +
      'threads.',
    labels,
    read: () => [...segments].map(([shard, { bytes }]) => ({ labels: { shard: String(shard) }, value: bytes })),
  });
  exposition.addGauge({
    name: 'pointsman_tokeniser_cache_age_seconds',
    help:
      'Time since the least recently used piece of text that a shard remembers was used; no series while it ' +
      'remembers none.',
    labels,
    read: () =>
      [...segments].flatMap(([shard, { oldestMs }]) =>
        oldestMs === undefined
          ? []
          : [{ labels: { shard: String(shard) }, value: Math.max(0, now() - oldestMs) / 1_000 }],
      ),
  });
}
