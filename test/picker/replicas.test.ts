import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { JetStreamStore } from '../../dist/src/replication/jetstream-store.js';
import { decodeMessage, encodeMessage } from '../../dist/src/replication/messages.js';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { type Call, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import type { ReplicaPage } from '../replication/faults/checker.ts';
import { NatsServer, skipReason } from '../replication/nats-server.ts';
import { PREFIX_PROFILE } from '../replication/prefix-profile.ts';
import { TcpProxy } from '../replication/tcp-proxy.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, askAndEnd, metric, runToEnd, type ServeProcess, Setting, startServe } from './serving.ts';

const TENANTS = `featureGates: [flowControl]
plugins:
- type: queue-scorer
flowControl:
  tenantLimits:
  - {fairnessId: free, tokensPerSecond: 0.001, burstTokens: 600}
`;
const ENDPOINTS = Array.from({ length: 4 }, (_, i) => ({ name: `s${i}`, port: 20_100 + i }));
const PROMPTS = Array.from({ length: 30 }, (_, i) => `${i} tells a story of its own. `.repeat(60));
const REQUESTS = 'pointsman_endpoint_inflight_requests';
const PEER_REQUESTS = 'pointsman_endpoint_peer_requests';

interface Replica {
  readonly serve: ServeProcess;
  readonly client: ProxyClient;
  readonly proxy: TcpProxy;
  readonly own: () => Promise<number>;
  /** Messages that it has had of others. */
  readonly received: () => Promise<number>;
  /** Requests of the others, as this one knows them. */
  readonly peers: () => Promise<number>;
}

const cleanups: (() => unknown)[] = [];

/** A picker behind a proxy of its own to NATS. */
async function replica(nats: NatsServer, group: string, profile = PREFIX_PROFILE, more?: string): Promise<Replica> {
  const proxy = await TcpProxy.start(nats.port);
  cleanups.push(() => proxy.close());
  const section = [`nats: "${proxy.url}"`, `group: ${group}`, ...(more === undefined ? [] : [more])].join(', ');
  const setting = await Setting.create(ENDPOINTS, `${profile}replication: {${section}}\n`);
  cleanups.push(() => setting.remove());
  const serve = await startServe([...setting.flags, '--lame-duck=0s', '--drain-timeout=0s']);
  cleanups.push(() => serve.kill());
  const client = dialPicker(serve.grpcPort);
  cleanups.push(() => client.close());
  const sum = async (name: string, labels = '') => (await metric(serve.metricsPort, name, labels)) ?? 0;
  const received = () => sum('pointsman_replication_messages_total', 'direction="received"');
  return { serve, client, proxy, own: () => sum(REQUESTS), received, peers: () => sum(PEER_REQUESTS) };
}

async function replicas(nats: NatsServer, group: string, count: number, profile = PREFIX_PROFILE): Promise<Replica[]> {
  const all: Replica[] = [];
  for (let i = 0; i < count; i++) all.push(await replica(nats, group, profile));
  return all;
}

/** Requests that stay open. */
async function hold({ client }: Replica, count: number): Promise<readonly Call[]> {
  const calls = Array.from({ length: count }, (_, i) => ask(client, `held ${i}`));
  await Promise.all(calls.map((call) => new Promise((resolve) => call.once('data', resolve))));
  return calls;
}

async function destination({ client }: Replica, prompt: string): Promise<string> {
  const { replies } = await askAndEnd(client, prompt);
  return decodeReply(replies[0]!).headers['x-gateway-destination-endpoint']!;
}

/** Kind of the answer to a request of a tenant with 600 tokens, estimated, and the expected output. */
async function answer({ client }: Replica, tenant: string) {
  const call = ask(client, 'x'.repeat(2_400), { 'x-llm-d-inference-fairness-id': tenant });
  return decodeReply(await firstReply(call)).kind;
}

async function know(what: string, all: readonly Replica[], counts: readonly number[]): Promise<void> {
  await eventually(what, async () => {
    const known = await Promise.all(all.map(({ peers }) => peers()));
    return known.every((count, i) => count === counts[i]);
  });
}

describe.skipIf(skipReason !== '')(`replicas on NATS${skipReason}`, () => {
  let nats: NatsServer;

  beforeAll(async () => {
    nats = await NatsServer.start();
  });

  afterAll(() => nats.stop());

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  it('a prompt that one replica has placed is sent to the same endpoint by the others', async () => {
    const [a, b, c] = await replicas(nats, 'prompts', 3);
    const placed: string[] = [];
    for (const prompt of PROMPTS) placed.push(await destination(a!, prompt));
    await eventually('the others know the prompts', async () => {
      const blocks = await Promise.all(
        [a!, b!, c!].map(({ serve }) => metric(serve.metricsPort, 'pointsman_prefix_index', 'what="blocks"')),
      );
      return blocks.every((count) => count === blocks[0]);
    });
    for (const other of [b!, c!]) {
      const picked: string[] = [];
      for (const prompt of PROMPTS) picked.push(await destination(other, prompt));
      expect(picked).toEqual(placed);
    }
  });

  it('a replica that joins takes the prefix index of another one over before it serves', async () => {
    const a = await replica(nats, 'join');
    const placed: string[] = [];
    for (const prompt of PROMPTS) placed.push(await destination(a, prompt));
    const b = await replica(nats, 'join');
    const picked: string[] = [];
    for (const prompt of PROMPTS) picked.push(await destination(b, prompt));
    expect(picked).toEqual(placed);
    expect(b.serve.log()).toContain('has joined its replicas');
  });

  it('a replica whose messages a stranger takes waits for no peer that is not heard', async () => {
    const stranger = await connect({ servers: `nats://127.0.0.1:${nats.port}` });
    cleanups.push(() => stranger.close());
    stranger.subscribe('pointsman.strange.>', { callback: () => undefined });
    await stranger.flush();
    const a = await replica(nats, 'strange');
    expect(a.serve.log()).toContain('no peer is heard: serves without what peers know');
  });

  it('a replica that is alone is ready without a wait', async () => {
    const a = await replica(nats, 'alone');
    const line = a.serve
      .log()
      .split('\n')
      .find((text) => text.includes('has joined its replicas'))!;
    expect((JSON.parse(line) as { peers: number }).peers).toBe(0);
  });

  it('requests of one replica count as load in the others, until they end', async () => {
    const all = await replicas(nats, 'load', 3);
    const calls = await hold(all[0]!, 6);
    await hold(all[1]!, 2);
    await know('all know all requests', all, [2, 6, 8]);
    for (const call of calls) call.cancel();
    await know('ended requests count no more', all, [2, 0, 2]);
  });

  it('a message of a stranger with NaN leaves the load of a live replica as it is', async () => {
    const all = await replicas(nats, 'nan', 2);
    await hold(all[0]!, 3);
    await know('the other knows them', [all[1]!], [3]);
    const stranger = await connect({ servers: nats.url });
    cleanups.push(() => stranger.close());
    for await (const { data } of stranger.subscribe('pointsman.nan.all')) {
      const message = decodeMessage(data);
      if (message.kind !== 'update') continue;
      const forged = { ...message, sequence: message.sequence + 1, sentAtMs: Number.NaN };
      stranger.publish('pointsman.nan.all', encodeMessage(forged));
      break;
    }
    await eventually('both have refused it', async () => {
      const refused = await Promise.all(
        all.map(({ serve }) => metric(serve.metricsPort, 'pointsman_replication_bad_messages_total')),
      );
      return refused.every((count) => count === 1);
    });
    const health = await fetch(`http://127.0.0.1:${all[1]!.serve.metricsPort}/debug/health`);
    expect(await health.json()).toMatchObject({ lastMinute: { pointsman_replication_bad_messages_total: 1 } });
    await hold(all[0]!, 2);
    await know('the other knows new ones', [all[1]!], [5]);
  });

  it('replicas with a hashKeyFile share with each other, and refuse what is not signed with it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pointsman-hash-key-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, 'key'), 'a secret of the group\n');
    const keyed = `hashKeyFile: ${join(folder, 'key')}`;
    const all = [
      await replica(nats, 'signed', PREFIX_PROFILE, keyed),
      await replica(nats, 'signed', PREFIX_PROFILE, keyed),
      await replica(nats, 'signed'),
    ];
    await hold(all[0]!, 3);
    await hold(all[2]!, 2);
    await know('those with the key know each other', all.slice(0, 2), [0, 3]);
    await eventually('the one without it is refused', async () => {
      const of = all[1]!.serve.metricsPort;
      return ((await metric(of, 'pointsman_replication_bad_messages_total', 'reason="signature"')) ?? 0) > 5;
    });
    const lines = all[1]!.serve.log().split('\n');
    expect(lines.filter((line) => line.includes('a message cannot be read: it is not signed'))).toHaveLength(1);
    await know('nothing of it counts', all.slice(0, 2), [0, 3]);
  });

  it('the page of replicas shows the peers and both parts of the load', async () => {
    const all = await replicas(nats, 'page', 2);
    await hold(all[0]!, 3);
    await know('the other knows them', [all[1]!], [3]);
    const page = async ({ serve }: Replica) =>
      (await (await fetch(`http://127.0.0.1:${serve.metricsPort}/debug/replicas`)).json()) as ReplicaPage;
    for (const [i, part] of (['own', 'peers'] as const).entries()) {
      const { connected, peers, endpoints } = await page(all[i]!);
      expect([connected, peers.map(({ live }) => live), endpoints.length]).toEqual([true, [true], ENDPOINTS.length]);
      expect(endpoints.reduce((sum, endpoint) => sum + endpoint[part].requests, 0)).toBe(3);
    }
  });

  it('the load of a killed replica is freed, and its restart counts from nothing', async () => {
    const all = await replicas(nats, 'killed', 2);
    await hold(all[0]!, 5);
    await know('the other knows them', [all[1]!], [5]);
    all[0]!.serve.child.kill('SIGKILL');
    await know('they are freed', [all[1]!], [0]);
    expect(all[1]!.serve.log()).toContain('a replica is silent: its load no longer counts');
  });

  it('a partition frees what is behind it, and heals without counting twice', async () => {
    const all = await replicas(nats, 'partition', 3);
    await hold(all[0]!, 3);
    await hold(all[1]!, 4);
    await know('all know all', all, [4, 3, 7]);
    all[0]!.proxy.partition();
    await know('what is behind the partition is freed', all, [0, 0, 4]);
    await hold(all[0]!, 1);
    expect(await destination(all[0]!, 'decided alone')).toMatch(/^127/);
    all[0]!.proxy.heal();
    await know('all is counted once again', all, [4, 4, 8]);
    await eventually('the gap is closed', async () => {
      const { serve } = all[0]!;
      return (await metric(serve.metricsPort, 'pointsman_replication_peers')) === 2;
    });
  });

  it('prompts placed behind a partition are known to the others once it heals', async () => {
    const [a, b] = await replicas(nats, 'healed', 2);
    a!.proxy.partition();
    const placed: string[] = [];
    for (const prompt of PROMPTS) placed.push(await destination(a!, prompt));
    a!.proxy.heal();
    await eventually('the index was sent', async () => {
      const blocks = await Promise.all(
        [a!, b!].map(({ serve }) => metric(serve.metricsPort, 'pointsman_prefix_index', 'what="blocks"')),
      );
      return blocks[0]! > 0 && blocks[0] === blocks[1];
    });
    const picked: string[] = [];
    for (const prompt of PROMPTS) picked.push(await destination(b!, prompt));
    expect(picked).toEqual(placed);
  });

  it('a restarted nats-server costs no answer, and the replicas find each other again', async () => {
    const own = await NatsServer.start();
    cleanups.push(() => own.stop());
    const all = await replicas(own, 'restarted', 2);
    await hold(all[0]!, 2);
    await know('the load is known', all, [0, 2]);
    await own.stop();
    await know('the load is freed', all, [0, 0]);
    for (const one of all) expect(await destination(one, 'without NATS')).toMatch(/^127/);
    await own.restart();
    await know('the load is known again', all, [0, 2]);
  });

  it('a slow and cut connection loses nothing for good', async () => {
    const all = await replicas(nats, 'slow', 2);
    all[0]!.proxy.delayMs = 60;
    const calls = await hold(all[0]!, 4);
    for (let i = 0; i < 5; i++) {
      all[i % 2]!.proxy.cut();
      await destination(all[0]!, PROMPTS[i]!);
    }
    for (const call of calls.slice(0, 3)) call.cancel();
    await know('the last state counts', all, [0, 1]);
  });

  it('a slow consumer forgets what it does not hear, costs the others nothing, and knows the present once it reads again', async () => {
    const all = await replicas(nats, 'consumer', 3);
    const calls = await hold(all[0]!, 5);
    await know('all know the requests', all, [0, 5, 5]);
    all[1]!.proxy.stall(true);
    await hold(all[1]!, 2);
    await know('what it hears no more is freed there, and the others hear it', all, [2, 0, 7]);
    for (const call of calls.slice(0, 3)) call.cancel();
    await know('the others know of the end', all, [2, 0, 4]);
    expect(await destination(all[1]!, 'decided alone')).toMatch(/^127/);
    all[1]!.proxy.stall(false);
    await know('all know all', all, [2, 2, 4]);
  });

  it('a tenant has one bucket, whichever replica it asks', async () => {
    const [a, b] = await replicas(nats, 'tenants', 2, TENANTS);
    expect(await answer(a!, 'free')).not.toBe('immediate');
    await know('the request is known', [b!], [1]);
    // The shard counts the load and the control thread the tokens, so these may come a message later.
    const heard = await b!.received();
    await eventually('two more messages come', async () => (await b!.received()) >= heard + 2);
    expect(await answer(b!, 'free')).toBe('immediate');
    expect(await answer(b!, 'paying')).not.toBe('immediate');
  });

  it('the bucket of a tenant survives the end of all replicas in JetStream', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'jetstream-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    const own = await NatsServer.start(['-js', '-sd', folder]);
    cleanups.push(() => own.stop());
    const keeping = async () => replica(own, 'kept', TENANTS, 'jetStream: true');
    const all = [await keeping(), await keeping()];
    expect(await answer(all[0]!, 'free')).not.toBe('immediate');
    await know('the request is known', [all[1]!], [1]);
    const connection = await connect({ servers: own.url });
    cleanups.push(() => connection.close());
    const store = new JetStreamStore(() => connection, 'kept');
    await eventually('the level is kept', async () => (await store.get('tenants')) !== undefined);
    for (const { serve } of all) serve.child.kill('SIGKILL');
    for (const { serve } of all) await serve.ended;
    const next = await keeping();
    // A picker serves after 2.5 s without its store, which may come later on a busy machine.
    await eventually('the level is restored', () => next.serve.log().includes('goes on with the buckets of tenants'));
    expect(await answer(next, 'free')).toBe('immediate');
    expect(await answer(next, 'paying')).not.toBe('immediate');
  });

  it('a nats-server without JetStream costs one line in the log and nothing else', async () => {
    const all = [await replica(nats, 'no-jetstream', TENANTS, 'jetStream: true')];
    all.push(await replica(nats, 'no-jetstream', TENANTS, 'jetStream: true'));
    await hold(all[0]!, 2);
    await know('the load is shared', all, [0, 2]);
    for (const { serve } of all) expect(serve.log().split('nothing is kept in JetStream').length).toBe(2);
  });

  it('a picker without a NATS waits no longer than it may come, serves and says so', async () => {
    const setting = await Setting.create(
      ENDPOINTS,
      `${PREFIX_PROFILE}replication: {nats: "nats://127.0.0.1:1", group: none}\n`,
    );
    cleanups.push(() => setting.remove());
    const serve = await startServe(setting.flags);
    cleanups.push(() => serve.kill());
    expect(serve.log()).toContain('NATS is not reached: serves without what peers know');
  });
});

describe('the address of NATS', () => {
  it('an address that is none ends the start with one line', async () => {
    const setting = await Setting.create(ENDPOINTS, PREFIX_PROFILE);
    const { code, stderr } = await runToEnd(['serve', ...setting.flags, '--replication-url=http://nats:4222']);
    await setting.remove();
    expect([code, stderr]).toEqual([1, expect.stringContaining('--replication-url: must be like nats://')]);
  });

  it('credentials in the configuration are refused, because it is shown', async () => {
    const setting = await Setting.create(ENDPOINTS, `${PREFIX_PROFILE}replication: {nats: "nats://a:b@nats:4222"}\n`);
    const { code, stderr } = await runToEnd(['serve', ...setting.flags]);
    await setting.remove();
    expect([code, stderr]).toEqual([1, expect.stringContaining('without user and password')]);
  });
});
