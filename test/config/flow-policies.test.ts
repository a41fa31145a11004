import { describe, expect, it } from 'vitest';
import type { FlowControlSettings } from '../../dist/src/contract/queue-settings.js';
import { load, refusal } from './configuration-text.js';

const on = (section: string, plugins = '') =>
  `featureGates: [flowControl]\nplugins: [${plugins}]\nflowControl: ${section}`;

function settings(section: string, plugins = ''): FlowControlSettings {
  return load(on(section, plugins), true).flowControl!;
}

const band = (references: string) => `{priorityBands: [{priority: 3, ${references}}]}`;

describe('the settings of the queues', () => {
  it('the settings of the queues are undefined while the feature gate is off', () => {
    expect(load('flowControl: {maxBytes: 1Gi}').flowControl).toBeUndefined();
  });

  it('the bounds of the queues are those of llm-d-router unless the section sets them', () => {
    expect(settings('{priorityBands: [{priority: 3}]}')).toEqual({
      limits: { requests: Infinity, bytes: Infinity, tokens: Infinity },
      ttlMs: 60_000,
      noEndpointTtlMs: 60_000,
      maxExpectedWaitMs: Infinity,
      bands: [
        {
          priority: 3,
          limits: { requests: 5_000, bytes: 1e9, tokens: Infinity, tokensByRate: true },
          fairness: { kind: 'global-strict' },
          ordering: { kind: 'arrival' },
        },
      ],
      template: undefined,
      negativeTemplate: undefined,
      fallback: {
        limits: { requests: 5_000, bytes: 1e9, tokens: Infinity, tokensByRate: true },
        fairness: { kind: 'global-strict' },
        ordering: { kind: 'arrival' },
      },
      usageLimit: { kind: 'static', threshold: 1 },
      tenantLimits: [],
      replicas: 1,
      enableEviction: false,
      sessions: { mode: 'shadow', smallPrompt: 0.02, stretch: 0.06, maxWaitMs: 300_000 },
    });
  });

  it('the settings of the queues are limits in requests, bytes and tokens, of all bands and of each', () => {
    const section =
      '{maxRequests: 1k, maxBytes: 1Gi, maxTokens: 2M, ' +
      'priorityBands: [{priority: 1, maxRequests: 10, maxBytes: 5Ki, maxTokens: 300}]}';
    const { limits, bands } = settings(section);
    expect([limits, bands[0]!.limits]).toEqual([
      { requests: 1_000, bytes: 2 ** 30, tokens: 2e6 },
      { requests: 10, bytes: 5_120, tokens: 300, tokensByRate: false },
    ]);
  });

  it('the settings of the queues are waits, of which 0 has no end', () => {
    const waits = (section: string) => {
      const { ttlMs, noEndpointTtlMs, maxExpectedWaitMs } = settings(section);
      return [ttlMs, noEndpointTtlMs, maxExpectedWaitMs];
    };
    expect(waits('{defaultRequestTTL: 10s}')).toEqual([10_000, 10_000, Infinity]);
    expect(waits('{defaultRequestTTL: 0s, noEndpointRequestTTL: 5m}')).toEqual([Infinity, 300_000, Infinity]);
    expect(waits('{maxExpectedWait: 1500ms, enableEviction: true}')).toEqual([60_000, 60_000, 1_500]);
  });

  it('the settings of the queues are templates for bands that come into being, when the section has them', () => {
    const { template, negativeTemplate } = settings(
      '{defaultPriorityBand: {maxRequests: 7}, defaultNegativePriorityBand: {maxRequests: 5}}',
    );
    expect([template!.limits.requests, negativeTemplate!.limits.requests]).toEqual([7, 5]);
  });

  it.each([
    ['{type: fcfs-ordering-policy}', 'fcfs-ordering-policy', { kind: 'arrival' }],
    ['{type: edf-ordering-policy}', 'edf-ordering-policy', { kind: 'deadline' }],
    ['{type: slo-deadline-ordering-policy}', 'slo-deadline-ordering-policy', { kind: 'first-token-objective' }],
    [
      '{type: shortest-first-ordering-policy}',
      'shortest-first-ordering-policy',
      { kind: 'shortest-first', msPerToken: 15, ageBoundMs: 30_000 },
    ],
    [
      '{type: shortest-first-ordering-policy, name: short, parameters: {msPerToken: 2, ageBound: 5s}}',
      'short',
      { kind: 'shortest-first', msPerToken: 2, ageBoundMs: 5_000 },
    ],
  ])('the settings of the queues is the order of %s', (plugin, name, ordering) => {
    expect(settings(band(`orderingPolicyRef: ${name}`), plugin).bands[0]!.ordering).toEqual(ordering);
  });

  it.each([
    ['{type: round-robin-fairness-policy}', 'round-robin-fairness-policy', { kind: 'round-robin' }],
    [
      '{type: program-aware-fairness}',
      'program-aware-fairness',
      { kind: 'program-aware', serviceWeight: 0.8, headWaitWeight: 0.2, halfLifeMs: 60_000 },
    ],
    [
      '{type: program-aware-fairness, parameters: {lasHalfLifeSeconds: 0, lasWeightService: 1}}',
      'program-aware-fairness',
      { kind: 'program-aware', serviceWeight: 1, headWaitWeight: 0.2, halfLifeMs: Infinity },
    ],
    [
      '{type: program-aware-fairness, parameters: {strategy: turn-priority}}',
      'program-aware-fairness',
      { kind: 'turn-priority', timeWeight: 0.05, inactivityMs: 120_000, forgetMs: 3_600_000 },
    ],
    [
      '{type: program-aware-fairness, parameters: {strategy: turn-priority, turnPriorityTimeWeight: 0, ' +
        'turnPriorityInactivitySeconds: 0, evictionTtlSeconds: 0}}',
      'program-aware-fairness',
      { kind: 'turn-priority', timeWeight: 0, inactivityMs: Infinity, forgetMs: Infinity },
    ],
    [
      '{type: start-time-fairness-policy, parameters: {weights: {gold: 4}}}',
      'start-time-fairness-policy',
      { kind: 'start-time', weights: { gold: 4 } },
    ],
    [
      '{type: deficit-round-robin-fairness-policy}',
      'deficit-round-robin-fairness-policy',
      { kind: 'deficit-round-robin', weights: {}, quantumTokens: 2_048 },
    ],
  ])('the settings of the queues is the fairness of %s', (plugin, name, fairness) => {
    expect(settings(band(`fairnessPolicyRef: ${name}`), plugin).bands[0]!.fairness).toEqual(fairness);
  });

  it.each([
    [
      '{type: static-usage-limit-policy, parameters: {threshold: 0.7}}',
      'static-usage-limit-policy',
      { kind: 'static', threshold: 0.7 },
    ],
    [
      '{type: priority-holdback-policy, parameters: {minCeiling: 0.5, shape: linear, domain: value}}',
      'priority-holdback-policy',
      { kind: 'holdback', domain: 'value', minCeiling: 0.5, maxCeiling: 1 },
    ],
    ['{type: soft-reflective-ceiling-policy}', 'soft-reflective-ceiling-policy', { kind: 'soft-reflective' }],
  ])('the settings of the queues is the usage limit of %s', (plugin, name, limit) => {
    expect(settings(`{usageLimitPolicyPluginRef: ${name}}`, plugin).usageLimit).toEqual(limit);
  });

  it('the settings of the queues are shares where several pickers serve the pool: of endpoints, and of what tenants may use', () => {
    const tenants = 'tenantLimits: [{fairnessId: a, tokensPerSecond: 90, burstTokens: 300}]';
    expect(settings(`{replicas: 3, ${tenants}}`)).toMatchObject({
      replicas: 3,
      tenantLimits: [{ fairnessId: 'a', tokensPerSecond: 30, burstTokens: 100 }],
      limits: { requests: Infinity },
    });
  });

  it('the settings of the queues are fair flows also where the section says only how many pickers there are', () => {
    expect(settings('{replicas: 3}')!.template).toMatchObject({ fairness: { kind: 'start-time' } });
  });

  it('the settings of the queues are fair flows when a configuration turns the queues on and says nothing about them', () => {
    for (const section of ['', '\nflowControl: {saturationDetector: {pluginRef: utilization-detector}}']) {
      const { template, negativeTemplate } = load(`featureGates: [flowControl]${section}`).flowControl!;
      const fair = { kind: 'start-time', weights: {} };
      expect([template!.fairness, negativeTemplate!.fairness]).toEqual([fair, fair]);
    }
  });

  it.each([
    'featureGates: [flowControl]\n',
    on(
      '{maxTokens: 5k, maxExpectedWait: 5s, tenantLimits: [{fairnessId: "*", tokensPerSecond: 10, burstTokens: 100}]}',
    ),
    on('{defaultPriorityBand: {maxTokens: 9}, priorityBands: [{priority: -3, maxRequests: 2}]}'),
  ])('the settings of the queues are the same from the effective configuration of %j', (body) => {
    const first = load(body);
    const { apiVersion: _version, kind: _kind, ...rest } = first.effective;
    expect(load(toYaml(rest)).flowControl).toEqual(first.flowControl);
  });
});

