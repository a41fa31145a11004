import { z } from 'zod';
import type { Placement } from '../decision.js';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews, HookContext, HookPlugin } from '../hooks/hooks.js';
import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { definePlugin } from '../plugin.js';
import { MediaCache } from './media/media-cache.js';
import { type MediaMatch, mediaMatchAttribute } from './media/media-match.js';

/** Assumed size of one encoded medium, as in llm-d-router. */
const MIB_PER_MEDIUM = 2;
const DEFAULT_MIB = 4096;
/** Bound on encoded media in MiB: 128 GiB, more than any model server keeps. */
const MIB_MAX = 131_072;

const parameters = () =>
  z.strictObject({
    cacheSizeInMBPerServer: z
      .int()
      .max(MIB_MAX)
      .default(DEFAULT_MIB)
      .describe(
        `Size of the encoder cache of one model server in MiB; ${MIB_PER_MEDIUM} MiB are one remembered medium. ` +
          '0 or less means the default.',
      ),
  });

/** Message between the shards. */
interface Sent {
  readonly endpoint: string;
  readonly media: readonly bigint[];
}

class MediaProducer implements HookPlugin {
  readonly #cache: MediaCache;
  readonly #context: HookContext;
  readonly #attribute: string;
  readonly #tell: (sent: Sent) => void;
  /** Endpoints of the last look: the cache drops those that have left since. */
  #known: readonly number[] | undefined;

  constructor(mib: number, context: HookContext) {
    this.#cache = new MediaCache(Math.max(1, Math.floor((mib > 0 ? mib : DEFAULT_MIB) / MIB_PER_MEDIUM)));
    this.#context = context;
    this.#attribute = mediaMatchAttribute(context.name);
    this.#tell = context.share((message) => this.#note(message as Sent));
  }

  produce({ media, attributes }: HookRequest, endpoints: EndpointViews): void {
    if (media.length === 0) return;
    this.#forgetGone(endpoints);
    const matched = new Map<number, number>();
    for (const { hash, modality } of media) {
      this.#context.count('encoder_cache_queries', { modality });
      for (const id of this.#cache.holders(hash)) {
        const slot = endpoints.slotOf(id);
        if (slot === undefined) continue;
        this.#context.count('encoder_cache_hits', { modality, pod: id });
        matched.set(slot, (matched.get(slot) ?? 0) + 1);
      }
    }
    for (const slot of endpoints.slots) {
      this.#context.observe('encoder_cache_hit_ratio', (matched.get(slot) ?? 0) / media.length);
    }
    const match: MediaMatch = { total: media.length, matched };
    attributes.set(this.#attribute, match);
  }

  /** The endpoint of a profile for encoding holds the media; without one, the answering endpoint does. */
  placed({ media }: HookRequest, placement: Placement): void {
    if (media.length === 0) return;
    const picks = (placement as { readonly picks?: ReadonlyMap<string, Placement['endpoints']> }).picks;
    const { endpoint } = (picks?.get('encode') ?? placement.endpoints)[0]!;
    const sent = { endpoint: endpoint.id, media: media.map(({ hash }) => hash) };
    this.#note(sent);
    this.#tell(sent);
  }

  #note({ endpoint, media }: Sent): void {
    for (const medium of media) this.#cache.note(endpoint, medium);
  }

  #forgetGone(endpoints: EndpointViews): void {
    if (endpoints.all === this.#known) return;
    this.#known = endpoints.all;
    this.#cache.keep(new Set(endpoints.all.map((slot) => endpoints.at(slot)!.endpoint.id)));
  }
}

export const mmEmbeddingsCacheProducer = definePlugin({
  type: 'mm-embeddings-cache-producer',
  kinds: ['producer'],
  listedAsExtractor: true,
  stability: 'Beta',
  doc:
    'Remembers which endpoint was sent which images, videos and sounds, so that they need not be encoded again. ' +
    'They are told apart by a hash of their URL or data; a medium that a request has twice counts once.',
  parameters,
  produces: ['encoder-match'],
  defaultProducerOf: ['encoder-match'],
  budgetMs: PATIENT_BUDGET_MS,
  host: ({ cacheSizeInMBPerServer }, context) => new MediaProducer(cacheSizeInMBPerServer, context),
});
