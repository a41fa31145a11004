import { durationMilliseconds } from '../scheduling/duration.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { PluginSet } from './plugin-set.js';
import { quantityValue } from './quantity.js';
import type { EndpointPickerConfig, FlowControlConfig, PriorityBandConfig } from './schema.js';
import { shown } from './validation.js';

/** The policies that every configuration has, listed or not. */
const DEFAULT_ORDERING = 'fcfs-ordering-policy';
const DEFAULT_FAIRNESS = 'global-strict-fairness-policy';
const DEFAULT_USAGE_LIMIT = 'static-usage-limit-policy';

const DEFAULT_BAND_BYTES = 1_000_000_000;
const DEFAULT_BAND_REQUESTS = 5000;
const DEFAULT_TTL = '60s';

/**
 * Check the `flowControl` section and fill in its defaults. Without the feature gate it is left unchecked and undefined,
 * with a warning when it holds anything beside the saturation detector, which works without the gate.
 */
export function resolveFlowControl(
  config: EndpointPickerConfig,
  enabled: boolean,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): Readonly<Record<string, unknown>> | undefined {
  for (const type of [DEFAULT_ORDERING, DEFAULT_FAIRNESS, DEFAULT_USAGE_LIMIT]) plugins.ensure(type);
  const section = config.flowControl;
  if (!enabled) {
    if (section !== undefined && hasMoreThanDetector(section)) {
      const text = 'the flowControl feature gate is disabled: the section is ignored, except its saturationDetector';
      warnings.push(document.warning(['flowControl'], text));
    }
    return undefined;
  }
  warnings.push(
    document.warning(
      ['featureGates'],
      'flowControl is enabled, but this release has no queues yet: requests are admitted directly, ' +
        'and bands, limits, time-outs and queue policies have no effect',
    ),
  );
  const given = section ?? { priorityBands: [], enableEviction: false };
  checkSection(given, document);
  return effectiveSection(given, plugins);
}

function hasMoreThanDetector(section: FlowControlConfig): boolean {
  const { saturationDetector: _detector, priorityBands, enableEviction, ...rest } = section;
  return priorityBands.length > 0 || enableEviction || Object.values(rest).some((value) => value !== undefined);
}

function checkSection(section: FlowControlConfig, document: ConfigurationDocument): void {
  const path = ['flowControl'];
  checkLimits(section, 'global', path, document);
  for (const [field, title] of [
    ['defaultRequestTTL', 'DefaultRequestTTL'],
    ['noEndpointRequestTTL', 'NoEndpointRequestTTL'],
  ] as const) {
    const value = section[field];
    if (value !== undefined && durationMilliseconds(value) < 0) {
      throw document.error([...path, field], `${title} cannot be negative, got ${shown(value)}`);
    }
  }
  for (const [field, title] of [
    ['defaultPriorityBand', 'default priority band'],
    ['defaultNegativePriorityBand', 'default negative priority band'],
  ] as const) {
    const band = section[field];
    if (band !== undefined) checkLimits(band, title, [...path, field], document);
  }
  checkBands(section.priorityBands, document);
}

function checkBands(bands: readonly PriorityBandConfig[], document: ConfigurationDocument): void {
  const priorities = new Set<number>();
  for (const [index, band] of bands.entries()) {
    const path = ['flowControl', 'priorityBands', index];
    const priority = band.priority ?? 0;
    if (priorities.has(priority)) {
      throw document.error([...path, 'priority'], `duplicate priority ${priority}: every band needs its own`);
    }
    priorities.add(priority);
    checkLimits(band, `priority band ${priority}`, path, document);
  }
}

function checkLimits(
  limits: Pick<PriorityBandConfig, 'maxBytes' | 'maxRequests'>,
  title: string,
  path: Path,
  document: ConfigurationDocument,
): void {
  for (const [field, name] of [
    ['maxBytes', 'MaxBytes'],
    ['maxRequests', 'MaxRequests'],
  ] as const) {
    const value = limits[field];
    if (value !== undefined && quantityValue(value) < 0) {
      throw document.error([...path, field], `${title} ${name} must be non-negative, got ${shown(value)}`);
    }
  }
}

function effectiveSection(section: FlowControlConfig, plugins: PluginSet): Readonly<Record<string, unknown>> {
  const path = ['flowControl'];
  const ttl = section.defaultRequestTTL ?? DEFAULT_TTL;
  const usageLimit = section.usageLimitPolicyPluginRef || DEFAULT_USAGE_LIMIT;
  plugins.resolve(usageLimit, ['usage-limit-policy'], [...path, 'usageLimitPolicyPluginRef']);
  const template = (field: 'defaultPriorityBand' | 'defaultNegativePriorityBand') =>
    effectiveBand(section[field] ?? {}, [...path, field], plugins);
  return {
    maxBytes: section.maxBytes ?? 0,
    maxRequests: section.maxRequests ?? 0,
    defaultRequestTTL: ttl,
    noEndpointRequestTTL: section.noEndpointRequestTTL ?? ttl,
    defaultPriorityBand: template('defaultPriorityBand'),
    defaultNegativePriorityBand: template('defaultNegativePriorityBand'),
    priorityBands: section.priorityBands.map((band, index) => ({
      priority: band.priority ?? 0,
      ...effectiveBand(band, [...path, 'priorityBands', index], plugins),
    })),
    usageLimitPolicyPluginRef: usageLimit,
    enableEviction: section.enableEviction,
  };
}

function effectiveBand(band: PriorityBandConfig, path: Path, plugins: PluginSet): Readonly<Record<string, unknown>> {
  const ordering = band.orderingPolicyRef || DEFAULT_ORDERING;
  const fairness = band.fairnessPolicyRef || DEFAULT_FAIRNESS;
  plugins.resolve(ordering, ['ordering-policy'], [...path, 'orderingPolicyRef']);
  plugins.resolve(fairness, ['fairness-policy'], [...path, 'fairnessPolicyRef']);
  return {
    maxBytes: orDefault(band.maxBytes, DEFAULT_BAND_BYTES),
    maxRequests: orDefault(band.maxRequests, DEFAULT_BAND_REQUESTS),
    fairnessPolicyRef: fairness,
    orderingPolicyRef: ordering,
  };
}

/** In a band 0 means the default, not "no limit". */
function orDefault(given: string | number | undefined, otherwise: number): string | number {
  return given === undefined || quantityValue(given) === 0 ? otherwise : given;
}
