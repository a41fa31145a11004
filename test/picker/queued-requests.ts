import type { Picker } from '../../dist/src/picker/picker.js';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { type Call, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { ask, metric, type Ports, Setting, startPicker } from './serving.ts';

export const ENDPOINTS = Array.from({ length: 2 }, (_, index) => ({ name: `server-${index}`, port: 20_000 + index }));
export const ADDRESSES = ['127.0.0.1:20000', '127.0.0.1:20001'];

const cleanups: (() => unknown)[] = [];

/** Stops everything that a test has started; for `afterEach`. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** What a picker with queues is started with. */
export interface QueuedSetting {
  /** Requests that each endpoint takes. */
  readonly places?: number;
  /** Further lines of the flowControl section. */
  readonly section?: string;
  /** Further plugins, as lines of the list. */
  readonly plugins?: string;
  readonly endpoints?: typeof ENDPOINTS;
}

/** The configuration of a picker whose endpoints take so many requests each. */
export function profile({ places = 1, section = '', plugins = '' }: QueuedSetting): string {
  return (
    `featureGates: [flowControl]\nplugins:\n- {type: concurrency-detector, parameters: {maxConcurrency: ${places}}}\n` +
    `- type: queue-scorer\n- type: max-score-picker\n${plugins}` +
    'schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]}]\n' +
    `flowControl:\n  saturationDetector: {pluginRef: concurrency-detector}\n${section}`
  );
}

export async function start(
  given: QueuedSetting,
  ...flags: string[]
): Promise<{ picker: Picker; ports: Ports; setting: Setting }> {
  const setting = await Setting.create(given.endpoints ?? ENDPOINTS, profile(given));
  cleanups.push(() => setting.remove());
  const started = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => started.picker.stop(0));
  return { ...started, setting };
}

export function dial(port: number): ProxyClient {
  const client = dialPicker(port);
  cleanups.push(() => client.close());
  return client;
}

/** Tells the picker that a request was answered. */
export function answer(call: Call): void {
  call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
  call.write(responseBody('{}', true));
  call.end();
}

/** A request, and its first answer when it has one. */
export function request(client: ProxyClient, prompt: string, headers: Readonly<Record<string, string>> = {}) {
  const call = ask(client, prompt, headers);
  const state: { call: Call; reply: ReturnType<typeof decodeReply> | undefined } = { call, reply: undefined };
  firstReply(call).then(
    (reply) => {
      state.reply = decodeReply(reply);
    },
    () => undefined,
  );
  return state;
}

/** Requests that wait; a flow that nothing was heard of yet has no gauge. */
export const waiting = async (ports: Ports) =>
  (await metric(ports.metricsPort, 'llm_d_epp_flow_control_queue_size')) ?? 0;
