/** The engine's path that names the sockets of its KV events, by data-parallel rank (vLLM from 0.32). */
export const EVENT_SOURCES_PATH = '/kv_event_sources';

/** How the picker follows events. */
export interface FollowedSockets {
  /** Address that engines connect to; undefined = none. */
  readonly bind: string | undefined;
  /** Ports of the endpoint, its rank added; undefined = they are not asked. */
  readonly connect: { readonly port: number; readonly replayPort: number | undefined } | undefined;
  readonly topicFilter: string;
  readonly rank: number;
}

/** The engine's answer. */
export interface SourcesAnswer {
  readonly status: number;
  readonly text: string;
}

interface EventSource {
  readonly enabled: boolean;
  readonly endpoint: string;
  readonly topic: string;
}

const START = 'start it with --kv-events-config (docs/kv-events.md)';
const UNTOLD = `${EVENT_SOURCES_PATH} does not tell why: see that it was started with --kv-events-config`;

/** Configuration that is missing for events, by what the engine tells of its sockets. */
export function sourcesAdvice(answer: SourcesAnswer | undefined, followed: FollowedSockets): string {
  if (answer?.status !== 200) return UNTOLD;
  const source = sourceOf(answer.text, followed.rank);
  if (source === undefined) return UNTOLD;
  if (source === 'none' || !source.enabled) return `it publishes no events: ${START}`;
  if (!source.topic.startsWith(followed.topicFilter)) {
    const topic = JSON.stringify(source.topic.slice(0, 100));
    return `its topic is ${topic}: set its topic to kv@<ip:port>@<model>, or kvEventsConfig.topicFilter`;
  }
  return socketAdvice(source, followed);
}

/** vLLM binds an address with a star, or of every interface, and connects to any other. */
function socketAdvice({ endpoint }: EventSource, { bind, connect, rank }: FollowedSockets): string {
  const [, host = '', port = ''] = /^tcp:\/\/(.*):(\d+|\*)$/.exec(endpoint) ?? [];
  const shown = endpoint.slice(0, 200);
  if (host === '') return `it publishes at ${shown}: give it an address of tcp://`;
  if (!binds(host)) {
    if (bind === undefined) return `it connects to ${shown}: set kvEventsConfig.zmqEndpoint to tcp://*:${port}`;
    return `it connects to ${shown}: see that this picker is there, at the port of zmqEndpoint (${bind})`;
  }
  if (connect === undefined) {
    const first = Number(port) - rank;
    return `it waits for the picker at ${shown}: set kvEventsConfig.discoverPods and socketPort: ${first}`;
  }
  if (Number(port) !== connect.port) {
    return `it publishes on port ${port}: set kvEventsConfig.podDiscoveryConfig.socketPort: ${Number(port) - rank}`;
  }
  return `it publishes on port ${port} as configured: see that the network lets the picker connect to it`;
}

function binds(host: string): boolean {
  return host === '*' || host === '0.0.0.0' || host === '::' || host === '[::]';
}

/** @returns undefined for something else than a list of sources; `none` for a list without the rank */
function sourceOf(text: string, rank: number): EventSource | 'none' | undefined {
  let sources: unknown;
  try {
    sources = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof sources !== 'object' || sources === null) return undefined;
  const source: unknown = (sources as Readonly<Record<string, unknown>>)[String(rank)] ?? Object.values(sources)[0];
  if (typeof source !== 'object' || source === null) return 'none';
  const { enable_kv_cache_events, publisher, endpoint, topic } = source as Readonly<Record<string, unknown>>;
  return {
    enabled: enable_kv_cache_events !== false && publisher !== 'null' && typeof endpoint === 'string',
    endpoint: String(endpoint),
    topic: typeof topic === 'string' ? topic : '',
  };
}

/** Engines with several data-parallel ranks publish each on a port of its own; discovery names them `…-rank-<n>`. */
export function rankOf(name: string): number {
  return Number(/-rank-(\d+)$/.exec(name)?.[1] ?? 0);
}
