import type { RequestHeaders } from './types.js';

/** How long a request is willing to wait, in milliseconds; 0 = it does not say. */
export interface WantedTimes {
  /** To its first token, and from each output token to the next. */
  readonly ttftMs: number;
  readonly tpotMs: number;
}

export const NOTHING_WANTED: WantedTimes = { ttftMs: 0, tpotMs: 0 };

const TTFT_HEADERS = ['x-llm-d-slo-ttft-ms', 'x-slo-ttft-ms'] as const;
const TPOT_HEADERS = ['x-llm-d-slo-tpot-ms', 'x-slo-tpot-ms'] as const;

/** Read what a request wants from its headers, the older names behind the newer ones. */
export function wantedTimes(headers: RequestHeaders): WantedTimes {
  return { ttftMs: milliseconds(headers, TTFT_HEADERS), tpotMs: milliseconds(headers, TPOT_HEADERS) };
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