/** JSON objects are YAML, one field a line. */
function toYaml(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([field, value]) => `${field}: ${JSON.stringify(value)}`)
    .join('\n');
}

describe('refused', () => {
  it.each([
    ['{maxTokens: -1}', '', 'flowControl.maxTokens: global MaxTokens must be non-negative, got -1'],
    ['{priorityBands: [{maxTokens: -1}]}', '', 'priority band 0 MaxTokens must be non-negative'],
    ['{maxExpectedWait: -1s}', '', 'flowControl.maxExpectedWait: MaxExpectedWait cannot be negative, got "-1s"'],
    [
      '{tenantLimits: [{fairnessId: a, tokensPerSecond: 1, burstTokens: 1}, {fairnessId: a, tokensPerSecond: 2, ' +
        'burstTokens: 1}]}',
      '',
      'flowControl.tenantLimits[1].fairnessId: "a" has an entry already',
    ],
    ['{tenantLimits: [{fairnessId: a, tokensPerSecond: 0, burstTokens: 1}]}', '', 'tenantLimits[0].tokensPerSecond'],
    [
      `{priorityBands: [${Array.from({ length: 25 }, (_, i) => `{priority: ${i}}`)}]}`,
      '',
      'there may be 24 bands, got 25',
    ],
    ['{}', '{type: program-aware-fairness, parameters: {strategy: drr}}', 'plugins[0].parameters.strategy'],
    ['{}', '{type: program-aware-fairness, parameters: {lasWeightService: -1}}', 'parameters.lasWeightService'],
    ['{}', '{type: program-aware-fairness, parameters: {turnPriorityTimeWeight: -1}}', 'turnPriorityTimeWeight'],
    [
      '{}',
      '{type: program-aware-fairness, parameters: {turnPriorityInactivitySeconds: -1}}',
      'turnPriorityInactivitySeconds',
    ],
    ['{}', '{type: start-time-fairness-policy, parameters: {weights: {a: 0}}}', 'parameters.weights.a'],
    ['{}', '{type: deficit-round-robin-fairness-policy, parameters: {quantumTokens: 0}}', 'parameters.quantumTokens'],
    ['{}', '{type: shortest-first-ordering-policy, parameters: {ageBound: -1s}}', 'parameters.ageBound'],
    ['{}', '{type: static-usage-limit-policy, parameters: {threshold: 1.5}}', 'parameters.threshold'],
    ['{}', '{type: soft-reflective-ceiling-policy}', 'Alpha stability level'],
    ['{priorityBands: [{fairnessPolicyRef: round-robin}]}', '', 'plugin "round-robin" is not defined'],
    ['{maxRequests: -1}', '', 'flowControl.maxRequests: global MaxRequests must be non-negative, got -1'],
    ['{maxBytes: lots}', '', 'flowControl.maxBytes: expected a quantity such as 1Gi, 500Mi, 1k or 1000, got "lots"'],
    ['{defaultNegativePriorityBand: {maxBytes: -1}}', '', 'flowControl.defaultNegativePriorityBand.maxBytes: '],
    ['{priorityBands: [{priority: 1}, {priority: 1}]}', '', 'priorityBands[1].priority: duplicate priority 1'],
    ['{priorityBands: [{}, {priority: 0}]}', '', 'priorityBands[1].priority: duplicate priority 0'],
    ['{priorityBands: [{priority: 1.5}]}', '', 'priorityBands[0].priority: expected a whole number, got 1.5'],
    ['{priorityBands: [{priority: 3000000000}]}', '', 'priorityBands[0].priority: must be at most 2147483647'],
    ['{priorityBands: [{priorty: 5}]}', '', 'unknown field "priorty"; did you mean "priority"?'],
    ['{priorityBands: [{orderingPolicyRef: fifo}]}', '', 'priorityBands[0].orderingPolicyRef: plugin "fifo" is not'],
    [
      '{defaultPriorityBand: {fairnessPolicyRef: fcfs-ordering-policy}}',
      '',
      'defaultPriorityBand.fairnessPolicyRef: plugin "fcfs-ordering-policy" is of kind ordering-policy, expected ' +
        'fairness-policy',
    ],
    ['{usageLimitPolicyPluginRef: mine}', '', 'flowControl.usageLimitPolicyPluginRef: plugin "mine" is not defined'],
    ['{saturationDetector: {pluginRef: mine}}', '', 'flowControl.saturationDetector.pluginRef: plugin "mine" is not'],
    ['{}', '{type: utilization-detector, parameters: {queueDepthThreshold: 0}}', 'queueDepthThreshold: utilization-'],
    ['{}', '{type: utilization-detector, parameters: {kvCacheUtilThreshold: 1.5}}', 'must be at most 1, got 1.5'],
    ['{}', '{type: concurrency-detector, parameters: {maxConcurrency: 0}}', 'must be at least 1, got 0'],
    [
      '{}',
      '{type: concurrency-detector, parameters: {concurrencyMode: both}}',
      'expected one of requests, tokens, hybrid',
    ],
    ['{defaultRequestTTL: soon}', '', 'defaultRequestTTL: expected a duration such as 50ms, 1.5s or 2m30s, got "soon"'],
    ['{noEndpointRequestTTL: -1s}', '', 'NoEndpointRequestTTL cannot be negative, got "-1s"'],
    ['{replicas: 0}', '', 'flowControl.replicas: must be at least 1, got 0'],
    ['{replicas: 1.5}', '', 'flowControl.replicas: expected a whole number, got 1.5'],
    ['{maxRequest: 5}', '', 'unknown field "maxRequest"; did you mean "maxRequests"?'],
    ['[]', '', 'flowControl: expected a mapping, got a list'],
  ])('a section of flow control is refused as %s with %s', (section, plugins, message) => {
    const text = refusal(on(section, plugins));
    expect(text).toContain(message);
    // Where: line and column.
    expect(text).toMatch(/^--config-text:\d+:\d+: /);
  });

  it.each([
    ['{type: priority-holdback-policy}', 'minCeiling'],
    [
      '{type: priority-holdback-policy, parameters: {minCeiling: 0.9, maxCeiling: 0.5}}',
      'must not be above maxCeiling',
    ],
    ['{type: priority-holdback-policy, parameters: {minCeiling: 1}}', 'minCeiling'],
    ['{type: priority-holdback-policy, parameters: {minCeiling: 0.5, shape: cubic}}', 'shape'],
    ['{type: soft-reflective-ceiling-policy, parameters: {x: 1}}', 'takes no parameters'],
  ])('a policy is refused %s', (plugin, message) => {
    expect(() => load(on('{}', plugin), true)).toThrow(message);
  });
});

describe('warnings', () => {
  it('warnings tell that a longest expected wait beyond the time to live does nothing', () => {
    const texts = (section: string) => load(on(section)).warnings.filter((text) => text.includes('maxExpectedWait'));
    expect(texts('{maxExpectedWait: 60s}')).toEqual([
      expect.stringContaining('flowControl.maxExpectedWait: has no effect: no request waits longer than'),
    ]);
    expect(texts('{maxExpectedWait: 59s}')).toEqual([]);
    expect(texts('{maxExpectedWait: 60s, defaultRequestTTL: 0s}')).toEqual([]);
  });
});
