import type {
  FairnessSettings,
  FlowWeights,
  OrderingSettings,
  UsageLimitSettings,
} from '../contract/queue-settings.js';

/** Bounds on the weight of a flow: within them the accounts of flows stay exact numbers. */
export const WEIGHT_MIN = 1e-6;
export const WEIGHT_MAX = 1e6;

/** Whether a value is a number from `min` to `max`. */
function isWithin(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max;
}

function faultOf(field: string, value: unknown, min: number, max: number): string | undefined {
  return isWithin(value, min, max) ? undefined : `${field} must be a number from ${min} to ${max}, got ${value}`;
}

function faultOfWeights(weights: FlowWeights): string | undefined {
  if (typeof weights !== 'object' || weights === null) return `weights must be an object, got ${weights}`;
  for (const [flow, weight] of Object.entries(weights)) {
    const fault = faultOf(`weights.${flow}`, weight, WEIGHT_MIN, WEIGHT_MAX);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const { MAX_VALUE } = Number;
const { POSITIVE_INFINITY } = Number;

/**
 * Fault in the settings of a fairness policy, one line; undefined = none. Definitions from outside have no type check,
 * and a number that is none would leave the queues without a next request.
 */
export function fairnessFault(settings: FairnessSettings): string | undefined {
  switch (settings.kind) {
    case 'global-strict':
    case 'round-robin':
      return undefined;
    case 'start-time':
      return faultOfWeights(settings.weights);
    case 'deficit-round-robin':
      return faultOfWeights(settings.weights) ?? faultOf('quantumTokens', settings.quantumTokens, 1, MAX_VALUE);
    case 'program-aware':
      return (
        faultOf('serviceWeight', settings.serviceWeight, 0, MAX_VALUE) ??
        faultOf('headWaitWeight', settings.headWaitWeight, 0, MAX_VALUE) ??
        faultOf('halfLifeMs', settings.halfLifeMs, Number.MIN_VALUE, POSITIVE_INFINITY)
      );
    case 'turn-priority':
      return (
        faultOf('timeWeight', settings.timeWeight, 0, MAX_VALUE) ??
        faultOf('inactivityMs', settings.inactivityMs, Number.MIN_VALUE, POSITIVE_INFINITY) ??
        faultOf('forgetMs', settings.forgetMs, Number.MIN_VALUE, POSITIVE_INFINITY)
      );
    default:
      return unknownKind(settings, [
        'global-strict',
        'round-robin',
        'program-aware',
        'turn-priority',
        'start-time',
        'deficit-round-robin',
      ]);
  }
}

/** Fault in the settings of an ordering policy, one line; undefined = none. */
export function orderingFault(settings: OrderingSettings): string | undefined {
  switch (settings.kind) {
    case 'arrival':
    case 'deadline':
    case 'first-token-objective':
      return undefined;
    case 'shortest-first':
      return (
        faultOf('msPerToken', settings.msPerToken, 0, MAX_VALUE) ??
        faultOf('ageBoundMs', settings.ageBoundMs, 0, POSITIVE_INFINITY)
      );
    default:
      return unknownKind(settings, ['arrival', 'deadline', 'first-token-objective', 'shortest-first']);
  }
}

/** Fault in the settings of a usage limit policy, one line; undefined = none. */
export function usageLimitFault(settings: UsageLimitSettings): string | undefined {
  switch (settings.kind) {
    case 'soft-reflective':
      return undefined;
    case 'static':
      return faultOf('threshold', settings.threshold, Number.MIN_VALUE, 1);
    case 'holdback':
      return faultOf('minCeiling', settings.minCeiling, 0, 1) ?? faultOf('maxCeiling', settings.maxCeiling, 0, 1);
    default:
      return unknownKind(settings, ['static', 'holdback', 'soft-reflective']);
  }
}

function unknownKind(settings: { readonly kind?: unknown }, kinds: readonly string[]): string {
  return `kind must be one of ${kinds.join(', ')}, got ${settings.kind}`;
}
