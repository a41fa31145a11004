import { createServer, type Server as HttpServer } from 'node:http';
import { connect, createServer as createListener, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../../dist/src/serve/port.js';
import { checkHealth, dialPicker, type ProxyClient } from '../ingress/proxy-client.ts';
import { EnginePublisher } from '../kvevents/engine-publisher.ts';
import { askAndEnd } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';
import { sharedCluster, skipReason } from './api-server.ts';
import type { Cluster } from './cluster.ts';
import { startClusterPicker } from './cluster-picker.ts';
import { Kubelet } from './kubelet.ts';
import { pool } from './objects.ts';

const WITHIN_MS = 30_000;
/** Loopback network of this process alone. */
const NETWORK = `127.${16 + ((process.pid >> 8) % 200)}.${process.pid % 256}`;
/** Several polls of the picker, which come every 50 ms. */
const POLLS_MS = 500;

/** Stands in for the engine of a pod, and counts what the picker asks of it beside requests. */
class WatchedEngine {
  scrapes = 0;
  renders = 0;
  readonly #http: HttpServer;
  readonly #events: Server;
  readonly #publisher: EnginePublisher;
  readonly #subscribers = new Set<Socket>();

  private constructor(http: HttpServer, events: Server, publisher: EnginePublisher) {
    this.#http = http;
    this.#events = events;
    this.#publisher = publisher;
    http.on('request', (request, response) => {
      if (request.method === 'GET') this.scrapes++;
      else this.renders++;
      request.resume();
      response.end(request.method === 'GET' ? '' : JSON.stringify({ token_ids: [1, 2, 3] }));
    });
    // Counts the connections to the publisher.
    events.on('connection', (socket) => {
      this.#subscribers.add(socket);
      const upstream = connect(Number(new URL(publisher.address).port), '127.0.0.1');
      socket.pipe(upstream).pipe(socket);
      upstream.on('error', () => socket.destroy());
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#subscribers.delete(socket);
        upstream.destroy();
      });
    });
  }

  static async start(host: string, port: number, eventPort: number): Promise<WatchedEngine> {
    const [http, events] = [createServer(), createListener()];
    const engine = new WatchedEngine(http, events, await EnginePublisher.start());
    await new Promise<void>((resolve) => http.listen(port, host, resolve));
    await new Promise<void>((resolve) => events.listen(eventPort, host, resolve));
    return engine;
  }

  /** Open subscriptions to its KV events. */
  get subscribers(): number {
    return this.#subscribers.size;
  }

  close(): void {
    this.#http.close();
    this.#http.closeAllConnections();
    this.#events.close();
    for (const socket of this.#subscribers) socket.destroy();
    this.#publisher.close();
  }
}

describe.skipIf(skipReason !== '')(`pods that come and go${skipReason}`, () => {
  const cleanups: (() => unknown)[] = [];
  let cluster: Cluster;
  let kubelet: Kubelet;
  let ports: readonly [number, number];
  let client: ProxyClient;

  beforeAll(async () => {
    cluster = await sharedCluster();
    ports = (await freePorts(2)) as [number, number];
  });
  afterAll(() => cluster?.close());
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  const ipOf = (number: number) => `${NETWORK}.${number}`;

  async function run(number: number): Promise<WatchedEngine> {
    const engine = await WatchedEngine.start(ipOf(number), ...ports);
    cleanups.push(() => engine.close());
    await kubelet.run(`pod-${number}`, { ip: ipOf(number) });
    return engine;
  }

  /** A picker that scrapes, follows KV events and lets endpoints render prompts. */
  async function serve(namespace: string): Promise<void> {
    const [, eventPort] = ports;
    const configuration = [
      ...['apiVersion: llm-d.ai/v1alpha1', 'kind: EndpointPickerConfig', 'plugins:'],
      '- {type: token-producer, parameters: {modelName: m, vllm: {servingEndpoints: true}}}',
      '- {type: precise-prefix-cache-producer, parameters: {kvEventsConfig: {podDiscoveryConfig: {socketPort: ' +
        `${eventPort}}}}}`,
      '- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}',
      'schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer}]}]',
    ];
    const config = `--config-text=${configuration.join('\n')}`;
    const flags = ['--pool-name=pool', `--pool-namespace=${namespace}`, '--shards=1', config];
    const picker = await startClusterPicker(cluster, flags, cleanups);
    client = dialPicker(picker.grpcPort);
    cleanups.push(() => client.close());
    await eventually('it is ready', async () => (await checkHealth(client)) === 'SERVING', WITHIN_MS);
  }

  const follows = ({ scrapes, subscribers }: WatchedEngine) => scrapes > 0 && subscribers === 1;

  async function rendersAt(engine: WatchedEngine): Promise<boolean> {
    const before = engine.renders;
    await askAndEnd(client, `a prompt ${Math.random()}`);
    return engine.renders > before;
  }

  it('pods that come and go are scraped, subscribed to and asked to render while they are there, and not afterwards', async () => {
    const namespace = await cluster.makeNamespace();
    kubelet = new Kubelet(cluster, namespace);
    await cluster.create(pool(namespace, { targetPorts: [{ number: ports[0] }] }));
    const first = await run(1);
    await serve(namespace);
    await eventually('the first is followed', () => follows(first), WITHIN_MS);
    await eventually('it renders', () => rendersAt(first), WITHIN_MS);
    const second = await run(2);
    await eventually('the second is followed', () => follows(second), WITHIN_MS);
    await kubelet.finish('pod-1');
    await eventually('the subscription to the first ends', () => first.subscribers === 0, WITHIN_MS);
    const { scrapes, renders } = first;
    await eventually('the second renders', () => rendersAt(second), WITHIN_MS);
    await new Promise((resolve) => setTimeout(resolve, POLLS_MS));
    expect([first.scrapes, first.renders]).toEqual([scrapes, renders]);
  }, 90_000);
});
