import { describe, expect, it } from 'vitest';
import { compileScheduling, type ProfilePlugin } from '../../dist/src/scheduling/compile.js';
import type { ConfiguredPlugin } from '../../dist/src/scheduling/plugin.js';
import { schedulingPlugins } from '../../dist/src/scheduling/registry.js';

function plugin(type: string, parameters: Record<string, unknown> = {}, weight = 1): ProfilePlugin {
  const definition = schedulingPlugins.find((candidate) => candidate.type === type)!;
  return { name: `my-${type}`, definition, parameters: definition.parameters.parse(parameters), weight };
}

function operation(type: string, parameters: Record<string, unknown> = {}, producers: ConfiguredPlugin[] = []) {
  const { profiles } = compileScheduling([{ name: 'p', plugins: [plugin(type, parameters, 2)] }], producers);
  const { code, parameters: numbers } = profiles[0]!.operations[0]!;
  return [code, ...numbers];
}

describe('a plugin', () => {
  it.each([
    ['queue-scorer', {}, ['OP_SCORE_QUEUE']],
    ['running-requests-size-scorer', {}, ['OP_SCORE_RUNNING']],
    ['kv-cache-utilization-scorer', {}, ['OP_SCORE_KV_USAGE']],
    ['lora-affinity-scorer', {}, ['OP_SCORE_ADAPTER', 1]],
    ['lora-affinity-scorer', { rememberSent: false }, ['OP_SCORE_ADAPTER', 0]],
    ['load-aware-scorer', {}, ['OP_SCORE_LOAD_AWARE', 128]],
    ['load-aware-scorer', { threshold: 10 }, ['OP_SCORE_LOAD_AWARE', 10]],
    ['load-aware-scorer', { threshold: 0 }, ['OP_SCORE_LOAD_AWARE', 128]],
    ['active-request-scorer', {}, ['OP_SCORE_ACTIVE_REQUEST', 0, 1]],
    ['active-request-scorer', { idleThreshold: 3, maxBusyScore: 0.5 }, ['OP_SCORE_ACTIVE_REQUEST', 3, 0.5]],
    ['token-load-scorer', {}, ['OP_SCORE_TOKEN_LOAD', 4_194_304]],
    ['active-blocks-scorer', {}, ['OP_SCORE_ACTIVE_BLOCKS', 1, 0, 1, 0, 0]],
    ['active-blocks-scorer', { overlapWeight: 0, temperature: 0.5 }, ['OP_SCORE_ACTIVE_BLOCKS', 0, 0.5, 1, 0, 0]],
    [
      'active-blocks-scorer',
      { overlapCredit: 1.5, overlapCreditDecay: 0.5, countPrefillInFlight: true },
      ['OP_SCORE_ACTIVE_BLOCKS', 1, 0, 1.5, 0.5, 1],
    ],
    ['header-label-affinity-scorer', { headerName: 'X-Zone', labelKey: 'zone' }, ['OP_SCORE_HEADER_LABEL', 0, 0]],
    ['no-hit-lru-scorer', { lruSize: 0 }, ['OP_SCORE_NO_HIT_LRU', 1024]],
    ['context-length-aware', {}, ['OP_SCORE_CONTEXT_LENGTH', 0]],
    ['context-length-aware', { enableFiltering: true }, ['OP_FILTER_CONTEXT_LENGTH', 0]],
    ['rendezvous-hash-scorer', {}, ['OP_SCORE_RENDEZVOUS', 0, 0, 1.25]],
    ['consistent-hash-scorer', { loadFactor: 0 }, ['OP_SCORE_CONSISTENT_HASH', 0, 0, 0, 32]],
    ['cache-aware-scorer', {}, ['OP_SCORE_CACHE_AWARE', 0.3, 64, 1.5]],
    ['prefix-balance-scorer', {}, ['OP_SCORE_PREFIX_BALANCE', 16, 2]],
    ['exploit-explore-scorer', {}, ['OP_SCORE_EXPLOIT_EXPLORE', 300]],
    ['prefix-cache-affinity-filter', {}, ['OP_FILTER_PREFIX_AFFINITY', 0.8, 0, 18_000, 15_928]],
    ['sticky-until-saturated-filter', {}, ['OP_FILTER_STICKY', 0.8, 286_720]],
    ['warm-up-filter', {}, ['OP_FILTER_WARM_UP', 0.25, 256, 4096]],
    ['overload-filter', {}, ['OP_FILTER_OVERLOAD', -1, -1, 1, 1]],
    [
      'overload-filter',
      { maxWaiting: 8, maxKvCacheUsage: 0.9, fallbackOnEmpty: false },
      ['OP_FILTER_OVERLOAD', 8, 0.9, 1, 0],
    ],
    ['power-of-two-picker', {}, ['OP_PICK_BEST_OF', 1, 2]],
    [
      'utilization-filter',
      {
        conditions: [
          { metric: 'waiting-queue', maxValue: 3 },
          { metric: 'waiting-queue', maxValue: 2 },
        ],
      },
      ['OP_FILTER_UTILIZATION', Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 2, Number.POSITIVE_INFINITY, 0],
    ],
    [
      'endpoint-attribute-filter',
      { attribute: 'GPU', algorithm: { type: 'topK', topK: { k: 3, keep: 'highest' } }, onMissing: 'Fail' },
      ['OP_FILTER_LOWEST', 8, -1, 3, 0, 0, 0],
    ],
    [
      'endpoint-attribute-filter',
      { attribute: 'waiting-queue', algorithm: { type: 'range', range: { max: 3 } } },
      ['OP_FILTER_RANGE', 3, Number.NEGATIVE_INFINITY, 3, 1, 0],
    ],
    ['max-score-picker', {}, ['OP_PICK_MAX_SCORE', 1]],
    ['max-score-picker', { maxNumOfEndpoints: 3 }, ['OP_PICK_MAX_SCORE', 3, 1]],
    ['random-picker', { maxNumOfEndpoints: 0 }, ['OP_PICK_RANDOM', 1]],
    ['weighted-random-picker', { maxNumOfEndpoints: -2 }, ['OP_PICK_WEIGHTED_RANDOM', 1]],
  ])('%s with %j is %j', (type, parameters, expected) => {
    expect(operation(type, parameters)).toEqual(expected);
  });

  it('prefix-cache-scorer takes the block size of the producer', () => {
    const producer = plugin('approx-prefix-cache-producer', { blockSizeTokens: 128 });
    const parameters = { matchLengthWeight: 0.5, matchLengthScaleTokens: 256 };
    expect(operation('prefix-cache-scorer', parameters, [producer])).toEqual(['OP_SCORE_PREFIX', 0.5, 256, 128]);
  });

  it('a plugin has its weight only as a scorer', () => {
    const plugins = [plugin('queue-scorer', {}, 2), plugin('random-picker', {}, 2)];
    const { profiles } = compileScheduling([{ name: 'p', plugins }], []);
    expect(profiles[0]!.operations.map(({ weight }) => weight)).toEqual([2, 1]);
  });
});

