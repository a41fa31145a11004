import { DESTINATION } from '../gateway/headers.js';
import { type EnvoyFinding, finding, type PickerNeeds, seconds } from './finding.js';
import type { EnvoyGateway, EnvoyRoute } from './gateway.js';
import { child, durationMsOf, isSet, items, numberOf, type Setting, textOf } from './setting.js';

/** RouteAction.timeout where a route has none. */
const ROUTE_TIMEOUT_DEFAULT_MS = 15_000;
/** HttpConnectionManager.stream_idle_timeout where there is none. */
const IDLE_TIMEOUT_DEFAULT_MS = 300_000;
/** Duration that answers commonly exceed. */
const ANSWER_MS_MIN = 60_000;
/** Duration that some answers exceed. */
const LONG_ANSWER_MS = 600_000;
/** Silence during the prefill of a long prompt. */
const SILENCE_MS_MIN = 60_000;

/** Conditions of `retry_on` under which the request may have reached a model server. */
const REPEATING = ['5xx', 'gateway-error', 'reset', 'retriable-status-codes', 'retriable-headers'];

/** Findings of the routes to model servers. */
export function routeFindings({ routes, manager }: EnvoyGateway, needs: PickerNeeds): readonly EnvoyFinding[] {
  return routes.flatMap((route) => [
    ...timeoutFindings(route, needs),
    ...idleFindings(route, manager),
    ...durationFindings(route),
    ...retryFindings(route),
    ...removalFindings(route),
  ]);
}

function timeoutFindings({ action }: EnvoyRoute, { queueWaitMs }: PickerNeeds): readonly EnvoyFinding[] {
  const setting = child(action, 'timeout');
  const ms = durationMsOf(setting) ?? ROUTE_TIMEOUT_DEFAULT_MS;
  if (ms === 0 || ms > Math.max(LONG_ANSWER_MS, queueWaitMs ?? 0)) return [];
  const shown = isSet(setting) ? seconds(ms) : `not set, so ${seconds(ms)}`;
  const limits = `${shown}: longer answers, streamed ones too, are cut or end in 504`;
  return [
    finding(
      ms < ANSWER_MS_MIN ? 'error' : 'warning',
      'timeout',
      setting,
      limits,
      'set 0s (none) or more than the longest answer takes',
    ),
  ];
}

function idleFindings({ action }: EnvoyRoute, manager: Setting): readonly EnvoyFinding[] {
  const own = child(action, 'idle_timeout');
  const shared = child(manager, 'stream_idle_timeout');
  const setting = isSet(own) ? own : shared;
  const name = isSet(own) ? 'idle_timeout' : 'stream_idle_timeout';
  const ms = durationMsOf(setting) ?? IDLE_TIMEOUT_DEFAULT_MS;
  if (ms === 0 || ms > IDLE_TIMEOUT_DEFAULT_MS) return [];
  const shown = isSet(setting) ? seconds(ms) : `not set, so ${seconds(ms)}`;
  const limits = `${shown}: requests that are silent for so long, in a queue or in prefill, end`;
  return [
    finding(
      ms < SILENCE_MS_MIN ? 'error' : 'warning',
      name,
      setting,
      limits,
      'set idle_timeout of the route above the longest silence',
    ),
  ];
}

function durationFindings({ action }: EnvoyRoute): readonly EnvoyFinding[] {
  const setting = child(action, 'max_stream_duration', 'max_stream_duration');
  const ms = durationMsOf(setting);
  if (ms === undefined || ms === 0 || ms > LONG_ANSWER_MS) return [];
  const limits = `${seconds(ms)}: answers end then, finished or not`;
  return [
    finding(
      ms < ANSWER_MS_MIN ? 'error' : 'warning',
      'max_stream_duration',
      setting,
      limits,
      'remove it, or set more than the longest answer takes',
    ),
  ];
}

function retryFindings({ action, host }: EnvoyRoute): readonly EnvoyFinding[] {
  const own = child(action, 'retry_policy');
  const policy = isSet(own) ? own : child(host, 'retry_policy');
  if (!isSet(policy)) return [];
  const conditions = (textOf(child(policy, 'retry_on')) ?? '').split(',').map((condition) => condition.trim());
  const repeating = conditions.filter((condition) => REPEATING.includes(condition));
  const found: EnvoyFinding[] = [];
  if (repeating.length > 0) {
    const limits =
      `${repeating.join(', ')}: Envoy repeats a request without asking the picker again, to the endpoint that ` +
      'failed, and not at all once its body is beyond the buffer';
    found.push(
      finding(
        'warning',
        'retry_policy',
        child(policy, 'retry_on'),
        limits,
        'keep connect-failure and refused-stream, and let clients retry',
      ),
    );
  }
  for (const name of ['per_try_timeout', 'per_try_idle_timeout']) {
    const setting = child(policy, name);
    const ms = durationMsOf(setting);
    if (ms === undefined || ms === 0 || ms > LONG_ANSWER_MS) continue;
    const limits = `${seconds(ms)}: a longer try is cut and counts as failed`;
    found.push(finding(ms < ANSWER_MS_MIN ? 'error' : 'warning', name, setting, limits, 'remove it'));
  }
  return found;
}

/** Findings of headers that Envoy removes between the picker's answer and the choice of the host. */
function removalFindings({ route, host, table }: EnvoyRoute): readonly EnvoyFinding[] {
  return [route, host, table].flatMap((level) =>
    items(child(level, 'request_headers_to_remove'))
      .filter((header) => textOf(header)?.toLowerCase() === DESTINATION)
      .map((header) => {
        const limits = `${DESTINATION} is removed behind the picker: its choice is lost`;
        return finding(
          'error',
          'request_headers_to_remove',
          header,
          limits,
          'remove it with a header_mutation filter before ext_proc instead',
        );
      }),
  );
}

/** Bodies of requests that a router may repeat are kept up to this bound of the virtual host or route. */
export function requestBufferFindings({ routes }: EnvoyGateway): readonly EnvoyFinding[] {
  return routes.flatMap(({ route, host }) =>
    [route, host].flatMap((level) => {
      const setting = child(level, 'per_request_buffer_limit_bytes');
      const bytes = numberOf(setting);
      if (bytes === undefined) return [];
      const limits = `${bytes}: larger bodies are not repeated when a try fails`;
      return [finding('note', 'per_request_buffer_limit_bytes', setting, limits, 'nothing, unless retries are wanted')];
    }),
  );
}
