import { durationMilliseconds } from '../scheduling/duration.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import { concurrencyDetector, concurrencyDetectorParameters } from './plugins/concurrency-detector.js';
import { learnedLimitDetector } from './plugins/learned-limit-detector.js';
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

/**
 * The configured saturation detector; when none is, `utilization-detector`, or `learned-limit-detector` with flow control.
 * @param flowControl whether its feature gate is on
 */
export function resolveSaturationDetector(
  config: EndpointPickerConfig,
  flowControl: boolean,
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
    return checkLearned(plugins.resolve(current.pluginRef, ['saturation-detector'], path), flowControl, path, document);
  }
  const old = config.saturationDetector?.pluginRef;
  if (old === undefined) return plugins.ensure(flowControl ? learnedLimitDetector.type : utilizationDetector.type);
  const path = ['saturationDetector', 'pluginRef'];
  return checkLearned(plugins.resolve(old, ['saturation-detector'], path), flowControl, path, document);
}

function checkLearned(detector: LoadedPlugin, flowControl: boolean, path: Path, document: ConfigurationDocument) {
  if (flowControl || detector.definition !== learnedLimitDetector) return detector;
  throw document.error(
    path,
    `${learnedLimitDetector.type} works with flow control only: set the feature gate flowControl, or name another detector`,
  );
}

/** Settings of a detector of the incumbent's; undefined for others: then room is learned. */
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
