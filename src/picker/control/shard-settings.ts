import { randomUUID } from 'node:crypto';
import { DEFAULT_SATURATION } from '../../admission/detectors/utilization.js';
import type { LoadedConfiguration } from '../../config/load.js';
import { proxyNeeds, readsAnswerBodies } from '../../config/proxy-needs.js';
import type { FlowControlSettings } from '../../contract/queue-settings.js';
import type { ReloadableSettings, RestartSettings, ShardFlowControl, ShardSettings } from '../messages.js';
import type { PickerOptions } from '../picker-options.js';

/** Settings of every shard. */
export function shardSettings(options: PickerOptions): ShardSettings {
  const { listen, bounds, decide, observe, configuration } = options;
  return {
    listen,
    bounds,
    decide,
    observe,
    restart: restartSettings(configuration, options.pluginModules),
    reloadable: reloadableSettings(configuration),
  };
}

/** The parts of a configuration that only a restart changes. @param modules addresses of the modules of plugins */
export function restartSettings({ scheduling }: LoadedConfiguration, modules: readonly string[]): RestartSettings {
  const { tokens, requestKeys, baseModels, prefixProducer, prediction, handler, host } = scheduling;
  const plugins = { modules, configured: host, group: randomUUID() };
  return { tokens, requestKeys, baseModels, prefixProducer, prediction, handler, plugins };
}

/** The parts of a configuration that a reload can change. */
export function reloadableSettings(configuration: LoadedConfiguration): ReloadableSettings {
  const { flowControl } = configuration;
  const sessions = flowControl?.sessions.mode === 'off' ? undefined : flowControl?.sessions;
  return {
    parsers: configuration.parsers,
    profiles: configuration.scheduling.profiles.map(({ name }) => name),
    filters: configuration.scheduling.profiles.map(({ filters }) => filters),
    prefix: configuration.scheduling.prefix,
    estimateOutput: configuration.scheduling.estimateOutput,
    reserves: configuration.scheduling.reserves,
    objectiveTimes: configuration.adaptation.objectiveTimes,
    flowControl: flowControl && shardFlowControl(flowControl),
    sessionAttribute: sessions?.attribute,
    retention: sessions?.retention,
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
