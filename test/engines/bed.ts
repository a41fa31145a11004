import { randomUUID } from 'node:crypto';
import type { RequestStory } from '../../dist/src/operations/why/request-story.js';
import { startGateway } from '../../dist/tools/gateway/gateway.js';
import { type FileEndpoint, metric, metricsPage, Setting, startPicker } from '../picker/serving.ts';
import { ask as askGateway, eventually } from '../tools/gateway/client.ts';

/** Tokens of an answered prompt: as the picker knew them at the pick, and as the engine reported them. */
export interface Compared {
  readonly status: number;
  readonly endpoint: string;
  readonly body: string;
  readonly predicted: { readonly prompt: number; readonly cached: number };
  readonly told: { readonly prompt: number; readonly cached: number };
}

export interface PromptRequest {
  readonly path?: '/v1/completions' | '/v1/chat/completions';
  readonly body: Readonly<Record<string, unknown>>;
}

/** A picker of this process and the embedded gateway in front of engines. */
export class Bed {
  readonly metricsPort: number;
  readonly gatewayPort: number;
  readonly #stop: () => Promise<void>;

  private constructor(ports: { metrics: number; gateway: number }, stop: () => Promise<void>) {
    this.metricsPort = ports.metrics;
    this.gatewayPort = ports.gateway;
    this.#stop = stop;
  }

  /** @param profile `plugins` (the first line) and `schedulingProfiles` as YAML; absent = the default profile */
  static async start(endpoints: readonly FileEndpoint[], profile?: string): Promise<Bed> {
    const setting = await Setting.create(endpoints, profile);
    const { picker, ports } = await startPicker([...setting.flags, '--shards=1', '--metrics-staleness-threshold=10s']);
    const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: ports.grpcPort } });
    const bed = new Bed({ metrics: ports.metricsPort, gateway: gateway.port }, async () => {
      await gateway.stop();
      await picker.stop(0);
      await setting.remove();
    });
    await eventually('fresh signals', async () => (await bed.count('llm_d_epp_ready_endpoints')) === endpoints.length);
    return bed;
  }

  count(name: string, labels = ''): Promise<number | undefined> {
    return metric(this.metricsPort, name, labels);
  }

  page(): Promise<string> {
    return metricsPage(this.metricsPort);
  }

  /** Sends a prompt through gateway and picker, and compares what both sides say of it. */
  async compare({ path = '/v1/completions', body }: PromptRequest): Promise<Compared> {
    const id = randomUUID();
    const answer = await askGateway(this.gatewayPort, {
      path,
      headers: { 'x-request-id': id },
      body: JSON.stringify(body),
    });
    const story = await this.story(id);
    const decision = story.decisions.at(-1)!;
    return {
      status: answer.status,
      endpoint: decision.endpoint ?? '',
      body: answer.body.toString(),
      predicted: { prompt: decision.promptTokens, cached: decision.matchedTokens },
      told: { prompt: story.end?.promptTokens ?? -1, cached: story.end?.cachedTokens ?? -1 },
    };
  }

  /** The picker's record of a request whose answer has ended. */
  async story(id: string): Promise<RequestStory> {
    let story: RequestStory | undefined;
    await eventually('the end of the request', async () => {
      const answer = await fetch(`http://127.0.0.1:${this.metricsPort}/debug/requests/${id}`);
      story = answer.ok ? ((await answer.json()) as RequestStory) : undefined;
      return story !== undefined && story.end !== null;
    });
    return story!;
  }

  /** Resolves when the picker has applied no message of an engine for some time. */
  async settle(quietMs = 400): Promise<void> {
    let before = -1;
    for (;;) {
      const now = (await this.count('pointsman_kv_events_messages_total')) ?? 0;
      if (now === before) return;
      before = now;
      await new Promise((resolve) => setTimeout(resolve, quietMs));
    }
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}

/** Source of tokens for a precise profile. */
export type Tokens = { readonly render: string } | { readonly local: string };

export interface PreciseProfile {
  readonly tokens: Tokens;
  readonly blockTokens: number;
  /** `kvEventsConfig` as YAML in one line. */
  readonly events: string;
  /** Further parameters of the producer. */
  readonly more?: string;
  readonly model: string;
}

/** A profile that follows the caches by KV events. */
export function preciseProfile({ tokens, blockTokens, events, more = '', model }: PreciseProfile): string {
  const source =
    'render' in tokens
      ? `{modelName: ${model}, vllm: {url: "${tokens.render}", timeout: 20s}}`
      : `{local: {path: ${JSON.stringify(tokens.local)}, timeout: 20s}}`;
  return `plugins:
- {type: token-producer, parameters: ${source}}
- type: precise-prefix-cache-producer
  parameters: {tokenProcessorConfig: {blockSizeTokens: ${blockTokens}}, kvEventsConfig: ${events}${more}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
- {type: queue-scorer}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: prefix-cache-scorer, weight: 3}, {pluginRef: queue-scorer}]
`;
}
