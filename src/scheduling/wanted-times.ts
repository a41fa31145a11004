import type { Measures } from '../core/training-sample.js';
import type { RequestHeaders } from './request-headers.js';

/** Latency objectives of a request in milliseconds; 0 = none. */
export interface WantedTimes {
  /** Time to the first token, and from each output token to the next. */
  readonly ttftMs: number;
  readonly tpotMs: number;
}

export const NOTHING_WANTED: WantedTimes = { ttftMs: 0, tpotMs: 0 };

/** Latency objectives by objective name. */
export type ObjectiveTimes = ReadonlyMap<string, WantedTimes>;

const TTFT_HEADERS = ['x-llm-d-slo-ttft-ms', 'x-slo-ttft-ms'] as const;
const TPOT_HEADERS = ['x-llm-d-slo-tpot-ms', 'x-slo-tpot-ms'] as const;

/**
 * Reads the latency objectives of a request from its headers; newer names take precedence. The named objective fills in
 * the missing ones.
 */
export function wantedTimes(headers: RequestHeaders, objectives?: ObjectiveTimes): WantedTimes {
  const ttftMs = milliseconds(headers, TTFT_HEADERS);
  const tpotMs = milliseconds(headers, TPOT_HEADERS);
  if (objectives === undefined || objectives.size === 0 || (ttftMs > 0 && tpotMs > 0)) return { ttftMs, tpotMs };
  const name = objectiveName(headers);
  const usual = (name === undefined ? undefined : objectives.get(name)) ?? NOTHING_WANTED;
  return { ttftMs: ttftMs || usual.ttftMs, tpotMs: tpotMs || usual.tpotMs };
}

/** Name of the request's objective, which sets its priority and its latency objectives. */
export function objectiveName(headers: RequestHeaders): string | undefined {
  return headers.get('x-llm-d-inference-objective') || headers.get('x-gateway-inference-objective');
}

/**
 * Whether an answer met the latency objectives of its request. One in one piece shows no time of its own for the first
 * token, and has the time of both objectives together; with one of them alone it says nothing.
 * @returns undefined without objectives, or where the measurements do not tell
 */
export function metTargets({ ttftMs, tpotMs }: WantedTimes, measures: Measures): boolean | undefined {
  if (!(ttftMs > 0 || tpotMs > 0)) return undefined;
  const { outcome, firstOutputMs, perTokenMs, durationMs, outputTokens } = measures;
  if (outcome === 'failed') return false;
  if (outcome !== 'completed') return undefined;
  if (firstOutputMs !== undefined) {
    const isEarly = !(ttftMs > 0) || firstOutputMs <= ttftMs;
    return isEarly && !(tpotMs > 0 && perTokenMs !== undefined && perTokenMs > tpotMs);
  }
  if (!(ttftMs > 0 && tpotMs > 0) || outputTokens === undefined) return undefined;
  return durationMs <= ttftMs + outputTokens * tpotMs;
}

/** Ignores values that are not positive numbers (as llm-d-router does). */
function milliseconds(headers: RequestHeaders, names: readonly string[]): number {
  for (const name of names) {
    const text = headers.get(name);
    if (text === undefined || text.trim() === '') continue;
    const value = Number(text);
    return Number.isFinite(value) && value > 0 ? value : 0;
  }
  return 0;
}
