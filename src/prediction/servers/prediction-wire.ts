import { errorMessage } from '../../runtime/error-message.js';
import type { EndpointOutlook, RequestOutlook } from '../../scheduling/latency-outlook.js';

/** The state of one endpoint, as llm-d-router's prediction and training servers are told it. */
export interface PredictionRow {
  readonly kv_cache_percentage: number;
  readonly input_token_length: number;
  readonly num_request_waiting: number;
  readonly num_request_running: number;
  readonly num_tokens_generated: number;
  readonly prefix_cache_score: number;
  readonly encoder_input_size: number;
  readonly encoder_matched_size: number;
  readonly pod_type?: string;
  readonly prefill_tokens_in_flight: number;
  readonly decode_tokens_in_flight: number;
}

/** Times that a server predicts for one row, in milliseconds. */
export interface PredictedTimes {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

/** A server's answer without the fields that it must have. */
export class UnusableAnswer extends Error {}

function share(value: number): number {
  return Math.min(Math.max(value, 0), 1);
}

/** @param roleLabel label that names the role of an endpoint; empty = none */
export function predictionRow({ promptTokens }: RequestOutlook, of: EndpointOutlook, roleLabel: string): PredictionRow {
  const role = roleLabel === '' ? undefined : of.endpoint.labels[roleLabel];
  return {
    kv_cache_percentage: share(of.kvUsage ?? 0),
    input_token_length: promptTokens,
    num_request_waiting: Math.max(0, Math.round(of.waiting ?? 0)),
    num_request_running: of.inflight,
    // Asks for the first token; llm-d-router's constant.
    num_tokens_generated: 1,
    prefix_cache_score: share(of.held),
    encoder_input_size: 0,
    encoder_matched_size: 0,
    ...(role === undefined || role === '' ? {} : { pod_type: role }),
    prefill_tokens_in_flight: of.prefillTokens,
    decode_tokens_in_flight: 0,
  };
}

/**
 * The times in a bulk answer, by position; undefined where the server failed for a row or left it out.
 * @throws UnusableAnswer
 */
export function predictedTimes(text: string, rows: number): readonly (PredictedTimes | undefined)[] {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch (error) {
    throw new UnusableAnswer(`its answer is no JSON: ${errorMessage(error)}`);
  }
  const { predictions } = (answer ?? {}) as { readonly predictions?: unknown };
  if (!Array.isArray(predictions)) throw new UnusableAnswer('its answer has no list of predictions');
  // Failed rows have to stand in the list as null: otherwise answers cannot be matched to rows.
  if (predictions.length !== rows) {
    throw new UnusableAnswer(`its answer has ${predictions.length} predictions for ${rows} rows`);
  }
  return predictions.map(timesOf);
}

function timesOf(value: unknown): PredictedTimes | undefined {
  const { ttft_ms: ttftMs, tpot_ms: tpotMs } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return isTime(ttftMs) && isTime(tpotMs) ? { ttftMs, tpotMs } : undefined;
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
