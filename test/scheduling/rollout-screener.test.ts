import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { disaggregatedsetRolloutScreener } from '../../dist/src/scheduling/screeners/disaggregatedset-rollout-screener.js';
import { drawRevision, revisionShares } from '../../dist/src/scheduling/screeners/revision-shares.js';
import { parseSelector } from '../../dist/src/scheduling/screeners/selector-text.js';
import { HookPool, idle } from './hook-pool.ts';

const REVISION = 'disaggregatedset.x-k8s.io/revision';
const ROLE = 'disaggregatedset.x-k8s.io/role';
const pod = (revision: string, role: string) => ({ [REVISION]: revision, [ROLE]: role, app: 'llm' });
const many = (count: number, revision: string, role: string) =>
  Array.from({ length: count }, () => pod(revision, role));

/** 2 prefill and 9 decode endpoints of the old revision, one of each of the new one. */
const ROLLOUT = [...many(2, 'a', 'prefill'), ...many(9, 'a', 'decode'), pod('b', 'prefill'), pod('b', 'decode')];

const counts = (given: Record<string, Record<string, number>>) =>
  new Map(Object.entries(given).map(([revision, roles]) => [revision, new Map(Object.entries(roles))]));
const shares = (given: Record<string, Record<string, number>>, mode: 'sum' | 'max-role') =>
  Object.fromEntries(revisionShares(counts(given), ['prefill', 'decode'], mode));

describe('the share of a revision', () => {
  const rollout = { a: { prefill: 2, decode: 9 }, b: { prefill: 1, decode: 1 } };

  it('the share of a revision is that of its endpoints with sum', () => {
    expect(shares(rollout, 'sum')).toEqual({ a: 11 / 13, b: 2 / 13 });
  });

  it('the share of a revision is that of its endpoints of the largest role with max-role', () => {
    expect(shares(rollout, 'max-role')).toEqual({ a: 0.9, b: 0.1 });
  });

  it('the share of a revision goes by the first of the required roles when several are the largest', () => {
    expect(shares({ a: { prefill: 3, decode: 1 }, b: { prefill: 1, decode: 3 } }, 'max-role')).toEqual({
      a: 0.75,
      b: 0.25,
    });
  });

  it('the share of a revision is 0 without an endpoint of every role', () => {
    expect(shares({ a: { prefill: 2, decode: 2 }, b: { decode: 5 } }, 'max-role')).toEqual({ a: 1, b: 0 });
    expect(shares({ a: { prefill: 2 } }, 'sum')).toEqual({ a: 0 });
    expect(shares({}, 'sum')).toEqual({});
  });

  it('the share of a revision adds up to 1 whenever one revision is complete, and draws follow it', () => {
    const role = fc.nat({ max: 20 });
    const revisions = fc.dictionary(fc.string({ minLength: 1 }), fc.record({ prefill: role, decode: role }), {
      maxKeys: 8,
    });
    fc.assert(
      fc.property(
        revisions,
        fc.constantFrom('sum' as const, 'max-role' as const),
        fc.double({ min: 0, max: 0.999_999, noNaN: true }),
        (given, mode, draw) => {
          const all = revisionShares(counts(given), ['prefill', 'decode'], mode);
          const complete = Object.values(given).some(({ prefill, decode }) => prefill > 0 && decode > 0);
          const sum = [...all.values()].reduce((total, share) => total + share, 0);
          expect(sum).toBeCloseTo(complete ? 1 : 0, 9);
          const drawn = drawRevision(all, draw);
          if (complete) expect(all.get(drawn!)).toBeGreaterThan(0);
          else expect(drawn).toBeUndefined();
        },
      ),
    );
  });
});

