import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A pod of a model server as kubelets and controllers write it: with this filling it has 8.9 KB, as real ones. */
const FILLING = Array.from({ length: 60 }, (_, i) => ({
  name: `VARIABLE_${i}`,
  value: `value of variable ${i} `.repeat(5),
}));

export interface PodState {
  readonly labels?: object;
  readonly ready?: boolean;
  /** Counts how often the pod was made again under its name. */
  readonly life?: number;
}

export function podObject(i: number, version: number, { labels = {}, ready = true, life = 0 }: PodState = {}) {
  const creationTimestamp = new Date(Date.UTC(2026, 7, 1) + i * 1000).toISOString();
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `vllm-${i}`,
      namespace: 'llm',
      uid: `00000000-0000-0000-${String(life).padStart(4, '0')}-${String(i).padStart(12, '0')}`,
      resourceVersion: String(version),
      creationTimestamp,
      labels: { app: 'vllm', ...labels },
    },
    spec: {
      nodeName: `node-${i % 50}`,
      containers: [{ name: 'engine', image: 'vllm', ports: [{ containerPort: 8000 }], env: FILLING }],
    },
    status: {
      phase: 'Running',
      podIP: podAddress(i),
      hostIP: `192.168.0.${i % 50}`,
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: new Date().toISOString() }],
      containerStatuses: [{ name: 'engine', containerID: `containerd://${i}`, ready }],
    },
  };
}

export const podAddress = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

export const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const PAGE_OBJECTS = 500;
const END = line('BOOKMARK', {
  metadata: { resourceVersion: '20000', annotations: { 'k8s.io/initial-events-end': 'true' } },
});

export interface StandIn {
  readonly url: string;
  /** Sends lines on the watch. */
  send(text: string): void;
  close(): void;
}

/** A first page, which names another one when there are more pods. */
function firstPage(pods: number): Buffer {
  const items = Array.from({ length: Math.min(pods, PAGE_OBJECTS) }, (_, i) => podObject(i, i + 1));
  const metadata = { resourceVersion: '20000', ...(pods > PAGE_OBJECTS ? { continue: 'more' } : {}) };
  return Buffer.from(JSON.stringify({ metadata, items }));
}

/** An API server that has as many pods as no real one makes in the time of a benchmark. */
export async function startStandIn(pods: number): Promise<StandIn> {
  const first = Buffer.from(Array.from({ length: pods }, (_, i) => line('ADDED', podObject(i, i + 1))).join('') + END);
  const page = firstPage(pods);
  let watch: ServerResponse | undefined;
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    if (!request.url!.includes('watch=true')) {
      response.end(page);
      return;
    }
    response.flushHeaders();
    if (request.url!.includes('sendInitialEvents')) response.write(first);
    watch = response;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const port = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${port}`,
    send: (text) => watch!.write(text),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
