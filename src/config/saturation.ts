import { learnedLimitDetector } from '../admission/detectors/learned-limit.js';
import { maxSaturationDetector, maxSaturationParameters } from '../admission/detectors/max-saturation.js';
import { utilizationDetector } from '../admission/detectors/utilization.js';
import type { SaturationSettings, Stage } from '../contract/saturation-settings.js';
import { thunderAgent } from '../flow-control/policies/thunder-agent.js';
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
  const detector = config.flowControl?.saturationDetector?.pluginRef ?? '';
  if (detector !== '') {
    const path = ['flowControl', 'saturationDetector', 'pluginRef'];
    return checkLearned(plugins.resolve(detector, ['saturation-detector'], path), flowControl, path, document);
  }
  return plugins.ensure(flowControl ? learnedLimitDetector.type : utilizationDetector.type);
}

/**
 * What the configured detector measures; undefined = room is learned. Those of a composite one are put together.
 * @throws ConfigurationError when one of them cannot be measured beside others
 */
export function saturationSettings(
  detector: LoadedPlugin,
  plugins: PluginSet,
  document: ConfigurationDocument,
): SaturationSettings | undefined {
  if (detector.definition !== maxSaturationDetector) {
    return detector.definition.saturationSettings?.(detector.parameters);
  }
  const { detectors, stages } = maxSaturationParameters().parse(detector.parameters);
  const measured = detectors.flatMap((name, index) => {
    const path = [...(detector.path ?? []), 'parameters', 'detectors', index];
    const child = plugins.resolve(name, ['saturation-detector'], path);
    // Never saturated: it takes no part in the largest of them.
    if (child.definition === thunderAgent) return [];
    const settings = child.definition.saturationSettings?.(child.parameters);
    if (settings === undefined || settings.type === 'max-saturation-detector') {
      throw document.error(path, `"${name}" (${child.definition.type}) cannot stand beside others: name another one`);
    }
    return [{ name, settings, stages: stages[name] ?? BOTH_STAGES }];
  });
  return measured.length === 0 ? undefined : { type: 'max-saturation-detector', detectors: measured };
}

const BOTH_STAGES: readonly Stage[] = ['prefill', 'decode'];

function checkLearned(detector: LoadedPlugin, flowControl: boolean, path: Path, document: ConfigurationDocument) {
  if (flowControl || detector.definition !== learnedLimitDetector) return detector;
  throw document.error(
    path,
    `${learnedLimitDetector.type} works with flow control only: set the feature gate flowControl, or name another ` +
      'detector',
  );
}
