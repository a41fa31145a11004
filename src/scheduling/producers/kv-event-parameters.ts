import { z } from 'zod';
import { type BlockPlace, type LowerPlace, placeOfMedium, type TierPrices } from '../../contract/block-place.js';
import type { KvEventSettings } from '../../contract/kv-event-settings.js';
import type { LabelSelector } from '../../contract/label-selector.js';
import { CORE } from '../../core/core-names.js';
import { durationMilliseconds } from '../duration.js';
import { durationOrNone } from '../duration-schema.js';
import type { PrefixSettings } from '../program.js';
import { BadSelector, parseSelector } from '../screeners/selector-text.js';

/** llm-d-router's defaults. */
const DEFAULT_BLOCK_TOKENS = 16;
const DEFAULT_PORT = 5557;
const DEFAULT_TOPIC_FILTER = 'kv@';
const DEFAULT_TTL = '2s';
/** Largest block that the core hashes in one piece: four bytes a token. */
const BLOCK_TOKENS_MAX = CORE.THREAD_INPUT_BYTES / 4;

const UNUSED = 'Accepted for compatibility, without effect:';
const NOT_NEEDED = 'Accepted for compatibility, not needed:';

const tokenProcessorConfig = () =>
  z
    .strictObject({
      blockSizeTokens: z
        .int()
        .min(0)
        .max(BLOCK_TOKENS_MAX)
        .default(0)
        .describe(`Tokens in a block, best a divisor of the size of the engine's blocks; 0 = ${DEFAULT_BLOCK_TOKENS}.`),
      blockSize: z.int().min(0).max(BLOCK_TOKENS_MAX).optional().describe('Deprecated name of blockSizeTokens.'),
      hashSeed: z.string().optional().describe(`${NOT_NEEDED} no hash leaves the picker.`),
      hashAlgorithm: z.enum(['cbor-fnv', 'xxh64']).optional().describe(`${NOT_NEEDED} there is one algorithm.`),
    })
    .prefault({})
    .describe('How prompts and events are cut into blocks.');

const kvBlockIndexConfig = () =>
  z
    .strictObject({
      inMemoryConfig: z
        .strictObject({
          size: z.int().optional().describe(`${UNUSED} see --index-blocks.`),
          podCacheSize: z.int().optional().describe(`${NOT_NEEDED} every endpoint that holds a block is known.`),
        })
        .optional()
        .describe(`${NOT_NEEDED} the index is in shared memory, of a fixed size.`),
      costAwareMemoryConfig: z
        .strictObject({ size: z.string().optional().describe(`${UNUSED} see --index-blocks.`) })
        .optional()
        .describe(`${NOT_NEEDED} the index is in shared memory, of a fixed size.`),
      redisConfig: z
        .looseObject({ address: z.string().optional().describe('Address of the Redis or Valkey server.') })
        .optional()
        .describe('Not served: the index is in this process.'),
      enableMetrics: z.boolean().optional().describe(`${NOT_NEEDED} the metrics of the index are always there.`),
      metricsLoggingInterval: z.number().optional().describe(`${UNUSED} metrics are not logged.`),
    })
    .optional()
    .describe('Where the index is kept.');

/**
 * Weights of blocks: the first as llm-d-router's. A disk loads at about half the time, and another machine at less but
 * after a wait, that a GPU takes to compute the tokens of a model of 8 B parameters (docs/kv-events.md).
 */
const DEFAULT_WEIGHTS: Readonly<Record<BlockPlace, number>> = { gpu: 1, host: 0.8, disk: 0.5, remote: 0.5 };

const tiers = () =>
  z
    .array(
      z.strictObject({
        name: z.string().default('gpu').describe('Medium of the events: gpu, cpu, disk (or storage), remote …'),
        weight: z.number().min(0).default(1).describe('What a block there counts.'),
      }),
    )
    .optional()
    .refine((list) => weightOf(list, 'gpu') > 0, { error: 'the weight of gpu must be above 0' })
    .describe(
      "What a block counts by where the engine keeps it, beside one on the GPU. Without a tier's name: " +
        `cpu ${DEFAULT_WEIGHTS.host}, disk ${DEFAULT_WEIGHTS.disk}, anything else ${DEFAULT_WEIGHTS.remote}.`,
    );

type TierWeights = readonly { readonly name: string; readonly weight: number }[] | undefined;

function weightOf(list: TierWeights, place: BlockPlace): number {
  return list?.findLast(({ name }) => placeOfMedium(name) === place)?.weight ?? DEFAULT_WEIGHTS[place];
}

/** What a block below the GPU counts less than one on it, from 0 to 1. */
function tierPrices(list: TierWeights): TierPrices {
  const gpu = weightOf(list, 'gpu');
  const price = (place: BlockPlace) => Math.max(0, 1 - weightOf(list, place) / gpu);
  return { host: price('host'), disk: price('disk'), remote: price('remote') };
}

function givenTiers(list: TierWeights): readonly LowerPlace[] {
  const named = new Set(list?.map(({ name }) => placeOfMedium(name)));
  return (['host', 'disk', 'remote'] as const).filter((place) => named.has(place));
}

