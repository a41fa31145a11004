import { durationMilliseconds } from '../scheduling/duration.js';
import type { ConfigurationDocument } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import { concurrencyDetector, concurrencyDetectorParameters } from './plugins/concurrency-detector.js';
import { utilizationDetector, utilizationDetectorParameters } from './plugins/utilization-detector.js';
import type { EndpointPickerConfig } from './schema.js';

/** How the saturation of the pool is judged. */
export type SaturationSettings =
  | {
      readonly type: 'utilization-detector';
      readonly queueDepthThreshold: number;
      readonly kvCacheUtilThreshold: number;
      readonly metricsStalenessMs: number;
      readonly headroom: number;
    }
  | {
      readonly type: 'concurrency-detector';
      readonly mode: 'requests' | 'tokens' | 'hybrid';
      readonly maxConcurrency: number;
      readonly maxTokenConcurrency: number;
      readonly headroom: number;
    };

/** The configured saturation detector; `utilization-detector` when none is. */
export function resolveSaturationDetector(
  config: EndpointPickerConfig,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): LoadedPlugin {
  plugins.ensure(utilizationDetector.type);
  const current = config.flowControl?.saturationDetector;
  if (config.saturationDetector !== undefined) {
    const used = current === undefined ? '' : ', and ignored because that is set';
    const text = `is deprecated: use flowControl.saturationDetector${used}`;
    warnings.push(document.warning(['saturationDetector'], text));
  }
  if (current !== undefined) {
    const path = ['flowControl', 'saturationDetector', 'pluginRef'];
    return plugins.resolve(current.pluginRef, ['saturation-detector'], path);
  }
  const old = config.saturationDetector?.pluginRef;
  if (old === undefined) return plugins.ensure(utilizationDetector.type);
  return plugins.resolve(old, ['saturation-detector'], ['saturationDetector', 'pluginRef']);
}

/** Settings of a detector; undefined when it is not one of the built-in ones. */
export function saturationSettings({ definition, parameters }: LoadedPlugin): SaturationSettings | undefined {
  if (definition === utilizationDetector) {
    const { metricsStalenessThreshold, ...given } = utilizationDetectorParameters.parse(parameters);
    const metricsStalenessMs = durationMilliseconds(metricsStalenessThreshold);
    return { type: 'utilization-detector', ...given, metricsStalenessMs };
  }
  if (definition === concurrencyDetector) {
    const given = concurrencyDetectorParameters.parse(parameters);
    return {
      type: 'concurrency-detector',
      mode: given.concurrencyMode,
      maxConcurrency: given.maxConcurrency,
      maxTokenConcurrency: given.maxTokenConcurrency,
      headroom: given.headroom,
    };
  }
  return undefined;
}
