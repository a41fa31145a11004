import { parseDuration } from '../scheduling/duration.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';

/** Flow of requests without a fairness id. */
export const DEFAULT_FAIRNESS_ID = 'default-flow';
/** Path of a request without one, as in llm-d-router. */
const DEFAULT_PATH = '/v1/completions';

/**
 * Headers to the picker or from it. They are removed from the request, so that the model server does not see them. The
 * destination header is not in the set, because it is overwritten.
 */
export const CONTROL_HEADERS: ReadonlySet<string> = new Set([
  'x-llm-d-inference-fairness-id',
  'x-gateway-inference-fairness-id',
  'x-llm-d-inference-objective',
  'x-gateway-inference-objective',
  'x-llm-d-model-name-rewrite',
  'x-gateway-model-name-rewrite',
  'x-llm-d-slo-ttft-ms',
  'x-slo-ttft-ms',
  'x-llm-d-slo-tpot-ms',
  'x-slo-tpot-ms',
  'x-gateway-destination-endpoint-subset',
  'x-gateway-destination-endpoint-served',
  'x-llm-d-request-dropped-reason',
  'x-llm-d-pin-host-port',
  'x-pointsman-pool',
  'x-pointsman-profile',
  'x-pointsman-deadline-ms',
  'x-llm-d-inference-ttl',
  'x-pointsman-queue-info',
  'x-pointsman-session-end',
]);

/** The flow that the request names. */
export function namedFairnessId(headers: RequestHeaders): string | undefined {
  return headers.get('x-llm-d-inference-fairness-id') || headers.get('x-gateway-inference-fairness-id') || undefined;
}

/** Tenant or session of a request: its flow in fairness and in the metrics. */
export function fairnessId(headers: RequestHeaders): string {
  return namedFairnessId(headers) ?? DEFAULT_FAIRNESS_ID;
}

/** Time-to-first-token objective in milliseconds after the arrival; undefined = absent, negative or no number. */
export function firstTokenObjectiveMs(headers: RequestHeaders): number | undefined {
  return milliseconds(headers.get('x-llm-d-slo-ttft-ms') || headers.get('x-slo-ttft-ms'));
}

/**
 * Time in milliseconds after the arrival at which the wait of a request ends by the client's own wish, the earlier one
 * of both headers; undefined = none is given, or not as a time.
 */
export function queueDeadlineMs(headers: RequestHeaders): number | undefined {
  const deadline = milliseconds(headers.get('x-pointsman-deadline-ms'));
  const longest = parseDuration(headers.get('x-llm-d-inference-ttl') ?? '') ?? 0;
  if (longest <= 0) return deadline;
  return Math.min(deadline ?? longest, longest);
}

function milliseconds(text: string | undefined): number | undefined {
  const value = text === undefined || text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Model name that the request asks to send upstream. */
export function requestedRewrite(headers: RequestHeaders): string | undefined {
  return headers.get('x-llm-d-model-name-rewrite') || headers.get('x-gateway-model-name-rewrite');
}

/** Path that the headers name, query included; undefined = the proxy sends none, as NGINX Gateway Fabric. */
export function namedPath(headers: RequestHeaders): string | undefined {
  return headers.get(':path') || headers.get('x-original-path') || headers.get('x-forwarded-path') || undefined;
}

/** The path that decides the dialect, query included. Without one, fields of the body may say better later. */
export function requestPath(headers: RequestHeaders): string {
  return namedPath(headers) ?? DEFAULT_PATH;
}
