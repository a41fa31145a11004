import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { planReload } from '../../dist/src/config/reload.js';
import { load } from './configuration-text.ts';

const BASE = 'plugins:\n- type: queue-scorer\n- type: prefix-cache-scorer\n';
const plan = (before: string, after: string) => planReload(load(before), load(after), builtinPlugins);

describe('a running picker takes over', () => {
  it.each([
    [
      'other scorers, weights and pickers',
      'plugins:\n- type: kv-cache-utilization-scorer\n- type: prefix-cache-scorer\n- type: random-picker\n',
    ],
    ['filters', `${BASE}- {type: label-selector-filter, parameters: {matchLabels: {a: b}}}\n`],
    ['parsers', `${BASE}requestHandler: {parsers: [{pluginRef: openai-parser}]}\n`],
    [
      'another saturation detector',
      `${BASE}- type: concurrency-detector\nflowControl: {saturationDetector: {pluginRef: concurrency-detector}}\n`,
    ],
    [
      'caps of the prefix index',
      `${BASE}- {type: approx-prefix-cache-producer, parameters: {lruCapacityPerServer: 5, autoTune: false, ` +
        'maxPrefixTokensToMatch: 640}}\n',
    ],
    ['output estimates', `${BASE}- {type: inflight-load-producer, parameters: {addEstimatedOutputTokens: true}}\n`],
    ['no prefix matches any more', 'plugins:\n- type: queue-scorer\n'],
    [
      'another name of the one profile',
      `${BASE}schedulingProfiles:\n- name: other\n  plugins: [{pluginRef: queue-scorer}, {pluginRef: ` +
        'prefix-cache-scorer}]\n',
    ],
  ])('%s', (_what, after) => {
    expect(plan(BASE, after)).toEqual({ changed: true, restart: [] });
  });

  it.each([
    [
      'limits, times to live and bands',
      'flowControl: {maxRequests: 9, defaultRequestTTL: 3s, priorityBands: [{priority: 3}]}\n',
    ],
    [
      'policies of queues',
      '- {type: start-time-fairness-policy, parameters: {weights: {gold: 4}}}\n- type: edf-ordering-policy\n' +
        '- {type: static-usage-limit-policy, parameters: {threshold: 0.9}}\n' +
        'flowControl: {usageLimitPolicyPluginRef: static-usage-limit-policy, priorityBands: ' +
        '[{priority: 0, fairnessPolicyRef: start-time-fairness-policy, orderingPolicyRef: edf-ordering-policy}]}\n',
    ],
    ['what tenants may use', 'flowControl: {tenantLimits: [{fairnessId: a, tokensPerSecond: 1, burstTokens: 1}]}\n'],
  ])('%s, while flow control is on', (_what, section) => {
    const gate = 'featureGates: [flowControl]\n';
    expect(plan(gate + BASE, gate + BASE + section)).toEqual({ changed: true, restart: [] });
  });

  it('nothing when only comments and order of fields differ', () => {
    expect(plan(BASE, `# a comment\n${BASE}featureGates: []\n`)).toEqual({ changed: false, restart: [] });
  });
});

describe('a restart is needed for', () => {
  it.each([
    [
      'discovery',
      `${BASE}- {type: file-discovery, parameters: {path: eps.yaml}}\ndataLayer: {discovery: {pluginRef: ` +
        'file-discovery}}\n',
      ['plugin "file-discovery" (file-discovery) is new', 'dataLayer.discovery has changed'],
    ],
    [
      'where metrics come from',
      (
        `${BASE}- {type: metrics-data-source, parameters: {path: /m}}\ndataLayer: {sources: [{pluginRef: ` +
        'metrics-data-source, extractors: [{pluginRef: core-metrics-extractor}]}]}\n'
      ).replace('plugins:\n', 'plugins:\n- type: core-metrics-extractor\n'),
      ['plugin "metrics-data-source" (metrics-data-source) has changed', 'dataLayer.sources has changed'],
    ],
    [
      'feature gates',
      `${BASE}featureGates: [haPopulateNonLeaderDatastore=false]\n`,
      ['feature gate haPopulateNonLeaderDatastore has been turned off'],
    ],
    [
      'flow control',
      `${BASE}featureGates: [flowControl]\nflowControl: {maxRequests: 9}\n`,
      ['feature gate flowControl has been turned on'],
    ],
    [
      'the size of prefix blocks',
      `${BASE}- {type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 128}}\n`,
      ['the size of prefix blocks has changed'],
    ],
    [
      'plugins that run on the shards',
      `${BASE}- {type: session-id-producer, parameters: {headerName: x-session}}\n`,
      ['plugins that run on the shards have changed'],
    ],
  ])('%s', (_what, after, restart) => {
    expect(plan(BASE, after)).toEqual({ changed: true, restart });
  });

  it('labels and headers that the programs have not looked at before', () => {
    const { restart } = plan(BASE, `${BASE}- type: rendezvous-hash-scorer\n`);
    expect(restart).toEqual(['plugins that run on the shards have changed']);
    expect(plan(`${BASE}- type: rendezvous-hash-scorer\n`, `${BASE}- type: consistent-hash-scorer\n`).restart).toEqual(
      [],
    );
    const label = (name: string) => `${BASE}- {type: context-length-aware, parameters: {label: ${name}}}\n`;
    expect(plan(label('one'), label('two')).restart).toHaveLength(1);
  });

  it('parts of the compiled scheduling that it does not know', () => {
    const running = load(BASE);
    const next = { ...running, scheduling: { ...running.scheduling, another: 1 } };
    expect(planReload(running, next, builtinPlugins).restart).toEqual(['plugins that run on the shards have changed']);
  });
});
