import type { CoreInstance } from '../../core/memory.js';
import { PrefixIndex } from '../../core/prefix-index.js';
import { TokenChain } from '../../core/token-chain.js';
import type { EventFeed } from '../../kvevents/event-feed.js';
import { selectorAccepts } from '../../scheduling/filters/label-selector.js';
import type { CompiledScheduling } from '../../scheduling/program.js';

export interface KvEventOptions {
  readonly scheduling: CompiledScheduling;
  readonly core: CoreInstance;
  readonly report: (problem: string) => void;
}

/**
 * The feed of the engines' KV events, as the configuration asks for it; undefined = it does not. ZeroMQ is loaded only
 * then.
 */
export async function createEventFeed({ scheduling, core, report }: KvEventOptions): Promise<EventFeed | undefined> {
  const { kvEvents, prefix } = scheduling;
  if (kvEvents === undefined || prefix === undefined) return undefined;
  const { EventFeed: Feed } = await import('../../kvevents/event-feed.js');
  const { selector, namespace, ...settings } = kvEvents;
  return new Feed({
    settings: { ...settings, blockTokens: prefix.blockTokens },
    publishes: (endpoint) =>
      (namespace === undefined || endpoint.namespace === namespace) &&
      (selector === undefined || selectorAccepts(selector, endpoint.labels)),
    index: new PrefixIndex(core),
    chain: new TokenChain(core),
    blocksMost: core.sizes.indexBlocks,
    report,
  });
}
