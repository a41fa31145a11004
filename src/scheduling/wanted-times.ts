import type { RequestHeaders } from './request-headers.js';

/** How long a request is willing to wait, in milliseconds; 0 = it does not say. */
export interface WantedTimes {
  /** To its first token, and from each output token to the next. */
  readonly ttftMs: number;
  readonly tpotMs: number;
}

export const NOTHING_WANTED: WantedTimes = { ttftMs: 0, tpotMs: 0 };

/** What the requests of an objective want, by its name. */
export type ObjectiveTimes = ReadonlyMap<string, WantedTimes>;

const TTFT_HEADERS = ['x-llm-d-slo-ttft-ms', 'x-slo-ttft-ms'] as const;
const TPOT_HEADERS = ['x-llm-d-slo-tpot-ms', 'x-slo-tpot-ms'] as const;

/**
 * Read what a request wants from its headers, the older names behind the newer ones. What it does not say itself, its objective
 * says, when one is named that is known to want something.
 */
export function wantedTimes(headers: RequestHeaders, objectives?: ObjectiveTimes): WantedTimes {
  const ttftMs = milliseconds(headers, TTFT_HEADERS);
  const tpotMs = milliseconds(headers, TPOT_HEADERS);
  if (objectives === undefined || objectives.size === 0 || (ttftMs > 0 && tpotMs > 0)) return { ttftMs, tpotMs };
  const name = objectiveName(headers);
  const usual = (name === undefined ? undefined : objectives.get(name)) ?? NOTHING_WANTED;
  return { ttftMs: ttftMs || usual.ttftMs, tpotMs: tpotMs || usual.tpotMs };
}

/** Name of the objective of a request: it sets the priority, and what is wanted. */
export function objectiveName(headers: RequestHeaders): string | undefined {
  return headers.get('x-llm-d-inference-objective') || headers.get('x-gateway-inference-objective');
}

/** What is no number above 0 says nothing, as in the incumbent: a bad wish does not cost the request. */
function milliseconds(headers: RequestHeaders, names: readonly string[]): number {
  for (const name of names) {
    const text = headers.get(name);
    if (text === undefined || text.trim() === '') continue;
    const value = Number(text);
    return Number.isFinite(value) && value > 0 ? value : 0;
  }
  return 0;
}
