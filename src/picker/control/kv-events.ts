import { get } from 'node:http';
import type { Endpoint } from '../../contract/endpoint.js';
import { selectorAccepts } from '../../contract/label-selector.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import type { CoreInstance } from '../../core/memory.js';
import { PrefixIndex } from '../../core/prefix-index.js';
import { SampleReader } from '../../core/sample-reader.js';
import { TokenChain } from '../../core/token-chain.js';
import type { EventFeed } from '../../kvevents/event-feed.js';
import { EVENT_SOURCES_PATH, rankOf, type SourcesAnswer, sourcesAdvice } from '../../kvevents/event-sources.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { CompiledScheduling } from '../../scheduling/program.js';
import type { Part } from '../part.js';
import { UntoldWatch } from './untold-watch.js';

export interface EngineEventOptions {
  readonly scheduling: CompiledScheduling;
  readonly core: CoreInstance;
  readonly table: Pick<EndpointTable, 'setUntold'>;
  readonly report: (problem: string) => void;
}

/** Follows the KV events of the engines when the configuration asks for it. */
export class EngineEvents implements Part {
  readonly #options: EngineEventOptions;
  #feed: EventFeed | undefined;
  #untold: UntoldWatch | undefined;

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
    if (this.#feed !== undefined) this.#untold = this.#watch(this.#feed);
  }

  #watch(feed: EventFeed): UntoldWatch {
    const { scheduling, core, report } = this.#options;
    const { blockTokens } = scheduling.prefix!;
    const samples = new SampleReader(core);
    const { bind, connect, topicFilter } = scheduling.kvEvents!;
    const advice = async (endpoint: Endpoint) =>
      sourcesAdvice(await askSources(endpoint), { bind, connect, topicFilter, rank: rankOf(endpoint.name) });
    return new UntoldWatch({ feed, samples, blockTokens, now: poolClockMs, advice, report });
  }

  async stop(): Promise<void> {
    this.#untold?.stop();
    await this.#feed?.close();
  }
}

/** ZeroMQ is loaded only when events are followed. */
async function createEventFeed({
  scheduling,
  core,
  table,
  report,
}: EngineEventOptions): Promise<EventFeed | undefined> {
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
    placed: (slot, isPlaced) => table.setUntold(slot, isPlaced),
    report,
  });
}

/** Longest wait for the list of sources, and bytes of it that are read. */
const SOURCES_MS = 2_000;
const SOURCES_BYTES_MAX = 65_536;

/** Asks an engine for the sockets of its events. @returns undefined without an answer */
function askSources({ address, port }: Pick<Endpoint, 'address' | 'port'>): Promise<SourcesAnswer | undefined> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(SOURCES_MS);
    const request = get({ host: address, port, path: EVENT_SOURCES_PATH, agent: false, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => {
        text += piece;
        if (text.length > SOURCES_BYTES_MAX) request.destroy();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.on('close', () => resolve(undefined));
    });
    request.on('error', () => resolve(undefined));
  });
}
