import { DESTINATION } from '../gateway/headers.js';
import { type EnvoyFinding, finding, type PickerNeeds, seconds } from './finding.js';
import type { EnvoyGateway } from './gateway.js';
import { child, durationMsOf, isOn, isSet, items, numberOf, type Setting, textOf } from './setting.js';

/** ExternalProcessor.message_timeout where the configuration has none. */
const MESSAGE_TIMEOUT_DEFAULT_MS = 200;
/** Wait that is usual in a queue. */
const MESSAGE_TIMEOUT_MS_MIN = 10_000;
/** Longest wait of flow control without a setting of its own (`defaultRequestTTL`). */
const QUEUE_WAIT_MS = 60_000;
/** gRPC messages of the picker hold pieces of a body up to this size. */
const MESSAGE_BYTES_MIN = 1 << 20;

const FULL_DUPLEX = 'FULL_DUPLEX_STREAMED';

/** Findings of the processor's settings, and of those that routes put in their place. */
export function processorFindings(gateway: EnvoyGateway, needs: PickerNeeds): readonly EnvoyFinding[] {
  const { processor, routes } = gateway;
  const asked = routes.filter(({ disabled }) => !disabled);
  const overridden = asked.flatMap(({ overrides }) => (overrides === undefined ? [] : [overrides]));
  const replaced = (name: string) => overridden.map((overrides) => child(overrides, name)).filter(isSet);
  const own = asked.length === 0 || asked.length > replaced('processing_mode').length;
  const modes = [...(own ? [child(processor, 'processing_mode')] : []), ...replaced('processing_mode')];
  return [
    ...modes.flatMap((mode) => modeFindings(mode, needs)),
    ...modes.flatMap((mode) => overrideFindings(processor, mode)),
    ...timeoutFindings(processor, needs),
    ...[processor, ...overridden].flatMap(failureFindings),
    ...mutationFindings(processor),
    ...metadataFindings(gateway),
    ...messageFindings(processor),
    ...offFindings(processor),
    ...routes
      .filter(({ disabled }) => disabled)
      .map(({ route }) =>
        finding(
          'warning',
          'disabled',
          child(route, 'typed_per_filter_config'),
          'the picker is not asked on this route: its requests have no destination',
          'remove disabled unless the route leads past the model servers',
        ),
      ),
  ];
}

/** A processing mode under examination. */
interface ExaminedMode {
  /** Value of a setting, or its default. */
  readonly value: (name: string) => string;
  readonly say: (severity: EnvoyFinding['severity'], name: string, limits: string, remedy: string) => void;
}

const HEAD_MODES = ['request_header_mode', 'response_header_mode'];
/** Defaults of ProcessingMode. */
const MODE_DEFAULTS: Readonly<Record<string, string>> = {
  request_header_mode: 'SEND',
  response_header_mode: 'SEND',
  request_body_mode: 'NONE',
  response_body_mode: 'NONE',
  request_trailer_mode: 'SKIP',
  response_trailer_mode: 'SKIP',
};

function modeFindings(mode: Setting, needs: PickerNeeds): readonly EnvoyFinding[] {
  const found: EnvoyFinding[] = [];
  const examined: ExaminedMode = {
    value: (name) => modeOf(mode, name, MODE_DEFAULTS[name]!),
    say: (severity, name, limits, remedy) => found.push(finding(severity, name, child(mode, name), limits, remedy)),
  };
  examineHeads(examined);
  examineRequestBody(examined, needs);
  examineBodies(examined);
  examineAnswerBody(examined, needs);
  examineTrailers(examined);
  return found;
}

function examineHeads({ value, say }: ExaminedMode): void {
  for (const name of HEAD_MODES) {
    if (value(name) !== 'SKIP') continue;
    const lost =
      name === 'request_header_mode'
        ? 'the picker sees no request and picks nothing'
        : 'the picker does not see the status: failing endpoints stay in';
    say('error', name, `SKIP: ${lost}`, 'set SEND');
  }
}

function examineRequestBody({ value, say }: ExaminedMode, { requestBody }: PickerNeeds): void {
  if (value('request_body_mode') !== 'NONE' || requestBody === false) return;
  say(
    requestBody === true ? 'error' : 'warning',
    'request_body_mode',
    'NONE: no prompt reaches the picker, so nothing is routed by prefix, length or model',
    `set ${FULL_DUPLEX}`,
  );
}

