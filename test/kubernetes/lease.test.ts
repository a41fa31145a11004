import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { LeaderElection, leaseStep } from '../../dist/src/kubernetes/lease.js';
import { eventually } from '../tools/gateway/client.ts';
import { type ApiServer, PICKER_TOKEN, sharedCluster, skipReason, startApiServer } from './api-server.ts';
import { Cluster, type KubernetesObject } from './cluster.ts';
import { clientOf } from './observed-reflector.ts';
import { SilentProxy } from './silent-proxy.ts';

/** Longer than a lease lasts. */
const AWAY_MS = process.env.POINTSMAN_STRESS ? 60_000 : 18_000;

describe('what a candidate does about a record', () => {
  const held = { holderIdentity: 'other', leaseDurationSeconds: 15, renewTime: '2001-01-01T00:00:00.000000Z' };

  it.each([
    ['renews its own', { ...held, holderIdentity: 'me' }, 60_000, 'renew'],
    ['takes one that was released', { ...held, holderIdentity: '' }, 0, 'acquire'],
    ['takes one without a holder', {}, 0, 'acquire'],
    ['waits while another renews, whatever the time in the record says', held, 14_999, 'wait'],
    ['takes one that has not changed for its duration', held, 15_000, 'acquire'],
    ['goes by the duration of the record', { ...held, leaseDurationSeconds: 60 }, 15_000, 'wait'],
  ] as const)('%s', (_what, record, unchangedMs, step) => {
    expect(leaseStep(record, 'me', unchangedMs)).toBe(step);
  });
});

