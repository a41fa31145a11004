import { learnedLimitDetector } from '../admission/detectors/learned-limit.js';
import { utilizationDetector } from '../admission/detectors/utilization.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import type { EndpointPickerConfig } from './schema.js';

/**
 * The configured saturation detector; when none is, `utilization-detector`, or `learned-limit-detector` with flow
 * control.
 * @param flowControl whether its feature gate is on
 */
export function resolveSaturationDetector(
  config: EndpointPickerConfig,
  flowControl: boolean,
  plugins: PluginSet,
  document: ConfigurationDocument,
): LoadedPlugin {
  plugins.ensure(utilizationDetector.type);
  const current = config.flowControl?.saturationDetector;
  if (current !== undefined) {
    const path = ['flowControl', 'saturationDetector', 'pluginRef'];
    return checkLearned(plugins.resolve(current.pluginRef, ['saturation-detector'], path), flowControl, path, document);
  }
  return plugins.ensure(flowControl ? learnedLimitDetector.type : utilizationDetector.type);
}

function checkLearned(detector: LoadedPlugin, flowControl: boolean, path: Path, document: ConfigurationDocument) {
  if (flowControl || detector.definition !== learnedLimitDetector) return detector;
  throw document.error(
    path,
    `${learnedLimitDetector.type} works with flow control only: set the feature gate flowControl, or name another ` +
      'detector',
  );
}