function examineBodies({ value, say }: ExaminedMode): void {
  for (const name of ['request_body_mode', 'response_body_mode']) {
    const body = value(name);
    if (body === 'NONE' || body === FULL_DUPLEX) continue;
    const severity = name === 'request_body_mode' && body === 'BUFFERED' ? 'warning' : 'error';
    say(severity, name, `${body}: ${wrongBody(name, body)}`, `set ${FULL_DUPLEX}, or NONE where no decision reads it`);
  }
}

function examineAnswerBody({ value, say }: ExaminedMode, { answerBody }: PickerNeeds): void {
  const name = 'response_body_mode';
  const answer = value(name);
  if (answer === 'NONE' && answerBody !== false) {
    say(
      answerBody === true ? 'warning' : 'note',
      name,
      'NONE: no token counts, no times of tokens, no learned costs',
      `set ${FULL_DUPLEX} where decisions or metrics need them`,
    );
  }
  if (answer === FULL_DUPLEX && answerBody === false) {
    say(
      'note',
      name,
      `${FULL_DUPLEX}: chunks of answers come although no decision reads them`,
      'set NONE and keep response_trailer_mode: SEND',
    );
  }
}

function examineTrailers({ value, say }: ExaminedMode): void {
  for (const side of ['request', 'response']) {
    const name = `${side}_trailer_mode`;
    if (value(name) === 'SEND') continue;
    if (value(`${side}_body_mode`) === FULL_DUPLEX)
      say('error', name, `SKIP: Envoy refuses ${FULL_DUPLEX} bodies without their trailers`, 'set SEND');
    else if (side === 'response')
      say(
        'error',
        name,
        'SKIP: the charge of a request ends with the head of its answer, so load is counted too low',
        'set SEND',
      );
  }
}

function wrongBody(name: string, value: string): string {
  if (value === 'STREAMED')
    return name === 'request_body_mode'
      ? 'the head goes on before the body has been read: the picker refuses each request with 500'
      : 'Envoy passes each chunk on in step with a reply';
  if (value === 'BUFFERED' && name === 'request_body_mode')
    return (
      'Envoy holds bodies up to per_connection_buffer_limit_bytes, 413 beyond, ' +
      'and message_timeout bounds each wait'
    );
  if (name === 'response_body_mode') return 'a streamed answer is held back until its end';
  return 'bodies above per_connection_buffer_limit_bytes are refused with 413, or cut when partial';
}

/** Mode names; a dump leaves the first one of each list out. */
function modeOf(mode: Setting, name: string, fallback: string): string {
  const value = textOf(child(mode, name));
  return value === undefined || value === 'DEFAULT' ? fallback : value;
}

function overrideFindings(processor: Setting, mode: Setting): readonly EnvoyFinding[] {
  const allowed = child(processor, 'allow_mode_override');
  const duplex = ['request_body_mode', 'response_body_mode'].some((name) => modeOf(mode, name, 'NONE') === FULL_DUPLEX);
  if (!isOn(allowed) || !duplex) return [];
  const limits = `true: Envoy ignores mode_override while a body mode is ${FULL_DUPLEX}`;
  return [
    finding('note', 'allow_mode_override', allowed, limits, 'choose other modes by route: ExtProcPerRoute.overrides'),
  ];
}

function timeoutFindings(processor: Setting, { queueWaitMs }: PickerNeeds): readonly EnvoyFinding[] {
  const setting = child(processor, 'message_timeout');
  const ms = durationMsOf(setting) ?? MESSAGE_TIMEOUT_DEFAULT_MS;
  const wanted = queueWaitMs ?? QUEUE_WAIT_MS;
  if (queueWaitMs === 0 ? ms > MESSAGE_TIMEOUT_DEFAULT_MS : ms > wanted) return [];
  const known = isSet(setting) ? seconds(ms) : `not set, so ${seconds(ms)}`;
  const duplex = modeOf(child(processor, 'processing_mode'), 'request_body_mode', 'NONE') === FULL_DUPLEX;
  // Measured with Envoy 1.40: a wait of 8 s ended after message_timeout with bodies NONE, and not with full-duplex
  // ones.
  const limits = duplex
    ? `${known}: in versions of Envoy that apply it to ${FULL_DUPLEX} (1.40 does not), a wait in the picker's queue ` +
      'ends in 504'
    : `${known}: a longer wait in the picker's queue ends in 504`;
  const severity = !duplex && ms <= MESSAGE_TIMEOUT_MS_MIN ? 'error' : 'warning';
  const remedy =
    'set more than the longest wait of the picker (defaultRequestTTL), such as ' +
    `${seconds(Math.max(1_000_000, wanted))}`;
  return [finding(severity, 'message_timeout', setting, limits, remedy)];
}

