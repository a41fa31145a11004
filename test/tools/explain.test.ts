import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import type { Endpoint, PoolState } from '../../dist/src/contract/endpoint.js';
import type { ExplainedProfile, Explanation } from '../../dist/tools/explain/explained-request.js';
import { explain } from '../../dist/tools/explain/explanation.js';
import { explanationText } from '../../dist/tools/explain/explanation-text.js';
import { readSignals } from '../../dist/tools/explain/signals-file.js';
import { load } from '../config/configuration-text.ts';

function endpoint(name: string, host: number, labels: Record<string, string> = {}): Endpoint {
  return { id: `default/${name}`, name, namespace: 'default', address: `10.0.0.${host}`, port: 8000, labels };
}

const endpoints = [endpoint('a', 1), endpoint('b', 2), endpoint('c', 3, { 'llm-d.ai/role': 'prefill' })];
const pool: PoolState = { endpoints, objectives: new Map([['batch', -1]]), rewrites: [] };
/** 1,000 characters of content: 250 tokens and some for the role. */
const chat = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(1000) }] };

interface Given {
  readonly plugins: string;
  readonly signals?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly pool?: PoolState;
  readonly subset?: readonly string[];
}

function run(given: Given): Explanation {
  const here = given.pool ?? pool;
  return explain({
    configuration: load(given.plugins, true),
    registry: builtinPlugins,
    pool: here,
    states: readSignals(given.signals ?? '', 'signals.yaml', here.endpoints),
    headers: new Map(Object.entries({ ':path': '/v1/chat/completions', ...given.headers })),
    body: Buffer.from(JSON.stringify(given.body ?? chat)),
    subset: given.subset,
    seed: 1n,
  });
}

function profileOf(explanation: Explanation): ExplainedProfile {
  if (explanation.kind === 'rejected') throw new Error(explanation.message);
  return explanation.profiles[0]!;
}

describe('an explanation', () => {
  it('an explanation shows the raw signals, and unknown ones as such', () => {
    const explanation = run({
      plugins: 'plugins:\n- type: queue-scorer\n',
      signals:
        'a: {waitingRequests: 4, kvUsage: 0.5, inFlightRequests: 2, inFlightTokens: 90}\n' +
        'c: {inFlightRequests: 1, inFlightTokens: 1}',
    });
    if (explanation.kind === 'rejected') throw new Error(explanation.message);
    expect(explanation.signals[0]).toMatchObject({
      name: 'a',
      waitingRequests: 4,
      runningRequests: null,
      kvUsage: 0.5,
    });
    const text = explanationText(explanation);
    expect(text).toMatch(/^signals\n {2}endpoint +waiting +running +KV usage +in flight$/m);
    expect(text).toMatch(/^ {2}a +4 +unknown +0\.5 +2 with 90 tokens$/m);
    expect(text).toMatch(/^ {2}b +unknown +unknown +unknown +0 with 0 tokens$/m);
    expect(text).toMatch(/^ {2}c .* 1 with 1 token$/m);
  });

  it('an explanation has scores before their weights, the weighted total and the order of the picks', () => {
    const { endpoints: rows, scorers } = profileOf(
      run({
        plugins: `plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- {type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: queue-scorer, weight: 2}, {pluginRef: kv-cache-utilization-scorer}, \
{pluginRef: max-score-picker}]
`,
        signals:
          'a: {waitingRequests: 4, kvUsage: 0.5}\nb: {waitingRequests: 0, kvUsage: 0.75}\nc: {waitingRequests: 2, ' +
          'kvUsage: 0}',
      }),
    );
    expect(scorers).toEqual([
      { name: 'queue-scorer', weight: 2 },
      { name: 'kv-cache-utilization-scorer', weight: 1 },
    ]);
    expect(rows.map(({ scores }) => scores)).toEqual([
      { 'queue-scorer': 0, 'kv-cache-utilization-scorer': 0.5 },
      { 'queue-scorer': 1, 'kv-cache-utilization-scorer': 0.25 },
      { 'queue-scorer': 0.5, 'kv-cache-utilization-scorer': 1 },
    ]);
    expect(rows.map(({ total }) => total)).toEqual([0.5, 2.25, 2]);
    expect(rows.map(({ rank }) => rank)).toEqual([undefined, 1, 2]);
  });

  it('an explanation names the filter that took an endpoint out, and the subset', () => {
    const plugins = 'plugins:\n- type: decode-filter\n- type: queue-scorer\n';
    const { endpoints: rows } = profileOf(run({ plugins, subset: ['10.0.0.1', '10.0.0.3:8000'] }));
    expect(rows.map(({ removedBy }) => removedBy)).toEqual([undefined, 'subset', 'decode-filter']);
    expect(rows.map(({ rank }) => rank)).toEqual([1, undefined, undefined]);
  });

  it('an explanation counts what endpoints hold of the prompt and what is in flight to them', () => {
    const { endpoints: rows } = profileOf(
      run({
        plugins: 'plugins:\n- type: prefix-cache-scorer\n- type: active-request-scorer\n',
        signals: 'a: {cachedTokens: 130}\nb: {inFlightRequests: 4}\nc: {inFlightRequests: 1, cachedTokens: 64}',
      }),
    );
    // Blocks have 64 tokens; the prompt has four and a part.
    expect(rows.map(({ cachedTokens }) => cachedTokens)).toEqual([128, 0, 64]);
    expect(rows.map(({ scores }) => scores['active-request-scorer'])).toEqual([1, 0, 0.75]);
  });

  it('an explanation tells how many candidates share the highest total', () => {
    expect(profileOf(run({ plugins: 'plugins:\n- type: queue-scorer\n' })).best).toBe(3);
  });

  it('an explanation says that the filters left no endpoint', () => {
    const plugins =
      'plugins:\n- {type: label-selector-filter, parameters: {matchLabels: {gpu: none}}}\n- type: queue-scorer\n';
    const explanation = run({ plugins });
    expect(profileOf(explanation).status).toBe('filtered');
    expect(explanationText(explanation)).toContain(
      'no pick: the filter "label-selector-filter" leaves no endpoint (503)',
    );
  });

  it('an explanation follows objectives and rewrites', () => {
    const rewrites = [{ name: 'canary', models: ['m'], targets: [{ model: 'm-v2' }], age: 0 }];
    const explanation = run({
      plugins: 'plugins:\n- type: queue-scorer\n',
      pool: { ...pool, rewrites },
      headers: { 'x-llm-d-inference-objective': 'batch' },
      signals:
        'a: {waitingRequests: 9, kvUsage: 1}\nb: {waitingRequests: 9, kvUsage: 1}\nc: {waitingRequests: 9, kvUsage: 1}',
    });
    expect(explanation).toMatchObject({
      request: { model: 'm', targetModel: 'm-v2', rewriteRule: 'canary', priority: -1 },
      shed: true,
    });
    expect(explanationText(explanation)).toContain('model       m → m-v2 (rewrite rule "canary")');
  });

  it('an explanation of a body that cannot be read says so with the status', () => {
    const explanation = run({ plugins: 'plugins:\n- type: queue-scorer\n', body: { model: 'm' } });
    expect(explanation).toMatchObject({ kind: 'rejected', code: 'BadRequest', status: 400 });
    expect(explanationText(explanation)).toMatch(/^rejected with 400: /);
  });

  it('an explanation is the same at every run with the same seed', () => {
    const given = { plugins: 'plugins:\n- type: queue-scorer\n- type: random-picker\n' };
    expect(run(given)).toEqual(run(given));
  });
});