describe('a label selector as text', () => {
  it.each([
    ['a=b', [{ key: 'a', operator: 'In', values: ['b'] }]],
    ['a == b', [{ key: 'a', operator: 'In', values: ['b'] }]],
    ['a!=b', [{ key: 'a', operator: 'NotIn', values: ['b'] }]],
    [
      'x.io/a in (b, c),!d',
      [
        { key: 'x.io/a', operator: 'In', values: ['b', 'c'] },
        { key: 'd', operator: 'DoesNotExist', values: [] },
      ],
    ],
    [
      'a notin (b),c',
      [
        { key: 'a', operator: 'NotIn', values: ['b'] },
        { key: 'c', operator: 'Exists', values: [] },
      ],
    ],
  ])('%s', (text, expected) => {
    expect(parseSelector(text).matchExpressions).toEqual(expected);
  });

  it.each(['a in', 'a in (b', '=b', 'a=b=c', 'a,,b', 'a b', '', 'a=$'])('%s is refused', (text) => {
    expect(() => parseSelector(text)).toThrow(/is no rule of a label selector/);
  });
});

const gating = (mode: string) => ({ mode, requireRoles: { values: ['prefill', 'decode'] } });
const strict = { name: 'revision', headerName: 'X-Disagg-Revision', labelKey: REVISION, mode: 'strict' };

function rollout(labels: readonly Record<string, string>[], parameters: object = {}, random = 0.5): HookPool {
  const given = { scope: { labelSelector: 'app=llm' }, revisionGating: gating('max-role'), ...parameters };
  const pool = new HookPool(
    [{ definition: disaggregatedsetRolloutScreener, parameters: given }],
    idle(labels.length),
    labels,
  );
  pool.random = random;
  return pool;
}

const revisions = (pool: HookPool, asked = {}) =>
  [
    ...new Set(
      pool.picks(asked, 60).map((name) => (name.startsWith('pod-') ? ROLLOUT[Number(name.slice(4))]![REVISION] : name)),
    ),
  ].join();

