import type { PluginDefinition } from '../../scheduling/plugin.js';
import { concurrencyDetector } from './concurrency.js';
import { learnedLimitDetector } from './learned-limit.js';
import { maxSaturationDetector } from './max-saturation.js';
import { scrapedConcurrencyDetector } from './scraped-concurrency.js';
import { utilizationDetector } from './utilization.js';

/** The saturation detectors. */
export const detectorPlugins: readonly PluginDefinition[] = [
  utilizationDetector,
  concurrencyDetector,
  learnedLimitDetector,
  maxSaturationDetector,
  scrapedConcurrencyDetector,
];
