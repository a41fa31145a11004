import type { Condition, PickerReading, Severity } from './condition.js';
import { decisionConditions } from './decision-checks.js';
import { endpointConditions } from './endpoint-checks.js';
import { errorConditions } from './error-checks.js';
import { processConditions } from './process-checks.js';
import { trafficConditions } from './traffic-checks.js';

const ORDER: readonly Severity[] = ['error', 'warning', 'note'];

/** Conditions that need attention, the worst first. */
export function diagnosis(reading: PickerReading): readonly Condition[] {
  return [
    ...processConditions(reading),
    ...endpointConditions(reading),
    ...decisionConditions(reading),
    ...trafficConditions(reading),
    ...errorConditions(reading),
  ].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}

/** Exit code of the doctor: 0 = nothing beyond notes, 1 = warnings, 2 = errors. */
export function exitCodeOf(conditions: readonly Condition[]): number {
  if (conditions.some(({ severity }) => severity === 'error')) return 2;
  return conditions.some(({ severity }) => severity === 'warning') ? 1 : 0;
}
