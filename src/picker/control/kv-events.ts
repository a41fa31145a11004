import { selectorAccepts } from '../../contract/label-selector.js';
import type { CoreInstance } from '../../core/memory.js';
import { PrefixIndex } from '../../core/prefix-index.js';
import { TokenChain } from '../../core/token-chain.js';
import type { EventFeed } from '../../kvevents/event-feed.js';
import type { CompiledScheduling } from '../../scheduling/program.js';
import type { Part } from '../part.js';

export interface EngineEventOptions {
  readonly scheduling: CompiledScheduling;
  readonly core: CoreInstance;
  readonly report: (problem: string) => void;
}

/** Follows the KV events of the engines when the configuration asks for it. */
export class EngineEvents implements Part {
  readonly #options: EngineEventOptions;
  #feed: EventFeed | undefined;

  constructor(options: EngineEventOptions) {
    this.#options = options;
  }

  /** Undefined before the start, and when the configuration follows no events. */
  get feed(): EventFeed | undefined {
    return this.#feed;
  }

  async start(): Promise<void> {
    this.#feed = await createEventFeed(this.#options);
    await this.#feed?.start();
  }

  async stop(): Promise<void> {
    await this.#feed?.close();
  }
}

/** ZeroMQ is loaded only when events are followed. */
async function createEventFeed({ scheduling, core, report }: EngineEventOptions): Promise<EventFeed | undefined> {
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
