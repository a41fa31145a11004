import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Medium } from '../../dist/src/core/types.js';
import { MediaCache } from '../../dist/src/scheduling/producers/media/media-cache.js';
import { mmEmbeddingsCacheProducer } from '../../dist/src/scheduling/producers/mm-embeddings-cache-producer.js';
import { mmEmbeddingsCacheScorer } from '../../dist/src/scheduling/scorers/mm-embeddings-cache-scorer.js';
import { HookPool, idle } from './hook-pool.ts';

describe('the encoded media of an endpoint', () => {
  it('the encoded media of an endpoint is the last media that each was sent, least recently sent first out', () => {
    const cache = new MediaCache(2);
    for (const medium of [1n, 2n, 1n, 3n]) cache.note('a', medium);
    cache.note('b', 2n);
    expect([...cache.holders(1n)]).toEqual(['a']);
    expect([...cache.holders(2n)]).toEqual(['b']);
    expect([...cache.holders(3n)]).toEqual(['a']);
    expect(cache.size).toBe(3);
  });

  it('the encoded media of an endpoint goes with the endpoint', () => {
    const cache = new MediaCache(2);
    cache.note('a', 1n);
    cache.note('b', 1n);
    cache.keep(new Set(['b', 'c']));
    expect([...cache.holders(1n)]).toEqual(['b']);
    expect(cache.size).toBe(1);
  });

  it('the encoded media of an endpoint is a least-recently-used list per endpoint, whatever comes', () => {
    const endpoint = fc.constantFrom('a', 'b', 'c');
    const step = fc.oneof(
      { weight: 9, arbitrary: fc.tuple(fc.constant('note' as const), endpoint, fc.bigInt(0n, 9n)) },
      { weight: 1, arbitrary: fc.tuple(fc.constant('keep' as const), endpoint, fc.constant(0n)) },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step), (capacity, steps) => {
        const cache = new MediaCache(capacity);
        const lists = new Map<string, bigint[]>();
        for (const [what, id, medium] of steps) {
          if (what === 'note') {
            cache.note(id, medium);
            lists.set(id, [...(lists.get(id) ?? []).filter((other) => other !== medium), medium].slice(-capacity));
          } else {
            cache.keep(new Set([id]));
            for (const other of [...lists.keys()]) if (other !== id) lists.delete(other);
          }
        }
        for (let medium = 0n; medium < 10n; medium++) {
          const holders = [...lists].filter(([, list]) => list.includes(medium)).map(([id]) => id);
          expect([...cache.holders(medium)].sort()).toEqual(holders.sort());
        }
      }),
    );
  });
});

const image = (hash: bigint): Medium => ({ hash, modality: 'image' });

function pool(count: number, parameters = {}): HookPool {
  return new HookPool(
    [{ definition: mmEmbeddingsCacheProducer, parameters }, { definition: mmEmbeddingsCacheScorer }],
    idle(count),
  );
}

/** Scores by the end of the address. */
function scores(here: HookPool, media: readonly Medium[], subset?: readonly string[]): Record<string, number> {
  const outcome = here.schedule({ media, ...(subset === undefined ? {} : { subset }) });
  if (outcome.kind === 'rejected') throw new Error(outcome.message);
  outcome.charge.release();
  return Object.fromEntries([...outcome.scores!].map(([address, score]) => [address.slice(7, -5), score]));
}

describe('mm-embeddings-cache-scorer', () => {
  it('mm-embeddings-cache-scorer scores the share of the media that an endpoint was sent', () => {
    const here = pool(3);
    scores(here, [image(1n), image(2n)], ['10.0.0.2']);
    expect(scores(here, [image(1n), image(3n)], ['10.0.0.1', '10.0.0.2'])).toEqual({ 1: 0, 2: 0.5 });
  });

  it('mm-embeddings-cache-scorer sends the same images where they went, and other images anywhere', () => {
    const here = pool(4);
    scores(here, [image(1n)], ['10.0.0.3']);
    expect(here.picks({ media: [image(1n)] })).toEqual(['pod-2']);
    expect(here.picks({ media: [image(7n)] }, 1)).toHaveLength(1);
  });

  it('mm-embeddings-cache-scorer is 0 for everyone without media, before anything was sent, and with one endpoint', () => {
    const here = pool(2);
    expect(scores(here, [])).toEqual({ 1: 0, 2: 0 });
    expect(scores(here, [image(1n)])).toEqual({ 1: 0, 2: 0 });
    expect(scores(pool(1), [image(1n)])).toEqual({ 1: 0 });
  });

  it('mm-embeddings-cache-scorer is 1 for all that hold everything', () => {
    const here = pool(2);
    for (const address of ['10.0.0.1', '10.0.0.2']) scores(here, [image(1n)], [address]);
    expect(scores(here, [image(1n)])).toEqual({ 1: 1, 2: 1 });
  });

  it('mm-embeddings-cache-scorer remembers so many media of an endpoint as its cache has room for', () => {
    const here = pool(2, { cacheSizeInMBPerServer: 4 });
    for (const hash of [1n, 2n, 3n]) scores(here, [image(hash)], ['10.0.0.1']);
    const held = (hash: bigint) => scores(here, [image(hash)], ['10.0.0.1', '10.0.0.2'])['1'];
    expect(held(3n)).toBe(1);
    expect(
      new HookPool([{ definition: mmEmbeddingsCacheProducer, parameters: { cacheSizeInMBPerServer: -1 } }], [])
        .failures,
    ).toEqual([]);
  });

  it('mm-embeddings-cache-scorer hears from the other shards what they sent, and tells them', () => {
    const here = pool(2);
    here.hear({ endpoint: 'default/pod-1', media: [5n] });
    expect(here.picks({ media: [image(5n)] })).toEqual(['pod-1']);
    expect(here.told).toContainEqual({ endpoint: 'default/pod-1', media: [5n] });
  });

  it('mm-embeddings-cache-scorer forgets an endpoint that left, also when another one gets its name', () => {
    const here = pool(2);
    scores(here, [image(1n)], ['10.0.0.2']);
    here.directory.apply([], [1]);
    expect(scores(here, [image(1n)], ['10.0.0.1'])).toEqual({ 1: 0 });
    const endpoint = {
      id: 'default/pod-1',
      name: 'pod-1',
      namespace: 'default',
      address: '10.0.0.2',
      port: 8000,
      labels: {},
    };
    here.directory.apply([{ slot: 1, generation: 2, endpoint }], []);
    expect(scores(here, [image(1n)], ['10.0.0.2'])).toEqual({ 2: 0 });
  });

  it('mm-embeddings-cache-scorer counts what was looked up and found', () => {
    const here = pool(2);
    scores(here, [image(1n)], ['10.0.0.1']);
    here.counted.length = 0;
    scores(here, [image(1n), { hash: 2n, modality: 'audio' }]);
    expect(here.counted.sort()).toEqual([
      'encoder_cache_hit_ratio{mm-embeddings-cache-producer} 0',
      'encoder_cache_hit_ratio{mm-embeddings-cache-producer} 0.5',
      'encoder_cache_hits{mm-embeddings-cache-producer,image,default/pod-0}',
      'encoder_cache_queries{mm-embeddings-cache-producer,audio}',
      'encoder_cache_queries{mm-embeddings-cache-producer,image}',
    ]);
  });
});
