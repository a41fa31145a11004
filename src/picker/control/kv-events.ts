import { get } from 'node:http';
import { connect as connectTo } from 'node:net';
import { type Endpoint, endpointAddress } from '../../contract/endpoint.js';
import { selectorAccepts } from '../../contract/label-selector.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import type { CoreInstance } from '../../core/memory.js';
import { PrefixIndex } from '../../core/prefix-index.js';
import { SampleReader } from '../../core/sample-reader.js';
import { TokenChain } from '../../core/token-chain.js';
import type { EventFeed } from '../../kvevents/event-feed.js';
import {
  EVENT_SOURCES_PATH,
  type FollowedSockets,
  rankOf,
  type SourcesAnswer,
  sourcesAdvice,
} from '../../kvevents/event-sources.js';
import { errorMessage } from '../../runtime/error-message.js';
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
    const advice = (endpoint: Endpoint) => eventsAdvice(endpoint, { bind, connect, topicFilter });
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

/**
 * What to configure so that the events of an endpoint come: its socket is tried, and its engine is asked. Does not
 * reject.
 * @param connect ports of the first data-parallel rank
 */
export async function eventsAdvice(
  endpoint: Pick<Endpoint, 'name' | 'address' | 'port'>,
  { bind, connect, topicFilter }: Omit<FollowedSockets, 'rank'>,
): Promise<string> {
  const rank = rankOf(endpoint.name);
  const own = connect && { ...connect, port: connect.port + rank };
  const [problem, sources] = await Promise.all([
    own && connectionProblem(endpoint.address, own.port),
    askSources(endpoint),
  ]);
  const advice = sourcesAdvice(sources, { bind, connect: own, topicFilter, rank });
  return problem === undefined ? advice : `${problem}; ${advice}`;
}

/** Tries the socket of an engine's events. @returns undefined when it takes connections */
function connectionProblem(address: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connectTo({ host: address, port });
    const end = (reason?: string) => {
      socket.destroy();
      const at = `tcp://${endpointAddress({ address, port })}`;
      resolve(reason === undefined ? undefined : `no connection to ${at}: ${reason}`);
    };
    socket.setTimeout(SOURCES_MS, () => end(`no answer within ${SOURCES_MS / 1_000} s`));
    socket.once('connect', () => end());
    socket.once('error', (error) => end(errorMessage(error)));
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
