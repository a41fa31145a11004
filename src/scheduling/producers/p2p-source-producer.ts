import { z } from 'zod';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews, HookContext, HookPlugin, OutgoingHeaders } from '../hooks/hooks.js';
import { definePlugin, type PickedEndpoint, type Placement } from '../plugin.js';

/** Header that tells llm-d's sidecar on the computing endpoint the source of KV blocks. */
const SOURCE_HEADER = 'x-kv-cache-source-host-port';

const parameters = () =>
  z.strictObject({
    prefixMatchInfoProducerName: z
      .string()
      .default('')
      .describe('Name of the plugin that produces the prefix matches; empty = whichever does.'),
    minCachedTokenDelta: z
      .int()
      .min(1)
      .default(1)
      .describe('Tokens that the source must hold beyond the computing endpoint; fewer are not worth a pull.'),
    prefillProfileName: z
      .string()
      .default('prefill')
      .describe('Profile whose pick computes the prompt; when it did not run, the endpoint that answers does.'),
  });

type Parameters = z.output<ReturnType<typeof parameters>>;

/** FNV-1a of 32 bits (Fowler, Noll, Vo) over UTF-8, as a share in [0, 1). */
export function shareOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash / 2 ** 32;
}

/**
 * Chooses the source of the blocks among the endpoints with the most blocks, give or take one, so that many pulls of
 * one prefix are spread. An endpoint with a shorter queue is more likely.
 * @param share in [0, 1): position on the cumulated weights
 * @returns undefined when no endpoint holds blocks
 */
export function chooseSource(endpoints: EndpointViews, share: number): PickedEndpoint | undefined {
  const { slots, matchedBlocks, waiting } = endpoints;
  const most = slots.reduce((best, slot) => Math.max(best, matchedBlocks[slot]!), 0);
  if (most === 0) return undefined;
  // A slot means another endpoint in another picker; an address does not.
  const candidates = slots
    .filter((slot) => matchedBlocks[slot]! > 0 && matchedBlocks[slot]! >= most - 1)
    .flatMap((slot) => endpoints.at(slot) ?? [])
    .sort((a, b) => (a.address < b.address ? -1 : 1));
  const weightOf = ({ slot }: PickedEndpoint) => 1 / (1 + waiting[slot]!);
  let left = share * candidates.reduce((sum, candidate) => sum + weightOf(candidate), 0);
  for (const candidate of candidates) {
    left -= weightOf(candidate);
    if (left < 0) return candidate;
  }
  return candidates.at(-1);
}

function host(given: Parameters, { random }: HookContext): HookPlugin {
  const { minCachedTokenDelta, prefillProfileName } = given;
  return {
    placed: (request: HookRequest, placement: Placement, endpoints: EndpointViews, headers: OutgoingHeaders) => {
      const id = request.headers.get('x-request-id');
      const source = chooseSource(endpoints, id === undefined ? random() : shareOf(id));
      const computing = (placement.picks.get(prefillProfileName) ?? placement.endpoints)[0]!;
      const { matchedBlocks } = endpoints;
      const lead = source === undefined ? 0 : matchedBlocks[source.slot]! - matchedBlocks[computing.slot]!;
      // Without a source the header is removed, because a client must not choose the sidecar's source.
      headers.set(SOURCE_HEADER, lead * request.blockTokens >= minCachedTokenDelta ? source?.address : undefined);
    },
  };
}

export const p2pSourceProducer = definePlugin({
  type: 'p2p-source-producer',
  kinds: ['producer'],
  stability: 'Alpha',
  doc:
    'Names another endpoint that holds more of the prompt than the one that computes it, in the header ' +
    `${SOURCE_HEADER}: llm-d's sidecar has the engine pull the KV blocks from there instead of computing them. The ` +
    ('source is drawn by x-request-id among the endpoints within one block of the most, with weights 1 / (1 + ' +
      'waiting requests).'),
  signals: ['waiting requests'],
  parameters,
  consumes: ({ prefixMatchInfoProducerName }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName || undefined },
  ],
  host,
});
