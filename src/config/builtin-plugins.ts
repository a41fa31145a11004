import { detectorPlugins } from '../admission/detectors/registry.js';
import { flowControlPlugins } from '../flow-control/policies/registry.js';
import { parserPlugins } from '../request/parser-plugins.js';
import type { PluginDefinition } from '../scheduling/plugin.js';
import { schedulingPlugins } from '../scheduling/registry.js';
import { coreMetricsExtractor } from './plugins/core-metrics-extractor.js';
import { dcgmDataSource } from './plugins/dcgm-data-source.js';
import { dcgmExtractor } from './plugins/dcgm-extractor.js';
import { endpointNotificationSource } from './plugins/endpoint-notification-source.js';
import { evictionPlugins } from './plugins/eviction-plugins.js';
import { fileDiscovery } from './plugins/file-discovery.js';
import { k8sNotificationSource } from './plugins/k8s-notification-source.js';
import { metricsDataSource } from './plugins/metrics-data-source.js';
import { modelsDataExtractor } from './plugins/models-data-extractor.js';
import { modelsDataSource } from './plugins/models-data-source.js';
import { multiclusterFileDiscovery } from './plugins/multicluster-file-discovery.js';
import { multiclusterMetricsDataSource } from './plugins/multicluster-metrics-data-source.js';
import { multiclusterMetricsExtractor } from './plugins/multicluster-metrics-extractor.js';
import { replicaPlugins } from './plugins/replica-plugins.js';

/** Every plugin that the program brings along. Give this, or a longer list, to `loadConfiguration`. */
export const builtinPlugins: readonly PluginDefinition[] = [
  ...schedulingPlugins,
  ...parserPlugins,
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
  ...detectorPlugins,
  ...flowControlPlugins,
  ...evictionPlugins,
  ...replicaPlugins,
];
