import type { PluginDefinition } from '../scheduling/plugin.js';
import { schedulingPlugins } from '../scheduling/registry.js';
import { anthropicParser } from './plugins/anthropic-parser.js';
import { concurrencyDetector } from './plugins/concurrency-detector.js';
import { coreMetricsExtractor } from './plugins/core-metrics-extractor.js';
import { dcgmDataSource } from './plugins/dcgm-data-source.js';
import { dcgmExtractor } from './plugins/dcgm-extractor.js';
import { deficitRoundRobinFairnessPolicy } from './plugins/deficit-round-robin-fairness-policy.js';
import { edfOrderingPolicy } from './plugins/edf-ordering-policy.js';
import { endpointNotificationSource } from './plugins/endpoint-notification-source.js';
import { fcfsOrderingPolicy } from './plugins/fcfs-ordering-policy.js';
import { fileDiscovery } from './plugins/file-discovery.js';
import { globalStrictFairnessPolicy } from './plugins/global-strict-fairness-policy.js';
import { k8sNotificationSource } from './plugins/k8s-notification-source.js';
import { learnedLimitDetector } from './plugins/learned-limit-detector.js';
import { metricsDataSource } from './plugins/metrics-data-source.js';
import { modelsDataExtractor } from './plugins/models-data-extractor.js';
import { modelsDataSource } from './plugins/models-data-source.js';
import { multiclusterFileDiscovery } from './plugins/multicluster-file-discovery.js';
import { multiclusterMetricsDataSource } from './plugins/multicluster-metrics-data-source.js';
import { multiclusterMetricsExtractor } from './plugins/multicluster-metrics-extractor.js';
import { openaiParser } from './plugins/openai-parser.js';
import { passthroughParser } from './plugins/passthrough-parser.js';
import { priorityHoldbackPolicy } from './plugins/priority-holdback-policy.js';
import { programAwareFairness } from './plugins/program-aware-fairness.js';
import { roundRobinFairnessPolicy } from './plugins/round-robin-fairness-policy.js';
import { sglanghttpParser } from './plugins/sglanghttp-parser.js';
import { shortestFirstOrderingPolicy } from './plugins/shortest-first-ordering-policy.js';
import { sloDeadlineOrderingPolicy } from './plugins/slo-deadline-ordering-policy.js';
import { softReflectiveCeilingPolicy } from './plugins/soft-reflective-ceiling-policy.js';
import { startTimeFairnessPolicy } from './plugins/start-time-fairness-policy.js';
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
  dcgmDataSource,
  dcgmExtractor,
  endpointNotificationSource,
  k8sNotificationSource,
  modelsDataExtractor,
  modelsDataSource,
  multiclusterFileDiscovery,
  multiclusterMetricsDataSource,
  multiclusterMetricsExtractor,
  utilizationDetector,
  concurrencyDetector,
  learnedLimitDetector,
  fcfsOrderingPolicy,
  edfOrderingPolicy,
  sloDeadlineOrderingPolicy,
  shortestFirstOrderingPolicy,
  globalStrictFairnessPolicy,
  roundRobinFairnessPolicy,
  programAwareFairness,
  startTimeFairnessPolicy,
  deficitRoundRobinFairnessPolicy,
  staticUsageLimitPolicy,
  priorityHoldbackPolicy,
  softReflectiveCeilingPolicy,
];
