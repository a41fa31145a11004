import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AccessReviews } from '../../dist/src/kubernetes/access-review.js';
import { PICKER_TOKEN, sharedCluster, skipReason } from './api-server.ts';
import type { Cluster } from './cluster.ts';
import { clientOf } from './observed-reflector.ts';
import { json, ScriptedServer, status } from './scripted-server.ts';

describe.skipIf(skipReason !== '')(`reviews by an API server${skipReason}`, () => {
  let cluster: Cluster;
  let namespace: string;

  beforeAll(async () => {
    cluster = await sharedCluster();
    namespace = await cluster.makeNamespace();
    await cluster.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'metrics-reader' },
      rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
    });
    await cluster.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `metrics-reader-${namespace}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'metrics-reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace }],
    });
  });
  afterAll(() => cluster?.close());

  it('reviews by an API server let a ServiceAccount read the path that its role names, and no other', async () => {
    const token = await cluster.serviceAccountToken(namespace, 'prometheus');
    const reviews = new AccessReviews(clientOf(cluster));
    expect(await reviews.mayRead(token, '/metrics')).toEqual({ status: 200, reason: '' });
    expect(await reviews.mayRead(token, '/debug/decisions')).toEqual({
      status: 403,
      reason: `user system:serviceaccount:${namespace}:prometheus may not get /debug/decisions`,
    });
  });

  it('reviews by an API server do not know a made-up token', async () => {
    const reviews = new AccessReviews(clientOf(cluster));
    expect(await reviews.mayRead('made up', '/metrics')).toMatchObject({ status: 401 });
  });

  it('reviews by an API server are not asked without a token', async () => {
    const reviews = new AccessReviews(clientOf(cluster));
    expect(await reviews.mayRead(undefined, '/metrics')).toMatchObject({ status: 401 });
    expect(reviews.counts.requests).toBe(0);
  });

  it('reviews by an API server name the rights that the picker lacks for them', async () => {
    const reviews = new AccessReviews(clientOf(cluster, PICKER_TOKEN));
    expect(await reviews.missingRights()).toEqual([
      'create tokenreviews.authentication.k8s.io',
      'create subjectaccessreviews.authorization.k8s.io',
    ]);
    expect(await new AccessReviews(clientOf(cluster)).missingRights()).toEqual([]);
  });
});

describe('the memory of reviews', () => {
  let server: ScriptedServer;
  let now = 0;
  let reviews: AccessReviews;

  const user = json({ status: { authenticated: true, user: { username: 'prometheus', groups: ['g'] } } });
  const allowed = json({ status: { allowed: true } });
  const denied = json({ status: { allowed: false } });
  const statusOf = async () => (await reviews.mayRead('t', '/metrics')).status;

  beforeEach(async () => {
    now = 0;
    server = await ScriptedServer.start();
    reviews = new AccessReviews(clientOf(server.url), () => now);
  });
  afterEach(() => server.close());

  it('the memory of reviews asks once for many readers at a time', async () => {
    server.answer(user, allowed);
    const answers = await Promise.all(Array.from({ length: 20 }, statusOf));
    expect(new Set(answers)).toEqual(new Set([200]));
    expect(server.requests).toHaveLength(2);
  });

  it('the memory of reviews knows an owner for 60 s and a permission for 5 min', async () => {
    server.answer(user, allowed, user);
    await statusOf();
    now = 59_999;
    expect(reviews.counts.remembered).toEqual({ rights: 1, oldestMs: 59_999 });
    await statusOf();
    expect(server.requests).toHaveLength(2);
    now = 60_000;
    expect(await statusOf()).toBe(200);
    expect(server.requests).toHaveLength(3);
    now = 300_000;
    server.answer(user, denied);
    expect(await statusOf()).toBe(403);
  });

  it('the memory of reviews asks again about a denial after 30 s', async () => {
    server.answer(user, denied);
    expect(await statusOf()).toBe(403);
    now = 29_999;
    expect(await statusOf()).toBe(403);
    expect(server.requests).toHaveLength(2);
    now = 30_000;
    server.answer(allowed);
    expect(await statusOf()).toBe(200);
  });

  it('the memory of reviews lets in who was allowed for 10 min more while the server is away, and counts it', async () => {
    server.answer(user, allowed);
    await statusOf();
    now = 899_999;
    server.answer(status(503));
    expect(await statusOf()).toBe(200);
    expect(reviews.counts.answers.stale).toBe(1);
    now = 900_000;
    server.answer(status(503));
    expect(await statusOf()).toBe(503);
  });

  it('the memory of reviews says why nobody can be asked', async () => {
    server.answer(status(403, 'Forbidden', { message: 'tokenreviews is forbidden' }));
    expect(await reviews.mayRead('t', '/metrics')).toEqual({
      status: 503,
      reason: 'the API server cannot be asked who may read: tokenreviews is forbidden',
    });
  });

  it('the memory of reviews holds 1,000 tokens', async () => {
    for (let i = 0; i <= 1_000; i++) {
      server.answer(json({ status: { authenticated: false } }));
      await reviews.mayRead(`token ${i}`, '/metrics');
    }
    const before = server.requests.length;
    await reviews.mayRead('token 1000', '/metrics');
    expect(server.requests.length).toBe(before);
    server.answer(json({ status: { authenticated: false } }));
    await reviews.mayRead('token 0', '/metrics');
    expect(server.requests.length).toBe(before + 1);
  });
});
