import type {
  BandSettings,
  FairnessSettings,
  FlowControlSettings,
  OrderingSettings,
  QueueLimits,
  SessionSettings,
  TokenBucketSettings,
  UsageLimitSettings,
} from '../contract/queue-settings.js';
import { fairnessFault, orderingFault, usageLimitFault } from '../flow-control/settings-check.js';
import { durationMilliseconds } from '../scheduling/duration.js';
import type { ConfigurationDocument, Path } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import { quantityValue } from './quantity.js';
import type { EndpointPickerConfig, FlowControlConfig, PriorityBandConfig } from './schema.js';
import { checkIdentity, type SessionsConfig, sessionAttributeOf, sessionsOf } from './session-plugins.js';
import { shown } from './validation.js';

/** The policies that every configuration has, listed or not. */
const DEFAULT_ORDERING = 'fcfs-ordering-policy';
const DEFAULT_FAIRNESS = 'global-strict-fairness-policy';
const DEFAULT_USAGE_LIMIT = 'static-usage-limit-policy';

/** Fairness of a pool that says nothing about its queues. */
const OWN_FAIRNESS = 'start-time-fairness-policy';

/** Bound on the listed bands; the queues hold 32, bands made at run time included. */
const BANDS_MAX = 24;
const DEFAULT_BAND_BYTES = 1_000_000_000;
const DEFAULT_BAND_REQUESTS = 5000;
const DEFAULT_TTL = '60s';
const DEFAULT_SESSIONS: SessionsConfig = {
  mode: 'shadow',
  maxWait: '300s',
  stretch: 0.06,
  smallPrompt: 0.02,
  identity: 'auto',
};

/** The `flowControl` section with its defaults, as a document and as settings of the queues. */
export interface ResolvedFlowControl {
  readonly effective: Readonly<Record<string, unknown>>;
  readonly settings: FlowControlSettings;
}

/**
 * Checks the `flowControl` section and fills in its defaults. Without the feature gate it is left unchecked and
 * undefined, with a warning when it holds anything beside the saturation detector, which works without the gate.
 */
export function resolveFlowControl(
  config: EndpointPickerConfig,
  enabled: boolean,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): ResolvedFlowControl | undefined {
  for (const type of [DEFAULT_ORDERING, DEFAULT_FAIRNESS, DEFAULT_USAGE_LIMIT]) plugins.ensure(type);
  const section = config.flowControl;
  const more = section !== undefined && hasQueues(section);
  const sessions = sessionsOf(section?.sessions, DEFAULT_SESSIONS, enabled, plugins, document, warnings);
  if (!enabled) {
    if (more || section?.replicas !== undefined || section?.sessions !== undefined) {
      const text = 'the flowControl feature gate is disabled: the section is ignored, except its saturationDetector';
      warnings.push(document.warning(['flowControl'], text));
    }
    return undefined;
  }
  const given = { ...(more ? section : { ...ownSection(plugins), replicas: section?.replicas }), sessions };
  checkSection(given, plugins, document);
  warnings.push(...idleSettings(given, document));
  return {
    effective: effectiveSection(given, plugins),
    settings: settingsOf(given, plugins),
  };
}

/** Defaults of a configuration that turns the queues on without the section. */
function ownSection(plugins: PluginSet): FlowControlConfig {
  plugins.ensure(OWN_FAIRNESS);
  const band = { fairnessPolicyRef: OWN_FAIRNESS };
  const bands = { defaultPriorityBand: band, defaultNegativePriorityBand: band, priorityBands: [] };
  return { ...bands, tenantLimits: [], enableEviction: false };
}

/** Returns whether the section has settings of the queues; the detector, `replicas` and `sessions` are none. */
function hasQueues(section: FlowControlConfig): boolean {
  const {
    saturationDetector: _detector,
    replicas: _replicas,
    sessions: _sessions,
    priorityBands,
    tenantLimits,
    enableEviction,
    ...rest
  } = section;
  return (
    priorityBands.length + tenantLimits.length > 0 ||
    enableEviction ||
    Object.values(rest).some((value) => value !== undefined)
  );
}