const podDiscoveryConfig = () =>
  z
    .strictObject({
      podLabelSelector: z
        .string()
        .default('')
        .refine((text) => selectorProblem(text) === undefined, { error: ({ input }) => selectorProblem(String(input)) })
        .describe(
          'Endpoints that publish, as a Kubernetes label selector (a=b, c in (d, e)); empty = all of the pool.',
        ),
      podNamespace: z.string().default('').describe('Namespace of the endpoints that publish; empty = any.'),
      socketPort: z
        .int()
        .min(0)
        .max(65_535)
        .default(DEFAULT_PORT)
        .describe('Port on which an endpoint publishes; data-parallel rank n on this one + n.'),
      replaySocketPort: z
        .int()
        .max(65_535)
        .default(0)
        .describe('Port on which lost events can be had again, + the rank; 0 or less = nowhere.'),
    })
    .prefault({})
    .describe('How the engines are found.');

const kvEventsConfig = () =>
  z
    .strictObject({
      discoverPods: z.boolean().default(true).describe('Connect to every endpoint of the pool.'),
      podDiscoveryConfig: podDiscoveryConfig(),
      zmqEndpoint: z
        .string()
        .default('')
        .describe('Address to listen on, for engines that connect by themselves (tcp://*:5557); empty = none.'),
      topicFilter: z.string().default(DEFAULT_TOPIC_FILTER).describe('Beginning of the topics that count.'),
      modelName: z
        .string()
        .default('')
        .describe('Model of the pool, for engines whose topics do not name it (kv@<endpoint>@<model>).'),
      concurrency: z.int().optional().describe(`${NOT_NEEDED} events are applied by one thread.`),
      tracing: z
        .union([z.boolean(), z.looseObject({})])
        .optional()
        .describe(`${UNUSED} events are counted, not traced.`),
      engineType: z.enum(['vllm', 'sglang']).optional().describe(`${NOT_NEEDED} the format is recognised.`),
    })
    .prefault({})
    .describe('Where the events come from.');

/** Fields of the parameters of both plugins. */
export const preciseFields = () => ({
  tokenProcessorConfig: tokenProcessorConfig(),
  kvEventsConfig: kvEventsConfig(),
  speculativeIndexing: z
    .boolean()
    .default(false)
    .describe('Count the blocks of a prompt as held by its endpoint until the engine reports them.'),
  sessionManager: z
    .union([z.string(), z.looseObject({})])
    .optional()
    .describe(`${UNUSED} engines' events are matched by their blocks, not by sessions.`),
  speculativeTTL: durationOrNone
    .default(DEFAULT_TTL)
    .describe(`Longest time of that; ${DEFAULT_TTL} when empty or not above 0.`),
});

export const indexerFields = () => ({
  kvBlockIndexConfig: kvBlockIndexConfig(),
  kvCacheBackendConfigs: tiers(),
});

type PreciseParameters = z.output<z.ZodObject<ReturnType<typeof preciseFields>>> & {
  readonly indexerConfig?: z.output<z.ZodObject<ReturnType<typeof indexerFields>>> | undefined;
};

function selectorProblem(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    parseSelector(text);
    return undefined;
  } catch (error) {
    if (error instanceof BadSelector) return error.message;
    throw error;
  }
}

function selector(text: string): LabelSelector | undefined {
  return text === '' ? undefined : parseSelector(text);
}

export function precisePrefixSettings({
  tokenProcessorConfig,
  speculativeIndexing,
}: PreciseParameters): PrefixSettings {
  const { blockSizeTokens, blockSize } = tokenProcessorConfig;
  return {
    blockTokens: blockSizeTokens || blockSize || DEFAULT_BLOCK_TOKENS,
    maxBlocks: CORE.CHAIN_BLOCKS_MAX,
    // The events of the engine report stored and dropped blocks.
    capacityBlocks: 0,
    autoTune: false,
    knownBy: speculativeIndexing ? 'events and decisions' : 'events',
  };
}

export function preciseEventSettings(given: PreciseParameters): KvEventSettings {
  const { discoverPods, podDiscoveryConfig, zmqEndpoint, topicFilter, modelName } = given.kvEventsConfig;
  const { podLabelSelector, podNamespace, socketPort, replaySocketPort } = podDiscoveryConfig;
  const ttl = given.speculativeTTL === '' ? 0 : durationMilliseconds(given.speculativeTTL);
  return {
    bind: zmqEndpoint || undefined,
    connect: discoverPods
      ? { port: socketPort || DEFAULT_PORT, replayPort: replaySocketPort > 0 ? replaySocketPort : undefined }
      : undefined,
    topicFilter,
    model: modelName || undefined,
    selector: selector(podLabelSelector),
    namespace: podNamespace || undefined,
    speculativeTtlMs: given.speculativeIndexing ? (ttl > 0 ? ttl : durationMilliseconds(DEFAULT_TTL)) : undefined,
    tierPrices: tierPrices(given.indexerConfig?.kvCacheBackendConfigs),
    givenTiers: givenTiers(given.indexerConfig?.kvCacheBackendConfigs),
  };
}

/** Advice: one line for each setting without effect, and for settings that follow no engine. */
export function preciseAdvice(given: PreciseParameters): readonly string[] {
  const { tokenProcessorConfig, kvEventsConfig, indexerConfig } = given;
  const advice: string[] = [];
  if (tokenProcessorConfig.blockSize !== undefined) advice.push('blockSize is deprecated: use blockSizeTokens');
  if (indexerConfig?.kvBlockIndexConfig?.redisConfig !== undefined) {
    advice.push('redisConfig is not served: the index is in this process');
  }
  if (!kvEventsConfig.discoverPods && kvEventsConfig.zmqEndpoint === '') {
    advice.push('no events can come: discoverPods is false and zmqEndpoint is empty');
  }
  return advice;
}
