import { z } from 'zod';
import { once } from '../../runtime/once.js';
import { definePlugin } from '../../scheduling/plugin.js';

/** Label with the engine's name. */
const ENGINE_LABEL = 'llm-d.ai/engine-type';

/** Engine of endpoints that name none. */
const DEFAULT_ENGINE = 'vllm';

/** Engines whose metric names are built in. */
const BUILTIN_ENGINES = ['vllm', 'sglang', 'trtllm-serve', 'triton-tensorrt-llm', 'triton', 'atom', 'vllm-omni'];

/** `name` or `name{label=value,…}`, values with or without quotes. */
const SPEC = /^[a-zA-Z_:][a-zA-Z0-9_:]*(\{\s*([a-zA-Z_]\w*\s*=\s*("[^"]*"|[^",{}]*)\s*(,\s*|(?=\})))*\})?$/;
const SPEC_EXPECTED = 'expected a metric such as name or name{label=value}';

/** A metric, as specs of engines and extractors name it. */
const metricSpec = z.string().regex(SPEC, { error: SPEC_EXPECTED });

/** The same, or empty: the engine does not tell. */
export const specOrNone = z.string().regex(new RegExp(`^$|${SPEC.source}`), { error: SPEC_EXPECTED });

const engine = () =>
  z.strictObject({
    name: z.string().min(1).describe("Engine, as the endpoint's label names it."),
    queuedRequestsSpec: specOrNone.optional().describe('Waiting requests.'),
    runningRequestsSpec: specOrNone.optional().describe('Running requests.'),
    kvUsageSpec: specOrNone.optional().describe('Share of the KV cache in use.'),
    loraSpec: specOrNone.optional().describe('LoRA adapters, in labels.'),
    loraLoadedSpec: specOrNone
      .optional()
      .describe('LoRA adapters that are loaded, one series each with adapter_name, level (gpu or cpu) and pinned.'),
    loraGPULoadedSpec: specOrNone.optional().describe('LoRA adapters in slots of the GPU.'),
    loraGPUSlotsSpec: specOrNone.optional().describe('Slots of the GPU for LoRA adapters.'),
    cacheInfoSpec: specOrNone.optional().describe('Cache geometry, in labels.'),
    cacheBlockSizeLabelName: z.string().optional().describe('Label of cacheInfoSpec with the tokens of a block.'),
    cacheNumBlocksLabelName: z.string().optional().describe('Label of cacheInfoSpec with the number of blocks.'),
    cacheBlockSizeSpec: specOrNone.optional().describe('Tokens of a block, as a value.'),
    cacheNumBlocksSpec: specOrNone.optional().describe('Number of blocks, as a value.'),
    customMetrics: z
      .array(
        z.strictObject({
          attributeKey: z.string().min(1).describe('Name that plugins read it by.'),
          metricSpec: metricSpec.describe('The metric.'),
          optional: z
            .boolean()
            .optional()
            .describe('Whether a page may lack it. Not needed: it may anyway, and is unknown then.'),
        }),
      )
      .default([])
      .describe('Further metrics that plugins may read by name.'),
  });

export const coreMetricsExtractorParameters = once(() =>
  z
    .strictObject({
      engineLabelKey: z
        .string()
        .overwrite((key) => key || ENGINE_LABEL)
        .default(ENGINE_LABEL)
        .describe('Endpoint label that names the engine; empty = the default.'),
      defaultEngine: z
        .string()
        .overwrite((name) => name || DEFAULT_ENGINE)
        .default(DEFAULT_ENGINE)
        .describe('Engine of endpoints without that label; empty = the default.'),
      engineConfigs: z.array(engine()).default([]).describe('Further engines, or other metric names for known ones.'),
    })
    .refine((given) => new Set(given.engineConfigs.map((each) => each.name)).size === given.engineConfigs.length, {
      path: ['engineConfigs'],
      error: 'every engine may stand there once',
    })
    .refine((given) => knownEngines(given.engineConfigs).includes(given.defaultEngine), {
      path: ['defaultEngine'],
      error: `must be one of ${BUILTIN_ENGINES.join(', ')} or a name from engineConfigs`,
    }),
);

export type EngineConfig = z.output<ReturnType<typeof engine>>;

function knownEngines(configured: readonly EngineConfig[]): readonly string[] {
  return [...BUILTIN_ENGINES, ...configured.map((each) => each.name)];
}

export const coreMetricsExtractor = definePlugin({
  type: 'core-metrics-extractor',
  kinds: ['extractor'],
  stability: 'Stable',
  doc: 'Reads waiting and running requests, KV usage, LoRA adapters and cache geometry from a metrics page.',
  parameters: coreMetricsExtractorParameters,
});
