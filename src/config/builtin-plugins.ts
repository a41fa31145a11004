import type { PluginDefinition } from '../scheduling/plugin.js';
import { schedulingPlugins } from '../scheduling/registry.js';
import { anthropicParser } from './plugins/anthropic-parser.js';
import { concurrencyDetector } from './plugins/concurrency-detector.js';
import { coreMetricsExtractor } from './plugins/core-metrics-extractor.js';
import { fcfsOrderingPolicy } from './plugins/fcfs-ordering-policy.js';
import { fileDiscovery } from './plugins/file-discovery.js';
import { globalStrictFairnessPolicy } from './plugins/global-strict-fairness-policy.js';
import { metricsDataSource } from './plugins/metrics-data-source.js';
import { openaiParser } from './plugins/openai-parser.js';
import { passthroughParser } from './plugins/passthrough-parser.js';
import { sglanghttpParser } from './plugins/sglanghttp-parser.js';
import { staticUsageLimitPolicy } from './plugins/static-usage-limit-policy.js';
import { utilizationDetector } from './plugins/utilization-detector.js';
import { vertexaiParser } from './plugins/vertexai-parser.js';
import { vllmgrpcParser } from './plugins/vllmgrpc-parser.js';
import { vllmhttpParser } from './plugins/vllmhttp-parser.js';

/** Every plugin that the program brings along. Give this, or a longer list, to `loadConfiguration`. */
export const builtinPlugins: readonly PluginDefinition[] = [
  ...schedulingPlugins,
  openaiParser,
  anthropicParser,
  vllmhttpParser,
  sglanghttpParser,
  vllmgrpcParser,
  vertexaiParser,
  passthroughParser,
  fileDiscovery,
  metricsDataSource,
  coreMetricsExtractor,
  utilizationDetector,
  concurrencyDetector,
  fcfsOrderingPolicy,
  globalStrictFairnessPolicy,
  staticUsageLimitPolicy,
];