describe('a signals file', () => {
  it('a signals file may name endpoints with their namespace', () => {
    const [state] = readSignals('default/a: {waitingRequests: 3}', 'signals.yaml', endpoints);
    expect(state).toEqual({
      attributes: {},
      waitingRequests: 3,
      inFlightRequests: 0,
      inFlightTokens: 0,
      cachedTokens: 0,
    });
  });

  it('a signals file with an unknown endpoint is refused with its place and the nearest name', () => {
    const pooled = [endpoint('server-0', 1), endpoint('server-1', 2)];
    expect(() => readSignals('servr-0: {}', 'signals.yaml', pooled)).toThrow(
      'signals.yaml:1:1: servr-0: there is no such endpoint; did you mean "server-0"?',
    );
  });

  it('a signals file with a value out of range is refused', () => {
    expect(() => readSignals('a: {kvUsage: 2}', 'signals.yaml', endpoints)).toThrow(
      'signals.yaml:1:14: a.kvUsage: must be at most 1, got 2',
    );
    expect(() => readSignals('a: {inFlightRequests: 1001}', 'signals.yaml', endpoints)).toThrow(/must be at most 1000/);
  });
});

describe('an explanation of hook plugins, labels and attributes', () => {
  it('an explanation shows the scores of labels, attributes and hook plugins', () => {
    const labelled: PoolState = {
      ...pool,
      endpoints: [endpoint('a', 1, { slice: 'one' }), endpoint('b', 2, { slice: 'two' })],
    };
    const { endpoints: rows } = profileOf(
      run({
        pool: labelled,
        plugins: `plugins:
- {type: header-label-affinity-scorer, parameters: {headerName: X-Slice, labelKey: slice}}
- {type: session-affinity-scorer}
- {type: endpoint-attribute-scorer, parameters: {attributeKey: GPUUtilization, algorithm: \
{type: linear_lower_is_better, normalization: {fixedRange: {min: 0, max: 1}}}}}
`,
        headers: { 'x-slice': 'two', 'x-session-token': Buffer.from('default/a').toString('base64') },
        signals: 'a: {attributes: {GPUUtilization: 0.25}}',
      }),
    );
    expect(rows.map(({ scores }) => scores)).toEqual([
      { 'header-label-affinity-scorer': 0, 'session-affinity-scorer': 1, 'endpoint-attribute-scorer': 0.75 },
      { 'header-label-affinity-scorer': 1, 'session-affinity-scorer': 0, 'endpoint-attribute-scorer': 0 },
    ]);
  });

  it('an explanation names hook filters and screeners that took an endpoint out', () => {
    const roles = (role: string) => ({
      'disaggregatedset.x-k8s.io/revision': role === 'x' ? 'b' : 'a',
      'disaggregatedset.x-k8s.io/role': role,
    });
    const plugins = `plugins:
- {type: header-based-testing-filter}
- type: disaggregatedset-rollout-screener
  parameters: {scope: {labelSelector: '!none'}, revisionGating: {mode: sum, requireRoles: {values: [p, d]}}}
`;
    const labelled = ['p', 'd', 'x'].map((role, i) => endpoint(role, i + 1, roles(role)));
    const { endpoints: rows } = profileOf(
      run({
        pool: { ...pool, endpoints: labelled },
        plugins,
        headers: { 'test-epp-endpoint-selection': '10.0.0.2' },
      }),
    );
    expect(rows.map(({ removedBy }) => removedBy)).toEqual(['header-based-testing-filter', undefined, 'screener']);
  });

  it('an explanation says what an admitter or a screener answers', () => {
    const admitter = run({
      plugins: 'plugins:\n- {type: probabilistic-admitter}\n',
      headers: { 'x-llm-d-inference-objective': 'batch' },
    });
    expect(admitter).toMatchObject({
      kind: 'rejected',
      status: 429,
      message: expect.stringContaining('system saturated'),
    });
    const screener = run({
      plugins:
        'plugins:\n- {type: disaggregatedset-rollout-screener, parameters: {scope: {labelSelector: a}, ' +
        'revisionGating: {mode: sum, requireRoles: {values: [p]}}}}\n',
    });
    expect(screener).toMatchObject({ kind: 'rejected', status: 503 });
  });

  it('an explanation names the flow that a header processor finds', () => {
    const explained = run({
      plugins: 'plugins:\n- {type: agent-identity}\n',
      headers: { 'x-claude-code-session-id': 'session-1' },
    });
    expect(explained).toMatchObject({ request: { fairnessId: 'session-1' } });
  });
});