describe('disaggregatedset-rollout-screener', () => {
  it.each([
    [0.89, 'a'],
    [0.91, 'b'],
  ])('disaggregatedset-rollout-screener keeps one revision by its share: a draw of %d is %s', (draw, expected) => {
    expect(revisions(rollout(ROLLOUT, {}, draw))).toBe(expected);
  });

  it('disaggregatedset-rollout-screener refuses with 503 while no revision has every role', () => {
    expect(rollout(many(3, 'a', 'decode')).pick()).toBe('ServiceUnavailable');
  });

  it('disaggregatedset-rollout-screener counts only endpoints in its scope, and needs both labels', () => {
    const labels = [{ ...pod('a', 'decode'), app: 'other' }, pod('a', 'prefill'), { app: 'llm' }];
    expect(rollout(labels).pick()).toBe('ServiceUnavailable');
  });

  it('disaggregatedset-rollout-screener with one endpoint of each role takes that revision', () => {
    expect(rollout([pod('a', 'prefill'), pod('a', 'decode')]).picks()).toEqual(['pod-0', 'pod-1']);
  });

  it('disaggregatedset-rollout-screener counts the whole pool, and draws among what the request may use', () => {
    const pool = rollout(ROLLOUT, {}, 0);
    expect(pool.pick({ subset: ['10.0.0.12:8000'] })).toBe('pod-11');
  });

  it('disaggregatedset-rollout-screener goes where a strict header says, or nowhere', () => {
    const pool = rollout(ROLLOUT, { headerSelectors: [strict] }, 0);
    expect(revisions(pool, { headers: { 'x-disagg-revision': 'b' } })).toBe('b');
    expect(pool.counted).toEqual([]);
    expect(pool.pick({ headers: { 'x-disagg-revision': 'c' } })).toBe('ServiceUnavailable');
    expect(pool.counted).toEqual([
      'disaggregatedset_strict_header_no_match{disaggregatedset-rollout-screener,revision}',
    ]);
  });

  it('a revision that lacks a role is not to be had by a header either', () => {
    const pool = rollout([...ROLLOUT, pod('c', 'decode')], { headerSelectors: [strict] });
    expect(pool.pick({ headers: { 'x-disagg-revision': 'c' } })).toBe('ServiceUnavailable');
  });

  it('disabled keeps all, but for a strict header', () => {
    const pool = rollout(ROLLOUT, { revisionGating: { mode: 'disabled' }, headerSelectors: [strict] });
    expect(revisions(pool)).toBe('a,b');
    expect(revisions(pool, { headers: { 'x-disagg-revision': 'b' } })).toBe('b');
  });

  it('disaggregatedset-rollout-screener answers with the labels of the endpoint that served, those of prefer rules too', () => {
    const slice = { name: 'slice', headerName: 'x-slice', labelKey: 'slice', mode: 'prefer' };
    const labels = ROLLOUT.map((each) => ({ ...each, slice: 'one' }));
    const pool = rollout(labels, { headerSelectors: [strict, slice] }, 0.95);
    const request = pool.begin({ headers: { 'x-slice': 'two' } });
    const placement = pool.schedule({}, request);
    if (placement.kind !== 'placed') throw new Error('not placed');
    const head = { status: 200, headers: new Map(), served: undefined };
    expect(Object.fromEntries(pool.plugins.responseHeaders(request, placement, head))).toEqual({
      'x-disagg-revision': 'b',
      'x-slice': 'one',
    });
  });

  it('disaggregatedset-rollout-screener works the shares out again when an endpoint has come', () => {
    const pool = rollout(ROLLOUT.slice(0, 12), {}, 0.95);
    expect(revisions(pool)).toBe('a');
    const endpoint = {
      id: 'default/pod-12',
      name: 'pod-12',
      namespace: 'default',
      address: '10.0.0.13',
      port: 8000,
      labels: pod('b', 'decode'),
    };
    pool.pool.table.open(12, 1);
    pool.pool.table.setState(12, 'live');
    pool.directory.apply([{ slot: 12, generation: 1, endpoint }], []);
    expect(revisions(pool)).toBe('b');
  });

  it.each([
    [{ revisionGating: gating('sum') }, 'scope'],
    [{ scope: { labelSelector: 'a in' }, revisionGating: gating('sum') }, 'scope.labelSelector'],
    [{ scope: { labelSelector: 'a' } }, 'revisionGating'],
    [{ scope: { labelSelector: 'a' }, revisionGating: { mode: 'other' } }, 'revisionGating.mode'],
    [{ scope: { labelSelector: 'a' }, revisionGating: { mode: 'sum' } }, 'revisionGating.requiredRoles'],
    [
      { scope: { labelSelector: 'a' }, revisionGating: { mode: 'sum', requiredRoles: ['x', 'x'] } },
      'revisionGating.requiredRoles',
    ],
    [
      { scope: { labelSelector: 'a' }, revisionGating: { ...gating('sum'), requiredRoles: ['prefill'] } },
      'revisionGating.requireRoles',
    ],
    [
      { scope: { labelSelector: 'a' }, revisionGating: { mode: 'sum', requireRoles: { values: ['x', 'x'] } } },
      'revisionGating.requireRoles.values',
    ],
    [
      { scope: { labelSelector: 'a' }, revisionGating: { mode: 'disabled' }, headerSelectors: [strict, strict] },
      'headerSelectors',
    ],
  ])('disaggregatedset-rollout-screener refuses %j at %s', (parameters, field) => {
    const { error } = disaggregatedsetRolloutScreener.parameters.safeParse(parameters);
    expect(error?.issues.map(({ path }) => path.join('.'))).toContain(field);
  });
});

/** The parameters of llm-d-router from September 2026 on. */
const GATING = { mode: 'max-role', requiredRoles: ['prefill', 'decode'] };
const answered = (pool: HookPool) => {
  const request = pool.begin();
  const placement = pool.schedule({}, request);
  if (placement.kind !== 'placed') throw new Error('not placed');
  const head = { status: 200, headers: new Map(), served: undefined };
  return Object.fromEntries(pool.plugins.responseHeaders(request, placement, head));
};