describe('profiles', () => {
  it('profiles share the masks of equal label rules', () => {
    const selector = { matchLabels: { a: '1' } };
    const first = [plugin('decode-filter'), plugin('label-selector-filter', selector)];
    const second = [plugin('label-selector-filter', selector), plugin('prefill-filter')];
    const { profiles, masks } = compileScheduling(
      [
        { name: 'a', plugins: first },
        { name: 'b', plugins: second },
      ],
      [],
    );
    expect(profiles.map(({ operations }) => operations.map(({ parameters }) => parameters[0]))).toEqual([
      [0, 1],
      [1, 2],
    ]);
    expect(masks.map(({ accepts }) => accepts({ a: '1' }))).toEqual([true, true, false]);
  });

  it('profiles are refused when there are more than the core holds', () => {
    const profiles = Array.from({ length: 33 }, (_, index) => ({ name: `p${index}`, plugins: [] }));
    expect(() => compileScheduling(profiles, [])).toThrow('33 profiles, but at most 32 can be held');
  });
});

describe('the tables of a program', () => {
  it('the tables of a program shares request headers, whatever their case, and labels', () => {
    const zone = (headerName: string) => plugin('header-label-affinity-scorer', { headerName, labelKey: 'zone' });
    const plugins = [
      zone('X-Zone'),
      zone('x-zone'),
      plugin('rendezvous-hash-scorer'),
      plugin('consistent-hash-scorer'),
    ];
    const { requestKeys, labels } = compileScheduling([{ name: 'p', plugins }], []);
    expect(requestKeys).toEqual(['x-zone', 'x-session-id']);
    expect(labels.map(({ key }) => key)).toEqual(['text zone', 'address']);
  });

  it('an entry of the core tables is refused beyond the columns that the core has', () => {
    const plugins = Array.from({ length: 17 }, (_, i) => plugin('context-length-aware', { label: `l${i}` }));
    expect(() => compileScheduling([{ name: 'p', plugins }], [])).toThrow('more than 16 different labels');
  });

  it('the columns of hook filters and scorers of all profiles are bounded together', () => {
    const profile = (name: string, from: number, count: number) => ({
      name,
      plugins: Array.from({ length: count }, (_, i) => ({
        ...plugin('session-affinity-scorer'),
        name: `affinity-${from + i}`,
      })),
    });
    const columns = (profiles: readonly ReturnType<typeof profile>[]) => () => compileScheduling(profiles, []);
    expect(columns([profile('p', 0, 8), profile('q', 8, 8)])).not.toThrow();
    expect(columns([profile('p', 0, 8), profile('q', 8, 9)])).toThrow('more than 16 hook filters and scorers');
  });
});

describe('the prefix index', () => {
  const settings = (parameters: Record<string, unknown>) =>
    compileScheduling([], [plugin('approx-prefix-cache-producer', parameters)]).prefix;

  it('the prefix index is not needed without a producer', () => {
    expect(compileScheduling([], []).prefix).toBeUndefined();
  });

  it.each([
    [{}, { blockTokens: 64, maxBlocks: 2048, capacityBlocks: 31_250, autoTune: true }],
    [{ blockSizeTokens: 16 }, { blockTokens: 64 }],
    [{ blockSizeTokens: 128 }, { blockTokens: 128, maxBlocks: 1024 }],
    [{ blockSize: 256 }, { blockTokens: 256, maxBlocks: 512 }],
    [{ blockSize: 256, blockSizeTokens: 128 }, { blockTokens: 128 }],
    [{ maxPrefixTokensToMatch: 16_384 }, { maxBlocks: 256 }],
    [{ maxPrefixTokensToMatch: 10 }, { maxBlocks: 1 }],
    [{ maxPrefixTokensToMatch: 0, maxPrefixBlocksToMatch: 100 }, { maxBlocks: 100 }],
    [{ maxPrefixTokensToMatch: 0, maxPrefixBlocksToMatch: 0 }, { maxBlocks: 65_535 }],
    [{ maxPrefixTokensToMatch: 1_000_000_000 }, { maxBlocks: 65_535 }],
    [
      { lruCapacityPerServer: 256, autoTune: false },
      { capacityBlocks: 256, autoTune: false },
    ],
    [{ lruCapacityPerServer: 0 }, { capacityBlocks: 31_250 }],
  ])('the prefix index with %j is %j', (parameters, expected) => {
    expect(settings(parameters)).toMatchObject(expected);
  });
});
