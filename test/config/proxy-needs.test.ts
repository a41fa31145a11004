import { describe, expect, it } from 'vitest';
import { needsInWords, proxyNeeds, readsAnswerBodies } from '../../dist/src/config/proxy-needs.js';
import { load } from './configuration-text.ts';

const OFF = 'adaptation: {mode: off}\n';

/** A profile of these plugins and a picker; nothing is learned. */
function needsOf(...types: readonly string[]) {
  const all = [...types, 'max-score-picker'];
  const plugins = all.map((type) => `- type: ${type}\n`).join('');
  const references = all.map((type) => `  - pluginRef: ${type}\n`).join('');
  return proxyNeeds(
    load(`${OFF}plugins:\n${plugins}schedulingProfiles:\n- name: default\n  plugins:\n${references}`, true),
  );
}

describe('what decisions read of the proxy', () => {
  it('what decisions read of the proxy is headers and status for queues and sessions', () => {
    const needs = needsOf('queue-scorer', 'rendezvous-hash-scorer');
    expect(needsInWords(needs)).toEqual({
      request: 'its headers suffice',
      answer: 'status: failing endpoints are ejected',
    });
    expect(readsAnswerBodies(needs)).toBe(false);
  });

  it('what decisions read of the proxy is the prompt, and the status of answers, for a prefix cache', () => {
    const needs = needsOf('queue-scorer', 'prefix-cache-scorer');
    expect(needs.prompt).toEqual(['approx-prefix-cache-producer hashes it']);
    expect(needs.answer.map(({ part }) => part)).toEqual(['status']);
  });

  it('what decisions read of the proxy is the first token for scorers of prompt tokens in flight', () => {
    const needs = needsOf('token-load-scorer');
    expect(needs.answer).toEqual([
      { part: 'first token', why: 'token-load-scorer counts prompts until their first token' },
    ]);
    expect(readsAnswerBodies(needs)).toBe(true);
  });

  it('what decisions read of the proxy is every chunk for blocks of output, whatever else reads less', () => {
    const needs = needsOf('token-load-scorer', 'active-blocks-scorer');
    expect(needs.answer.map(({ part }) => part)).toEqual(['every chunk']);
  });

  it('what decisions read of the proxy is every chunk while costs are learned, also in shadow', () => {
    const needs = proxyNeeds(load('plugins:\n- type: queue-scorer\n'));
    expect(needs.answer).toEqual([{ part: 'every chunk', why: 'adaptation (shadow) learns the time of each token' }]);
  });

  it('what decisions read of the proxy is the first token and the prompt for flow control', () => {
    const needs = proxyNeeds(load(`${OFF}featureGates: [flowControl]\nplugins:\n- type: queue-scorer\n`));
    expect(needs.answer.map(({ part }) => part)).toEqual(['first token']);
    expect(needs.prompt).toContain('flow control counts its tokens and bytes');
  });

  const COUNTED = ['request body', 'first token'];
  it.each([
    {
      of: 'endpoint-attribute-filter on active-tokens',
      plugins: `- type: endpoint-attribute-filter
  parameters: {attribute: active-tokens, algorithm: {type: threshold, threshold: {operator: LessThan, value: 1000}}}`,
      needs: COUNTED,
    },
    {
      of: 'endpoint-attribute-filter on active-requests',
      plugins: `- type: endpoint-attribute-filter
  parameters: {attribute: active-requests, algorithm: {type: threshold, threshold: {operator: LessThan, value: 10}}}`,
      rest: 'schedulingProfiles: [{name: a, plugins: [{pluginRef: endpoint-attribute-filter}]}]',
      needs: ['headers', 'status'],
    },
    {
      of: 'endpoint-attribute-scorer on active-tokens',
      plugins: `- type: endpoint-attribute-scorer
  parameters: {attributeKey: active-tokens, algorithm: {type: linear_lower_is_better}}`,
      needs: COUNTED,
    },
    {
      of: 'concurrency-detector by tokens, as the detector',
      plugins: '- {type: concurrency-detector, parameters: {concurrencyMode: tokens}}\n- type: queue-scorer',
      rest:
        'saturationDetector: {pluginRef: concurrency-detector}\nschedulingProfiles: [{name: a, plugins: [{pluginRef: ' +
        'queue-scorer}]}]',
      needs: COUNTED,
    },
    {
      of: 'concurrency-detector by requests, as the detector',
      plugins: '- {type: concurrency-detector, parameters: {concurrencyMode: requests}}\n- type: queue-scorer',
      rest:
        'saturationDetector: {pluginRef: concurrency-detector}\nschedulingProfiles: [{name: a, plugins: [{pluginRef: ' +
        'queue-scorer}]}]',
      needs: ['headers', 'status'],
    },
    {
      of: 'concurrency-detector by requests, as a filter',
      plugins: '- {type: concurrency-detector, parameters: {concurrencyMode: requests}}',
      rest: 'schedulingProfiles: [{name: a, plugins: [{pluginRef: concurrency-detector}]}]',
      needs: ['headers', 'status'],
    },
    {
      of: 'concurrency-detector by both, as a filter',
      plugins: '- {type: concurrency-detector, parameters: {concurrencyMode: hybrid}}',
      needs: COUNTED,
    },
    { of: 'marginal-cost-scorer', plugins: '- type: marginal-cost-scorer', needs: COUNTED },
  ])('what decisions read of the proxy for $of is $needs', ({ plugins, rest = '', needs: expected }) => {
    const needs = proxyNeeds(load(`${OFF}plugins:\n${plugins}\n${rest}\n`, true));
    expect([needs.prompt.length > 0 ? 'request body' : 'headers', needs.answer[0]!.part]).toEqual(expected);
  });
});
