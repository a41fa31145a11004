import type { Setting } from './setting.js';

/**
 * `error`: requests fail or go astray in ordinary use; `warning`: a bound that load or long answers meet; `note`: good
 * to know.
 */
export type Severity = 'error' | 'warning' | 'note';

/** A setting of a proxy that limits a picker. */
export interface EnvoyFinding {
  readonly severity: Severity;
  /** Name of the setting, as `max_requests`. */
  readonly setting: string;
  readonly path: Setting['path'];
  /** Effect of the setting, with its value. */
  readonly limits: string;
  readonly remedy: string;
}

/** Properties of the picker that the rules look at. */
export interface PickerNeeds {
  /** Longest wait in the picker's queues in milliseconds; undefined = its configuration was not given. */
  readonly queueWaitMs: number | undefined;
  /** Whether decisions read the body of a request; undefined = not known. */
  readonly requestBody: boolean | undefined;
  /** Whether decisions read bodies of answers; undefined = not known. */
  readonly answerBody: boolean | undefined;
  /** Most destinations that it names for a request; undefined = not known. */
  readonly destinations?: number | undefined;
}

export const NEEDS_UNKNOWN: PickerNeeds = { queueWaitMs: undefined, requestBody: undefined, answerBody: undefined };

/** Makes the finding of a setting. */
export function finding(
  severity: Severity,
  setting: string,
  { path }: Setting,
  limits: string,
  remedy: string,
): EnvoyFinding {
  return { severity, setting, path, limits, remedy };
}

/** A duration for people. */
export function seconds(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`;
}
