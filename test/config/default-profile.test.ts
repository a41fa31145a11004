import { describe, expect, it } from 'vitest';
import { load } from './configuration-text.ts';

/** Scorers of the only profile with their weights, and its picker. */
function profileOf(text: string): readonly (readonly [string, number])[] {
  const { profiles } = load(text).scheduling;
  expect(profiles.map(({ name }) => name)).toEqual(['default']);
  return profiles[0]!.operations
    .filter(({ code }) => code.startsWith('OP_SCORE') || code.startsWith('OP_PICK'))
    .map(({ name, weight }) => [name, weight] as const);
}

const DEFAULT = [
  ['queue-scorer', 2],
  ['kv-cache-utilization-scorer', 2],
  ['prefix-cache-scorer', 3],
  ['max-score-picker', expect.any(Number)],
];

describe('a configuration without schedulingProfiles', () => {
  it.each([
    ['a feature gate alone', 'featureGates: [flowControl]\n'],
    ['an empty list of plugins', 'plugins: []\n'],
  ])(
    'the profile of %s has the scorers and weights of the configuration that is used without a file',
    (_what, text) => {
      expect(profileOf(text)).toEqual(DEFAULT);
    },
  );

  it.each([
    ['discovery', 'plugins: [{type: file-discovery, parameters: {path: endpoints.yaml}}]\n'],
    ['a detector', 'plugins: [{type: utilization-detector}]\nfeatureGates: [flowControl]\n'],
    ['a filter', 'plugins: [{type: decode-filter}]\n'],
  ])('the profile of a configuration that names %s alone has no scorer, as in llm-d-router', (_what, text) => {
    expect(profileOf(text).map(([name]) => name)).toEqual(['max-score-picker']);
  });

  it.each([
    ['discovery alone', 'plugins: [{type: file-discovery, parameters: {path: endpoints.yaml}}]\n', 1],
    ['a scorer', 'plugins: [{type: queue-scorer}]\n', 0],
    ['a picker that goes by no scores', 'plugins: [{type: random-picker}]\n', 0],
    ['no plugin', 'featureGates: [flowControl]\n', 0],
  ])('the load of a configuration with %s warns of random picks as it should', (_what, text, count) => {
    expect(load(text).randomPicks).toHaveLength(count);
  });

  it('the profile of a filter alone holds that filter', () => {
    const [profile] = load('plugins: [{type: decode-filter}]\n').scheduling.profiles;
    expect(profile!.operations[0]!.name).toBe('decode-filter');
  });

  it('the profile of a configuration with a scorer has that one, with weight 1, and no other', () => {
    expect(profileOf('plugins: [{type: queue-scorer}]\n')).toEqual([
      ['queue-scorer', 1],
      ['max-score-picker', expect.any(Number)],
    ]);
  });

  it('the profile of a configuration with a picker has no scorer: its author chose random picks', () => {
    expect(profileOf('plugins: [{type: random-picker}]\n').map(([name]) => name)).toEqual(['random-picker']);
  });

  it('the effective configuration writes the scorers out, and loads to the same', () => {
    const { effective } = load('featureGates: [flowControl]\n');
    expect(effective.schedulingProfiles).toMatchObject([
      { plugins: [{ pluginRef: 'queue-scorer', weight: 2 }, {}, { pluginRef: 'prefix-cache-scorer', weight: 3 }, {}] },
    ]);
  });
});
