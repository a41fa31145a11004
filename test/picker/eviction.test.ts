import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { type Call, dialPicker, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, type Ports, Setting, startPicker } from './serving.ts';

const OBJECTIVES = 'objectives:\n- {name: interactive, priority: 10}\n- {name: batch, priority: -10}\n';
const ENDPOINT = [{ name: 'server', port: 20_000 }];

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** One endpoint with `places` places. */
async function start({ places = 1, enableEviction = true, section = '' }, ...flags: string[]): Promise<Ports> {
  const profile = `featureGates: [flowControl]
plugins:
- {type: concurrency-detector, parameters: {maxConcurrency: ${places}}}
- type: queue-scorer
- type: start-time-fairness-policy
schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
flowControl:
  saturationDetector: {pluginRef: concurrency-detector}
  enableEviction: ${enableEviction}
  defaultPriorityBand: {fairnessPolicyRef: start-time-fairness-policy}
${section}`;
  const setting = await Setting.create([], profile);
  cleanups.push(() => setting.remove());
  await setting.writeEndpoints(ENDPOINT, OBJECTIVES);
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  return ports;
}

/** A request, everything that it was answered, and how its stream ended. */
class Asked {
  readonly call: Call;
  readonly replies: ReturnType<typeof decodeReply>[] = [];
  code: number | undefined;

  constructor(client: ProxyClient, objective: string, prompt: string) {
    this.call = ask(client, prompt, { 'x-llm-d-inference-objective': objective });
    this.call.on('data', (reply: Buffer) => this.replies.push(decodeReply(reply)));
    this.call.on('status', ({ code }) => {
      this.code = code;
    });
  }

  get placed(): boolean {
    return this.replies[0]?.headers['x-gateway-destination-endpoint'] !== undefined;
  }

  /** The model server answers the first part of a stream. */
  firstToken(): void {
    this.call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
    this.call.write(responseBody('data: {"choices":[{"delta":{"content":"a"}}]}\n\n', false));
  }

  finish(): void {
    this.call.write(responseBody('data: [DONE]\n\n', true));
  }

  get last() {
    return this.replies.at(-1)!;
  }
}

function clientOf({ grpcPort }: Ports): ProxyClient {
  const client = dialPicker(grpcPort);
  cleanups.push(() => client.close());
  return client;
}

const EVICTED = { kind: 'immediate', status: 429 };
const issued = 'llm_d_epp_flow_control_revocations_issued_total';
const ended = 'llm_d_epp_flow_control_revocations_total';

