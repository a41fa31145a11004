import { randomUUID } from 'node:crypto';
import { DEFAULT_SATURATION } from '../../admission/detectors/utilization.js';
import type { LoadedConfiguration } from '../../config/load.js';
import { proxyNeeds, readsAnswerBodies } from '../../config/proxy-needs.js';
import type { FlowControlSettings } from '../../contract/queue-settings.js';
import type { ConfiguredSettings, ShardFlowControl, ShardSettings } from '../messages.js';
import type { PickerOptions } from '../picker-options.js';

/** Settings of every shard. Bounds of the whole process are divided among the shards. */
export function shardSettings(options: PickerOptions): ShardSettings {
  const { configuration, shards } = options;
  return {
    transport: options.transport,
    socket: options.socket,
    host: options.addresses.grpc,
    port: options.grpcPort,
    reusePort: shards > 1,
    maxReceiveBytes: options.maxReceiveBytes,
    maxSendBytes: options.maxSendBytes,
    tls: options.tls,
    ...configuredSettings(configuration),
    tokens: configuration.scheduling.tokens,
    requestKeys: configuration.scheduling.requestKeys,
    baseModels: configuration.scheduling.baseModels,
    prefixProducer: configuration.scheduling.prefixProducer,
    handler: configuration.scheduling.handler,
    prediction: configuration.scheduling.prediction,
    plugins: { modules: options.pluginModules, configured: configuration.scheduling.host, group: randomUUID() },
    maxRequestBodyBytes: options.maxRequestBodyBytes,
    maxStreams: Math.ceil(options.maxStreams / shards),
    maxBufferedBytes: Math.ceil(options.maxBufferedBytes / shards),
    shards,
    maxConnections: Math.ceil(options.maxConnections / shards),
    requestIdleMs: options.requestIdleMs,
    emitScores: options.emitScores,
    ignoreSubset: options.ignoreSubset,
    allowProfileHeader: options.allowProfileHeader,
    allowExplain: options.allowExplain,
    columnsEvery: options.columnsEvery,
    shadowEvery: options.candidate?.every ?? 0,
    tracing: options.tracing?.sampler,
    models: options.models,
    log: options.logOptions,
    poolName: options.poolName,
  };
}

/** The settings that a configuration decides. */
export function configuredSettings(configuration: LoadedConfiguration): ConfiguredSettings {
  const { flowControl } = configuration;
  return {
    parsers: configuration.parsers,
    profiles: configuration.scheduling.profiles.map(({ name }) => name),
    filters: configuration.scheduling.profiles.map(({ filters }) => filters),
    prefix: configuration.scheduling.prefix,
    estimateOutput: configuration.scheduling.estimateOutput,
    objectiveTimes: configuration.adaptation.objectiveTimes,
    flowControl: flowControl && shardFlowControl(flowControl),
    saturation: configuration.saturationDetector ?? DEFAULT_SATURATION,
    readsAnswers: readsAnswerBodies(proxyNeeds(configuration)),
  };
}

function shardFlowControl(settings: FlowControlSettings): ShardFlowControl {
  const { limits, bands, template, negativeTemplate, fallback } = settings;
  const all = [...bands, fallback, ...[template, negativeTemplate].filter((band) => band !== undefined)];
  return {
    limitedTenants: settings.tenantLimits.map(({ fairnessId }) => fairnessId),
    largestBody: Math.min(limits.bytes, ...all.map((band) => band.limits.bytes)),
    evicts: settings.enableEviction,
  };
}
