import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import type { KvEventSettings } from '../../dist/src/contract/kv-event-settings.js';

const load = (plugins: string, profile = 'prefix-cache-scorer') =>
  loadConfiguration(
    {
      text:
        `apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins: [${plugins}]\nschedulingProfiles: ` +
        `[{name: p, plugins: [{pluginRef: ${profile}}]}]\n`,
    },
    { allowExperimental: false, registry: builtinPlugins },
  );
const SCORER = '{type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}';
const TOKENS = '{type: token-producer, parameters: {modelName: m}}';
const producer = (parameters: string) =>
  load(`${TOKENS}, {type: precise-prefix-cache-producer, parameters: ${parameters}}, ${SCORER}`);

describe('precise-prefix-cache-producer', () => {
  it('precise-prefix-cache-producer follows every endpoint on port 5557, in blocks of 16 tokens', () => {
    const { scheduling, warnings } = producer('{}');
    const expected: KvEventSettings = {
      bind: undefined,
      connect: { port: 5557, replayPort: undefined },
      topicFilter: 'kv@',
      model: undefined,
      selector: undefined,
      namespace: undefined,
      speculativeTtlMs: undefined,
      tierPrices: { host: expect.closeTo(0.2) as number, disk: 0.5, remote: 0.5 },
      givenTiers: [],
    };
    expect(scheduling.kvEvents).toEqual(expected);
    expect(scheduling.prefix).toMatchObject({ blockTokens: 16, capacityBlocks: 0, autoTune: false, knownBy: 'events' });
    expect(scheduling.prefixProducer?.type).toBe('precise-prefix-cache-producer');
    expect(warnings).toEqual([]);
  });

  it('precise-prefix-cache-producer takes all of its parameters', () => {
    const { scheduling } = producer(
      '{tokenProcessorConfig: {blockSizeTokens: 64, hashSeed: "42", hashAlgorithm: xxh64}, speculativeIndexing: ' +
        'true, speculativeTTL: 3s, ' +
        ('kvEventsConfig: {discoverPods: true, topicFilter: "", concurrency: 32, engineType: sglang, zmqEndpoint: ' +
          '"tcp://*:5600", modelName: base, ') +
        ('podDiscoveryConfig: {podLabelSelector: "a=b, c in (d, e)", podNamespace: llm, socketPort: 6000, ' +
          'replaySocketPort: 6100}}}'),
    );
    expect(scheduling.kvEvents).toEqual({
      bind: 'tcp://*:5600',
      connect: { port: 6000, replayPort: 6100 },
      topicFilter: '',
      model: 'base',
      selector: {
        matchLabels: {},
        matchExpressions: [
          { key: 'a', operator: 'In', values: ['b'] },
          { key: 'c', operator: 'In', values: ['d', 'e'] },
        ],
      },
      namespace: 'llm',
      speculativeTtlMs: 3_000,
      tierPrices: { host: expect.closeTo(0.2), disk: 0.5, remote: 0.5 },
      givenTiers: [],
    });
    expect(scheduling.prefix).toMatchObject({ blockTokens: 64, knownBy: 'events and decisions' });
  });

  it.each([
    ['[{name: gpu, weight: 1.0}, {name: cpu, weight: 0.6}]', { host: 0.4, disk: 0.5, remote: 0.5 }, ['host']],
    [
      '[{name: gpu, weight: 2}, {name: cpu, weight: 3}, {name: storage, weight: 0}]',
      { host: 0, disk: 1, remote: 0.75 },
      ['host', 'disk'],
    ],
    ['[{name: EXTERNAL, weight: 0.9}]', { host: 0.2, disk: 0.5, remote: 0.1 }, ['remote']],
  ])('precise-prefix-cache-producer weighs tiers by %s', (list, prices, given) => {
    const { scheduling, warnings } = producer(`{indexerConfig: {kvCacheBackendConfigs: ${list}}}`);
    for (const [place, price] of Object.entries(prices)) {
      expect(scheduling.kvEvents?.tierPrices).toHaveProperty(place, expect.closeTo(price));
    }
    expect(scheduling.kvEvents?.givenTiers).toEqual(given);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['{tokenProcessorConfig: {blockSize: 32}}', 32],
    ['{tokenProcessorConfig: {blockSize: 32, blockSizeTokens: 8}}', 8],
    ['{tokenProcessorConfig: {blockSizeTokens: 0}}', 16],
  ])('%s has blocks of %i tokens', (parameters, tokens) => {
    expect(producer(parameters).scheduling.prefix?.blockTokens).toBe(tokens);
  });

  it('precise-prefix-cache-producer sets up the index before any approximate producer', () => {
    const { scheduling, warnings } = load(
      `${TOKENS}, {type: approx-prefix-cache-producer}, {type: precise-prefix-cache-producer}, ${SCORER}`,
    );
    expect(scheduling.prefix?.blockTokens).toBe(16);
    expect(warnings).toEqual([
      expect.stringContaining('the parameters of "approx-prefix-cache-producer" have no effect'),
    ]);
  });

  it.each([
    ['{indexerConfig: {kvBlockIndexConfig: {redisConfig: {address: "redis://x"}}}}', 'redisConfig is not served'],
    ['{kvEventsConfig: {discoverPods: false}}', 'no events can come'],
    ['{tokenProcessorConfig: {blockSize: 32}}', 'blockSize is deprecated'],
  ])('precise-prefix-cache-producer says what %s does', (parameters, warning) => {
    expect(producer(parameters).warnings).toEqual([expect.stringContaining(warning)]);
  });

  it.each([
    ['{tokenProcessorConfig: {blockSizeTokens: -1}}', 'blockSizeTokens'],
    ['{tokenProcessorConfig: {hashAlgorithm: sha}}', 'hashAlgorithm'],
    ['{indexerConfig: {kvCacheBackendConfigs: [{name: gpu, weight: 0}]}}', 'the weight of gpu must be above 0'],
    ['{indexerConfig: {kvCacheBackendConfigs: [{name: cpu, weight: -1}]}}', 'weight'],
    ['{kvEventsConfig: {engineType: x}}', 'engineType'],
    ['{kvEventsConfig: {podDiscoveryConfig: {podLabelSelector: "!!"}}}', 'is no rule of a label selector'],
    ['{speculativeIndexing: true, speculativeTTL: soon}', 'duration'],
    ['{indexerConfig: {tokenizersPoolConfig: {}}}', 'tokenizersPoolConfig'],
  ])('precise-prefix-cache-producer refuses %s', (parameters, message) => {
    expect(() => producer(parameters)).toThrow(message);
  });

  it('precise-prefix-cache-producer warns when tokens are only estimated', () => {
    const { warnings } = load(`{type: precise-prefix-cache-producer}, ${SCORER}`);
    expect(warnings).toEqual([expect.stringContaining('only prompts that bring token ids will match')]);
  });
});

it('precise-prefix-cache-scorer is producer and scorer in one', () => {
  const { scheduling, warnings } = load(
    `${TOKENS}, {type: precise-prefix-cache-scorer, parameters: {indexerConfig: {tokenizersPoolConfig: {modelName: ` +
      'm}}}}',
    'precise-prefix-cache-scorer, weight: 3',
  );
  expect(scheduling.kvEvents?.connect?.port).toBe(5557);
  expect(scheduling.profiles[0]?.operations[0]).toEqual({
    code: 'OP_SCORE_PREFIX',
    name: 'precise-prefix-cache-scorer',
    weight: 3,
    parameters: [0, 8192, 16],
  });
  expect(warnings).toEqual([
    expect.stringContaining('deprecated'),
    expect.stringContaining('tokenizersPoolConfig is deprecated and not served'),
  ]);
});