describe('a request of a high band that finds no place', () => {
  it('a request of a high band that finds no place gets that of a sheddable one, which is told so as by llm-d-router', async () => {
    const ports = await start({});
    const client = clientOf(ports);
    const batch = new Asked(client, 'batch', 'a');
    await eventually('it is placed', () => batch.placed);
    const interactive = new Asked(client, 'interactive', 'b');
    await eventually('it is placed', () => interactive.placed);
    expect(batch.last).toMatchObject(EVICTED);
    expect(batch.last.body.toString()).toBe('request evicted by flow control');
    expect(batch.last.headers).toMatchObject({ 'x-llm-d-request-dropped-reason': 'evicted' });
    await eventually('its stream has ended', () => batch.code === 0);
    await eventually('its end is known', async () => {
      return (await metric(ports.metricsPort, ended, 'outcome="confirmed"')) === 1;
    });
    expect(await metric(ports.metricsPort, issued, 'priority="10"')).toBe(1);
    const confirmed = 'llm_d_epp_flow_control_revocation_confirmation_seconds_count';
    expect(await metric(ports.metricsPort, confirmed)).toBe(1);
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(1);
  });

  it('a request of a high band that finds no place takes that of one without a first token, before newer ones', async () => {
    const ports = await start({ places: 2 });
    const client = clientOf(ports);
    const pending = new Asked(client, 'batch', 'a');
    await eventually('it is placed', () => pending.placed);
    const answering = new Asked(client, 'batch', 'b');
    await eventually('it is placed', () => answering.placed);
    answering.firstToken();
    await eventually('its first token has passed', () => answering.last.kind === 'responseBody');
    const interactive = new Asked(client, 'interactive', 'c');
    await eventually('it is placed', () => interactive.placed);
    expect(pending.last).toMatchObject(EVICTED);
    expect(answering.code).toBeUndefined();
  });

  it('a request of a high band that finds no place ends one that answers already, when there is no other', async () => {
    const ports = await start({});
    const client = clientOf(ports);
    const batch = new Asked(client, 'batch', 'a');
    await eventually('it is placed', () => batch.placed);
    batch.firstToken();
    await eventually('its first token has passed', () => batch.last.kind === 'responseBody');
    const interactive = new Asked(client, 'interactive', 'b');
    await eventually('it is placed', () => interactive.placed);
    expect(batch.last).toMatchObject(EVICTED);
  });

  it('a request of a high band that finds no place reaches one on another shard', async () => {
    const ports = await start({ places: 8 }, '--shards=2');
    const batch = Array.from({ length: 8 }, (_, i) => new Asked(clientOf(ports), 'batch', `prompt ${i}`));
    await eventually('the places are taken', () => batch.every(({ placed }) => placed));
    const interactive = Array.from({ length: 8 }, (_, i) => new Asked(clientOf(ports), 'interactive', `other ${i}`));
    await eventually('all are placed', () => interactive.every(({ placed }) => placed));
    expect(batch.every(({ last }) => last.kind === 'immediate' && last.status === 429)).toBe(true);
    await eventually('all ends are known', async () => {
      return (await metric(ports.metricsPort, ended, 'outcome="confirmed"')) === 8;
    });
    expect(await metric(ports.metricsPort, 'pointsman_ledger_entries')).toBe(8);
  });

  it('a request of a high band that finds no place leaves an answer alone that is complete, though its stream is open', async () => {
    const ports = await start({});
    const client = clientOf(ports);
    const batch = new Asked(client, 'batch', 'a');
    await eventually('it is placed', () => batch.placed);
    batch.firstToken();
    batch.finish();
    await eventually('its end has passed', () => batch.last.kind === 'responseBody');
    const interactive = new Asked(client, 'interactive', 'b');
    await eventually('it is placed', () => interactive.placed);
    expect(batch.code).toBeUndefined();
    expect(batch.replies.some(({ kind }) => kind === 'immediate')).toBe(false);
    expect(await metric(ports.metricsPort, issued)).toBeUndefined();
  });

  it('a request of a high band that finds no place waits where nothing sheddable runs', async () => {
    const ports = await start({});
    const client = clientOf(ports);
    const other = new Asked(client, '', 'a');
    await eventually('it is placed', () => other.placed);
    const interactive = new Asked(client, 'interactive', 'b');
    const size = 'llm_d_epp_flow_control_queue_size';
    await eventually('it waits', async () => (await metric(ports.metricsPort, size)) === 1);
    other.firstToken();
    other.finish();
    await eventually('it is placed', () => interactive.placed);
    expect(other.replies.some(({ kind }) => kind === 'immediate')).toBe(false);
  });

  it('a request of a high band that finds no place waits where eviction is off', async () => {
    const ports = await start({ enableEviction: false });
    const client = clientOf(ports);
    const batch = new Asked(client, 'batch', 'a');
    await eventually('it is placed', () => batch.placed);
    const interactive = new Asked(client, 'interactive', 'b');
    const size = 'llm_d_epp_flow_control_queue_size';
    await eventually('it waits', async () => (await metric(ports.metricsPort, size)) === 1);
    batch.firstToken();
    batch.finish();
    await eventually('it is placed', () => interactive.placed);
    expect(batch.replies.some(({ kind }) => kind === 'immediate')).toBe(false);
  });
});