function checkSection(section: FlowControlConfig, plugins: PluginSet, document: ConfigurationDocument): void {
  const path = ['flowControl'];
  checkLimits(section, 'global', path, document);
  for (const [field, title] of [
    ['defaultRequestTTL', 'DefaultRequestTTL'],
    ['noEndpointRequestTTL', 'NoEndpointRequestTTL'],
    ['maxExpectedWait', 'MaxExpectedWait'],
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
    if (band !== undefined) checkBand(band, title, [...path, field], document);
  }
  checkSessions(section.sessions ?? DEFAULT_SESSIONS, plugins, document);
  checkBands(section.priorityBands, document);
  checkTenantLimits(section, document);
}

function checkSessions(sessions: SessionsConfig, plugins: PluginSet, document: ConfigurationDocument): void {
  checkIdentity(sessions.identity, plugins, document);
  for (const [field, otherwise] of [
    ['maxWait', '0s = no bound'],
    ['idleLease', '0s = none is kept'],
    ['forgetAfter', 'leave it out for no such time'],
  ] as const) {
    const value = sessions[field];
    if (value === undefined || durationMilliseconds(value) >= 0) continue;
    throw document.error(['flowControl', 'sessions', field], `must not be negative, got ${shown(value)}: ${otherwise}`);
  }
}

function checkTenantLimits({ tenantLimits }: FlowControlConfig, document: ConfigurationDocument): void {
  for (const [index, { fairnessId }] of tenantLimits.entries()) {
    if (tenantLimits.findIndex((other) => other.fairnessId === fairnessId) === index) continue;
    const path = ['flowControl', 'tenantLimits', index, 'fairnessId'];
    throw document.error(path, `${shown(fairnessId)} has an entry already: one bucket for each fairness id`);
  }
}

/** One line for each valid setting without effect. */
function idleSettings(section: FlowControlConfig, document: ConfigurationDocument): readonly string[] {
  const { maxExpectedWait, sessions, defaultRequestTTL = DEFAULT_TTL } = section;
  const warnings: string[] = [];
  const ttl = waitMs(defaultRequestTTL);
  const wait = waitMs(maxExpectedWait ?? '0');
  const bands = [section.defaultPriorityBand, section.defaultNegativePriorityBand, ...section.priorityBands];
  const longest = Math.max(
    ttl,
    ...bands.flatMap((band) => (band?.defaultRequestTTL ? waitMs(band.defaultRequestTTL) : [])),
  );
  if (wait !== Number.POSITIVE_INFINITY && wait >= longest) {
    const text = `has no effect: no request waits longer than defaultRequestTTL, ${defaultRequestTTL}`;
    warnings.push(document.warning(['flowControl', 'maxExpectedWait'], text));
  }
  if (sessions?.mode === 'on' && ttl !== Number.POSITIVE_INFINITY && waitMs(sessions.maxWait) >= ttl) {
    warnings.push(document.warning(['flowControl', 'sessions'], refusedFirst(sessions.maxWait, defaultRequestTTL)));
  }
  return warnings;
}

function refusedFirst(maxWait: string, ttl: string): string {
  const refused = `a held turn is refused after defaultRequestTTL, ${ttl}`;
  return waitMs(maxWait) === Number.POSITIVE_INFINITY
    ? `${refused}, as maxWait, ${maxWait}, does not end its hold: set a maxWait below defaultRequestTTL`
    : `${refused}, before maxWait, ${maxWait}: set flowControl.defaultRequestTTL above maxWait, or a shorter maxWait`;
}

function checkBands(bands: readonly PriorityBandConfig[], document: ConfigurationDocument): void {
  if (bands.length > BANDS_MAX) {
    const path = ['flowControl', 'priorityBands', BANDS_MAX];
    throw document.error(path, `there may be ${BANDS_MAX} bands, got ${bands.length}: give nearby priorities one band`);
  }
  const priorities = new Set<number>();
  for (const [index, band] of bands.entries()) {
    const path = ['flowControl', 'priorityBands', index];
    const priority = band.priority ?? 0;
    if (priorities.has(priority)) {
      throw document.error([...path, 'priority'], `duplicate priority ${priority}: every band needs its own`);
    }
    priorities.add(priority);
    checkBand(band, `priority band ${priority}`, path, document);
  }
}

function checkBand(band: PriorityBandConfig, title: string, path: Path, document: ConfigurationDocument): void {
  checkLimits(band, title, path, document);
  const ttl = band.defaultRequestTTL;
  if (ttl !== undefined && durationMilliseconds(ttl) < 0) {
    const text = `${title} DefaultRequestTTL cannot be negative, got ${shown(ttl)}`;
    throw document.error([...path, 'defaultRequestTTL'], text);
  }
}

function checkLimits(
  limits: Pick<PriorityBandConfig, 'maxBytes' | 'maxRequests' | 'maxTokens'>,
  title: string,
  path: Path,
  document: ConfigurationDocument,
): void {
  for (const [field, name] of [
    ['maxBytes', 'MaxBytes'],
    ['maxRequests', 'MaxRequests'],
    ['maxTokens', 'MaxTokens'],
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
  const template = (field: 'defaultPriorityBand' | 'defaultNegativePriorityBand') => {
    const band = section[field];
    return band === undefined ? {} : { [field]: effectiveBand(band, [...path, field], plugins) };
  };
  return {
    maxBytes: section.maxBytes ?? 0,
    maxRequests: section.maxRequests ?? 0,
    maxTokens: section.maxTokens ?? 0,
    defaultRequestTTL: ttl,
    noEndpointRequestTTL: section.noEndpointRequestTTL ?? ttl,
    maxExpectedWait: section.maxExpectedWait ?? '0s',
    tenantLimits: section.tenantLimits,
    ...template('defaultPriorityBand'),
    ...template('defaultNegativePriorityBand'),
    priorityBands: section.priorityBands.map((band, index) => ({
      priority: band.priority ?? 0,
      ...effectiveBand(band, [...path, 'priorityBands', index], plugins),
    })),
    usageLimitPolicyPluginRef: usageLimit,
    replicas: section.replicas ?? 1,
    enableEviction: section.enableEviction,
    sessions: section.sessions ?? DEFAULT_SESSIONS,
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
    maxTokens: band.maxTokens ?? 0,
    ...(band.defaultRequestTTL === undefined ? {} : { defaultRequestTTL: band.defaultRequestTTL }),
    fairnessPolicyRef: fairness,
    orderingPolicyRef: ordering,
  };
}

/** In a band 0 means the default, not "no limit". */
function orDefault(given: string | number | undefined, otherwise: number): string | number {
  return given === undefined || quantityValue(given) === 0 ? otherwise : given;
}

/** References have been checked before. */
function settingsOf(section: FlowControlConfig, plugins: PluginSet): FlowControlSettings {
  const ttl = section.defaultRequestTTL ?? DEFAULT_TTL;
  const template = (band: PriorityBandConfig | undefined) => band && bandSettings(band, plugins);
  const usageLimit = section.usageLimitPolicyPluginRef || DEFAULT_USAGE_LIMIT;
  const replicas = section.replicas ?? 1;
  return {
    limits: limitsOf(section),
    ttlMs: waitMs(ttl),
    noEndpointTtlMs: waitMs(section.noEndpointRequestTTL ?? ttl),
    maxExpectedWaitMs: waitMs(section.maxExpectedWait ?? '0'),
    bands: section.priorityBands.map((band) => ({ priority: band.priority ?? 0, ...bandSettings(band, plugins) })),
    template: template(section.defaultPriorityBand),
    negativeTemplate: template(section.defaultNegativePriorityBand),
    fallback: bandSettings({}, plugins),
    usageLimit: usageLimitSettings(plugins.resolve(usageLimit, ['usage-limit-policy'], [])),
    tenantLimits: section.tenantLimits.map((limit) => shareOf(limit, replicas)),
    replicas,
    enableEviction: section.enableEviction,
    sessions: sessionSettings(section.sessions ?? DEFAULT_SESSIONS, plugins),
  };
}

function sessionSettings(
  { maxWait, identity, idleLease, forgetAfter, ...settings }: NonNullable<FlowControlConfig['sessions']>,
  plugins: PluginSet,
): SessionSettings {
  const attribute = sessionAttributeOf(identity, plugins);
  return {
    ...settings,
    maxWaitMs: waitMs(maxWait),
    ...(idleLease === undefined ? {} : { idleLeaseMs: durationMilliseconds(idleLease) }),
    ...(forgetAfter === undefined ? {} : { forgetAfterMs: durationMilliseconds(forgetAfter) }),
    ...(attribute === undefined ? {} : { attribute }),
  };
}

/** A tenant's requests reach all pickers alike. */
function shareOf(
  { fairnessId, tokensPerSecond, burstTokens }: TokenBucketSettings,
  replicas: number,
): TokenBucketSettings {
  return { fairnessId, tokensPerSecond: tokensPerSecond / replicas, burstTokens: burstTokens / replicas };
}

function bandSettings(band: PriorityBandConfig, plugins: PluginSet): BandSettings {
  const maxBytes = orDefault(band.maxBytes, DEFAULT_BAND_BYTES);
  const maxRequests = orDefault(band.maxRequests, DEFAULT_BAND_REQUESTS);
  const limits = limitsOf({ maxBytes, maxRequests, maxTokens: band.maxTokens });
  return {
    limits: { ...limits, tokensByRate: limits.tokens === Number.POSITIVE_INFINITY },
    ...(band.defaultRequestTTL === undefined ? {} : { ttlMs: waitMs(band.defaultRequestTTL) }),
    fairness: fairnessSettings(plugins.resolve(band.fairnessPolicyRef || DEFAULT_FAIRNESS, ['fairness-policy'], [])),
    ordering: orderingSettings(plugins.resolve(band.orderingPolicyRef || DEFAULT_ORDERING, ['ordering-policy'], [])),
  };
}

/** Queue settings of a configured ordering policy. */
function orderingSettings({ definition, parameters }: LoadedPlugin): OrderingSettings {
  const settings = definition.orderingSettings?.(parameters) ?? withoutSettings(definition.type, 'orderingSettings');
  return checked(settings, orderingFault(settings), definition.type);
}

/** Queue settings of a configured fairness policy. */
function fairnessSettings({ definition, parameters }: LoadedPlugin): FairnessSettings {
  const settings = definition.fairnessSettings?.(parameters) ?? withoutSettings(definition.type, 'fairnessSettings');
  return checked(settings, fairnessFault(settings), definition.type);
}

/** Gate settings of a configured usage limit policy. */
function usageLimitSettings({ definition, parameters }: LoadedPlugin): UsageLimitSettings {
  const settings =
    definition.usageLimitSettings?.(parameters) ?? withoutSettings(definition.type, 'usageLimitSettings');
  return checked(settings, usageLimitFault(settings), definition.type);
}

/** Only a definition from outside can have settings with a fault: the schemas of the built-in ones exclude it. */
function checked<Settings>(settings: Settings, fault: string | undefined, type: string): Settings {
  if (fault !== undefined) throw new TypeError(`plugin "${type}" cannot be used as a policy: ${fault}`);
  return settings;
}

/** Only a definition from outside can lack the settings of its kind. */
function withoutSettings(type: string, field: string): never {
  throw new TypeError(`plugin "${type}" cannot be used as a policy: its definition has no ${field}`);
}

function limitsOf(given: Pick<PriorityBandConfig, 'maxBytes' | 'maxRequests' | 'maxTokens'>): QueueLimits {
  const bound = (value: string | number | undefined) => quantityValue(value ?? 0) || Number.POSITIVE_INFINITY;
  return { requests: bound(given.maxRequests), bytes: bound(given.maxBytes), tokens: bound(given.maxTokens) };
}

/** Milliseconds of a wait; 0 = it never ends. */
function waitMs(given: string): number {
  return durationMilliseconds(given) || Number.POSITIVE_INFINITY;
}
