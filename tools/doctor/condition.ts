import type { HealthReport } from '../../src/operations/health-report.js';
import type { Samples } from './exposition.js';

/**
 * `error`: requests fail now; `warning`: they will, or are placed worse than they could be; `note`: odd, and harmless.
 */
export type Severity = 'error' | 'warning' | 'note';

/** Condition of a picker that needs attention. */
export interface Condition {
  readonly severity: Severity;
  /** Part of the picker that the condition concerns. */
  readonly about: string;
  readonly text: string;
  readonly remedy: string;
}

/** Requests in the queues. */
export interface WaitingRequests {
  readonly count: number;
  readonly why: string;
  /** Whether no endpoint has room. */
  readonly isFull: boolean;
  /** Wait of the oldest of them so far, in milliseconds. */
  readonly longestMs: number;
}

/** Readings of one picker. */
export interface PickerReading {
  readonly samples: Samples;
  /** Earlier metrics page, by which rising counters are known; undefined = the page was read once. */
  readonly earlier: Samples | undefined;
  /** Undefined = the page is not readable. */
  readonly health: HealthReport | undefined;
  /** Reason why `health` is missing. */
  readonly unreadable: string | undefined;
  /** Reason why requests wait in the queues; undefined = none wait, or flow control is off. */
  readonly waiting: WaitingRequests | undefined;
  /** Other pools of the process that are not ready, with the reasons. */
  readonly otherPools: readonly { readonly name: string; readonly unready: readonly string[] }[];
  /** Reason why the file of --pools is not in effect; undefined = it is, or there is none. */
  readonly poolsProblem?: string | undefined;
  /** Clock of the picker minus the clock here, and the uncertainty, in milliseconds. */
  readonly clock: { readonly skewMs: number; readonly uncertainMs: number } | undefined;
}

export function condition(severity: Severity, about: string, text: string, remedy: string): Condition {
  return { severity, about, text, remedy };
}

const NAMES_MAX = 3;

/** The first names of a list, and how many more there are. */
export function named(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return `${names.slice(0, NAMES_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Bytes as a rounded text with its unit. */
export function bytesText(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
}

/** A time as a rounded text with its unit. */
export function durationText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