describe('an explanation of several profiles', () => {
  const plugins = `plugins:
- type: decode-filter
- type: prefill-filter
- type: queue-scorer
- {type: prefix-based-pd-decider, parameters: {nonCachedTokens: 100}}
- {type: disagg-profile-handler, parameters: {deciders: {prefill: prefix-based-pd-decider}}}
schedulingProfiles:
- name: prefill
  plugins: [{pluginRef: prefill-filter}, {pluginRef: queue-scorer}]
- name: decode
  plugins: [{pluginRef: decode-filter}, {pluginRef: queue-scorer}]
`;

  it('several profiles run as their handler runs them, and it tells endpoint and headers of the request', () => {
    const explanation = run({ plugins });
    expect(explanation).toMatchObject({
      handler: { name: 'disagg-profile-handler', type: 'disagg-profile-handler' },
      outcome: {
        kind: 'placed',
        profile: 'decode',
        headers: { 'x-prefiller-host-port': '10.0.0.3:8000', 'x-encoder-hosts-ports': null },
      },
      profiles: [
        { name: 'decode', work: 'answer' },
        { name: 'prefill', work: 'prefill' },
      ],
    });
    const text = explanationText(explanation);
    expect(text).toContain('header      x-prefiller-host-port: 10.0.0.3:8000');
    expect(text).toContain('profile "prefill", for prefill\n');
  });

  it('an explanation of several profiles shows a profile that the handler does not run as such', () => {
    const explanation = run({ plugins, body: { model: 'm', messages: [{ role: 'user', content: 'short' }] } });
    if (explanation.kind === 'rejected') throw new Error(explanation.message);
    expect(explanation.profiles.map(({ name, work }) => [name, work])).toEqual([
      ['decode', 'answer'],
      ['prefill', undefined],
    ]);
    expect(explanationText(explanation)).toContain('profile "prefill", not run for this request');
  });

  it('an explanation of several profiles tells of a request that no profile can place', () => {
    const none = { ...pool, endpoints: [endpoints[2]!] };
    const explanation = run({ plugins, pool: none });
    expect(explanation).toMatchObject({ outcome: { kind: 'rejected', status: 503 } });
    expect(explanationText(explanation)).toContain('goes to     no endpoint:');
  });
});

describe('a file of signals', () => {
  it.each([
    ['a: {waitng: 3}', 'signals.yaml:1:5: a.waitng: unknown field "waitng"; did you mean "waitingRequests"?'],
    ['a: {kvUsge: 1}', 'signals.yaml:1:5: a.kvUsge: unknown field "kvUsge"; did you mean "kvUsage"?'],
    [
      'a: {loraAdapters: {runing: [x]}}',
      'signals.yaml:1:20: a.loraAdapters.runing: unknown field "runing"; did you mean "running"?',
    ],
    ['a: {loraAdapters: {running: [x]}}', 'signals.yaml:1:19: a.loraAdapters.max: is required'],
    ['endpoints: {a: {kvUsage: 1}}', 'signals.yaml:1:1: endpoints: there is no such endpoint; known: a, b, c'],
  ])('a file of signals with %s is refused with what was meant', (text, message) => {
    expect(() => readSignals(text, 'signals.yaml', endpoints)).toThrow(message);
  });
});