describe('disaggregatedset-rollout-screener with requiredRoles', () => {
  it.each([
    [0.89, 'a'],
    [0.91, 'b'],
  ])('requiredRoles divide the requests as requireRoles do: a draw of %d is %s', (draw, expected) => {
    expect(revisions(rollout(ROLLOUT, { revisionGating: GATING }, draw))).toBe(expected);
  });

  it('x-llm-d-disagg-revision names the revision of a request and of its answer', () => {
    const pool = rollout(ROLLOUT, { revisionGating: GATING }, 0);
    expect(revisions(pool, { headers: { 'x-llm-d-disagg-revision': 'b' } })).toBe('b');
    expect(answered(pool)).toEqual({ 'x-llm-d-disagg-revision': 'a' });
  });

  it('revisionHeaderName takes the place of x-llm-d-disagg-revision', () => {
    const pool = rollout(ROLLOUT, { revisionGating: { ...GATING, revisionHeaderName: 'X-Rev' } }, 0);
    expect(revisions(pool, { headers: { 'x-rev': 'b' } })).toBe('b');
    expect(revisions(pool, { headers: { 'x-llm-d-disagg-revision': 'b' } })).toBe('a');
    expect(answered(pool)).toEqual({ 'x-rev': 'a' });
  });

  it('a revision header that matches no endpoint is refused with 503 and counted without a selector', () => {
    const pool = rollout(ROLLOUT, { revisionGating: GATING });
    expect(pool.pick({ headers: { 'x-llm-d-disagg-revision': 'c' } })).toBe('ServiceUnavailable');
    expect(pool.counted).toEqual(['disaggregatedset_strict_revision_no_match{disaggregatedset-rollout-screener}']);
  });

  it('a revision that lacks a required role is refused by its header, and counted', () => {
    const pool = rollout([...ROLLOUT, pod('c', 'decode')], { revisionGating: GATING });
    expect(pool.pick({ headers: { 'x-llm-d-disagg-revision': 'c' } })).toBe('ServiceUnavailable');
    expect(pool.counted).toHaveLength(1);
  });

  it('the revision header binds with the mode disabled too', () => {
    const pool = rollout(ROLLOUT, { revisionGating: { mode: 'disabled' } });
    expect(revisions(pool)).toBe('a,b');
    expect(revisions(pool, { headers: { 'x-llm-d-disagg-revision': 'b' } })).toBe('b');
    expect(pool.pick({ headers: { 'x-llm-d-disagg-revision': 'c' } })).toBe('ServiceUnavailable');
  });

  const byId = (pool: HookPool, name: string) =>
    Array.from({ length: 500 }, (_, id) => ROLLOUT[Number(pool.pick({ headers: { [name]: `id-${id}` } }).slice(4))]!);

  it.each(['x-llm-d-revision-decision-id', 'x-request-id'])(
    'requests with one %s get one revision in every replica',
    (name) => {
      const here = byId(rollout(ROLLOUT, { revisionGating: GATING }, 0), name).map((labels) => labels[REVISION]);
      const there = byId(rollout(ROLLOUT, { revisionGating: GATING }, 0.99), name).map((labels) => labels[REVISION]);
      expect(there).toEqual(here);
    },
  );

  it('ids of decisions divide as the shares do', () => {
    const drawn = byId(rollout(ROLLOUT, { revisionGating: GATING }), 'x-request-id');
    const share = drawn.filter((labels) => labels[REVISION] === 'b').length / drawn.length;
    expect(share).toBeGreaterThan(0.06);
    expect(share).toBeLessThan(0.14);
  });

  it('the id of the decision goes before x-request-id', () => {
    const pool = rollout(ROLLOUT, { revisionGating: GATING });
    const ids = Array.from({ length: 40 }, (_, id) => `r-${id}`);
    const headers = (id: string) => ({ 'x-request-id': id, 'x-llm-d-revision-decision-id': 'one' });
    const drawn = ids.map((id) => ROLLOUT[Number(pool.pick({ headers: headers(id) }).slice(4))]![REVISION]);
    expect(new Set(drawn).size).toBe(1);
  });

  it.each([
    ['disableCoordination', { revisionGating: { ...GATING, disableCoordination: true } }],
    ['requireRoles', { revisionGating: gating('max-role') }],
    ['headerSelectors', { revisionGating: GATING, headerSelectors: [strict] }],
  ])('each request has a draw of its own with %s', (_form, parameters) => {
    const headers = { 'x-request-id': 'one', 'x-llm-d-revision-decision-id': 'one' };
    expect(revisions(rollout(ROLLOUT, parameters, 0), { headers })).toBe('a');
    expect(revisions(rollout(ROLLOUT, parameters, 0.99), { headers })).toBe('b');
  });
});