function failureFindings(settings: Setting): readonly EnvoyFinding[] {
  const setting = child(settings, 'failure_mode_allow');
  if (!isOn(setting)) return [];
  const limits = 'true: when the picker is away, requests go on unpicked, past queues and limits';
  return [
    finding(
      'warning',
      'failure_mode_allow',
      setting,
      limits,
      'set false, or see deploy/envoy/envoy-fail-open.yaml for what it needs',
    ),
  ];
}

/** HeaderMutationRules that would drop the destination. */
function mutationFindings(processor: Setting): readonly EnvoyFinding[] {
  const rules = child(processor, 'mutation_rules');
  const allow = child(rules, 'allow_expression');
  const deny = child(rules, 'disallow_expression');
  const all = child(rules, 'disallow_all');
  const allowed = isSet(allow) ? matches(child(allow, 'regex'), DESTINATION) : !isOn(all);
  const culprit = matches(child(deny, 'regex'), DESTINATION) ? deny : allowed ? undefined : isSet(allow) ? allow : all;
  if (culprit === undefined) return [];
  const limits = `the picker may not set ${DESTINATION}: its choice is dropped`;
  return [finding('error', 'mutation_rules', culprit, limits, `allow ${DESTINATION}`)];
}

function matches(regex: Setting, text: string): boolean {
  const pattern = textOf(regex);
  if (pattern === undefined) return false;
  try {
    return new RegExp(`^(?:${pattern})$`).test(text);
  } catch {
    // RE2 knows forms that JavaScript does not; such a rule is not judged.
    return false;
  }
}

function metadataFindings({ processor }: EnvoyGateway): readonly EnvoyFinding[] {
  const options = child(processor, 'metadata_options');
  const names = (side: string) => items(child(options, side, 'untyped')).map(textOf);
  if (names('forwarding_namespaces').includes('envoy.lb.subset_hint')) return [];
  const limits = 'a subset hint of the gateway does not reach the picker';
  return [
    finding(
      'note',
      'metadata_options',
      options,
      limits,
      'add envoy.lb.subset_hint to forwarding_namespaces.untyped where the gateway sets one',
    ),
  ];
}

function messageFindings(processor: Setting): readonly EnvoyFinding[] {
  const grpc = child(processor, 'grpc_service');
  const setting = child(grpc, 'envoy_grpc', 'max_receive_message_length');
  const bytes = numberOf(setting);
  const google = isSet(child(grpc, 'google_grpc'))
    ? [
        finding(
          'warning',
          'google_grpc',
          child(grpc, 'google_grpc'),
          'a client of its own, without the limits and health checks of a cluster',
          'use envoy_grpc with a cluster',
        ),
      ]
    : [];
  if (bytes === undefined || bytes === 0 || bytes >= MESSAGE_BYTES_MIN) return google;
  const limits = `${bytes}: larger messages of the picker (pieces of a request's body) end the request with 500`;
  return [
    ...google,
    finding(
      'error',
      'max_receive_message_length',
      setting,
      limits,
      `leave it out, or set ${MESSAGE_BYTES_MIN} or more`,
    ),
  ];
}

/** Settings that turn the picker's answers off. */
function offFindings(processor: Setting): readonly EnvoyFinding[] {
  const off: readonly (readonly [string, string])[] = [
    ['observability_mode', 'the picker is told of requests and its answers are ignored'],
    [
      'disable_immediate_response',
      'refusals of the picker (429, 503) are ignored: its requests go on without a destination',
    ],
  ];
  return off
    .map(([name, limits]) => [name, child(processor, name), limits] as const)
    .filter(([, setting]) => isOn(setting))
    .map(([name, setting, limits]) => finding('error', name, setting, `true: ${limits}`, 'remove it'));
}