describe.skipIf(skipReason !== '')(`leader election${skipReason}`, () => {
  let cluster: Cluster;
  let namespace: string;
  const elections: LeaderElection[] = [];

  beforeAll(async () => {
    cluster = await sharedCluster();
  });
  afterAll(() => cluster?.close());
  afterEach(async () => {
    for (const election of elections.splice(0)) await election.stop();
  });

  interface Candidate {
    readonly election: LeaderElection;
    readonly turns: boolean[];
    readonly reports: string[];
  }

  function candidate(identity: string, server: Cluster = cluster, token?: string): Candidate {
    const turns: boolean[] = [];
    const reports: string[] = [];
    const election = new LeaderElection({
      client: clientOf(server, token),
      namespace,
      name: 'epp-llm-pool.llm-d.ai',
      identity,
      changed: (leader) => turns.push(leader),
      report: (problem) => reports.push(problem),
    });
    elections.push(election);
    election.start();
    return { election, turns, reports };
  }

  const reference = () => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'epp-llm-pool.llm-d.ai', namespace },
  });
  const lease = (): Promise<KubernetesObject> => cluster.get(reference());

  it('leader election makes the lease of llm-d-router’s name, times and shape', async () => {
    namespace = await cluster.makeNamespace();
    const { election } = candidate('pod-a_1');
    await eventually('it leads', () => election.leader);
    expect((await lease()).spec).toMatchObject({
      holderIdentity: 'pod-a_1',
      leaseDurationSeconds: 15,
      leaseTransitions: 0,
      acquireTime: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
      renewTime: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
    });
  });

  it('leader election has one leader, and the next one after it releases the lease', async () => {
    namespace = await cluster.makeNamespace();
    const a = candidate('a');
    await eventually('a leads', () => a.election.leader);
    const b = candidate('b');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(b.election.leader).toBe(false);
    await a.election.stop();
    expect((await lease()).spec.holderIdentity).toBe('');
    await eventually('b leads', () => b.election.leader);
    expect(a.turns).toEqual([true, false]);
    expect((await lease()).spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  it('leader election honours the record of a replica of llm-d-router, and takes it over when it is not renewed', async () => {
    namespace = await cluster.makeNamespace();
    const spec = {
      holderIdentity: 'epp-7d9_0c1',
      leaseDurationSeconds: 2,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 4,
    };
    const made = await cluster.create({ ...reference(), spec });
    const { election } = candidate('ours');
    for (let i = 0; i < 4; i++) {
      await new Promise((resolve) => setTimeout(resolve, 700));
      await cluster.mergePatch(made, { spec: { renewTime: new Date().toISOString().replace('Z', '000Z') } });
      expect(election.leader).toBe(false);
    }
    await eventually('ours leads', () => election.leader);
    expect((await lease()).spec.leaseTransitions).toBe(5);
  });

  it('leader election steps down when it sees another holder', async () => {
    namespace = await cluster.makeNamespace();
    const { election, turns } = candidate('a');
    await eventually('a leads', () => election.leader);
    for (let attempt = 0; election.leader && attempt < 20; attempt++) {
      await cluster.mergePatch(await lease(), { spec: { holderIdentity: 'b', leaseDurationSeconds: 15 } });
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    await eventually('a has stepped down', () => !election.leader);
    expect(turns).toEqual([true, false]);
  });

  it('leader election takes a lease that was deleted again', async () => {
    namespace = await cluster.makeNamespace();
    const { election, turns } = candidate('a');
    await eventually('a leads', () => election.leader);
    await cluster.delete(await lease());
    await eventually('it is there again', async () => {
      const answer = await cluster.request('GET', `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`);
      return answer.body.items.length === 1;
    });
    expect(turns).toEqual([true]);
  });

  it('leader election says once which rights are missing', async () => {
    namespace = await cluster.makeNamespace();
    const { reports } = candidate('a', cluster, PICKER_TOKEN);
    await eventually('it says so', () => reports.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(reports).toHaveLength(1);
    expect(reports[0]).toContain(
      `leases.coordination.k8s.io: get, create, update in namespace ${namespace}: forbidden`,
    );
  });

  it('7. clock jumps: a standby does not take a lease that is renewed, wherever the wall clock goes', async () => {
    namespace = await cluster.makeNamespace();
    const a = candidate('a');
    await eventually('a leads', () => a.election.leader);
    const b = candidate('b');
    const wallClock = vi.spyOn(Date, 'now');
    for (const jumpMs of [3_600_000, -3_600_000]) {
      wallClock.mockImplementation(() => performance.timeOrigin + performance.now() + jumpMs);
      const { renewTime } = (await lease()).spec;
      await eventually('a renews', async () => (await lease()).spec.renewTime !== renewTime);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      expect([a.election.leader, b.election.leader]).toEqual([true, false]);
    }
    wallClock.mockRestore();
    expect([a.turns, b.turns]).toEqual([[true], []]);
  });

  it('4.4 split lease: a leader that was cut off steps down when it sees who has taken over', async () => {
    namespace = await cluster.makeNamespace();
    const proxy = await SilentProxy.start(Number(new URL(cluster.access.url).port));
    const behind = new Cluster({ ...cluster.access, url: `https://127.0.0.1:${proxy.port}` });
    const a = candidate('a', behind);
    await eventually('a leads', () => a.election.leader);
    const b = candidate('b');
    proxy.silence();
    await eventually('b takes over', () => b.election.leader, 40_000);
    expect(a.election.leader).toBe(true);
    await proxy.open();
    await eventually('a steps down', () => !a.election.leader, 20_000);
    expect([b.election.leader, (await lease()).spec.holderIdentity]).toEqual([true, 'b']);
    await a.election.stop();
    proxy.close();
    behind.close();
  }, 90_000);

  describe('while the API server is away', () => {
    let server: ApiServer;
    beforeAll(async () => {
      server = await startApiServer();
    }, 120_000);
    afterAll(() => server?.stop());

    it('a leader stays leader for longer than its lease, a standby does not become one, and both go on afterwards', async () => {
      const own = server.cluster();
      namespace = await own.makeNamespace();
      const a = candidate('a', own);
      await eventually('a leads', () => a.election.leader);
      const b = candidate('b', own);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await server.kill();
      await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
      expect([a.election.leader, b.election.leader]).toEqual([true, false]);
      await server.start();
      const renewed = async () => (await own.get(reference())).spec.renewTime;
      const before = await renewed();
      await eventually('a leader renews', async () => (await renewed()) !== before, 20_000);
      await eventually('there is one leader', () => a.election.leader !== b.election.leader, 20_000);
      own.close();
    }, 300_000);
  });
});
