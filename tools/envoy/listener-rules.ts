import { DESTINATION } from '../gateway/headers.js';
import { windowFindings } from './cluster-rules.js';
import { type EnvoyFinding, finding, type PickerNeeds, seconds } from './finding.js';
import { configOf, type EnvoyGateway } from './gateway.js';
import { child, durationMsOf, isOn, isSet, items, numberOf, type Setting, textOf, typeOf } from './setting.js';

/** Listener.per_connection_buffer_limit_bytes where there is none. */
const BUFFER_DEFAULT_BYTES = 1 << 20;
/** Limit below which a body reaches the picker in very many messages. */
const BUFFER_BYTES_MIN = 16_384;
/** `--grpc-max-recv-msg-size` of the picker without the flag. */
const PICKER_MESSAGE_BYTES = 4 << 20;
/** Bytes of the body of a long prompt. */
const BODY_BYTES_MIN = 4 << 20;
const STREAMS_MIN = 100;
const ANSWER_MS_MIN = 600_000;
const QUEUE_WAIT_MS = 60_000;

/**
 * Findings of a listener, its connection manager and the filters around the processor.
 * @param isBounded the clusters send requests to hosts of their own only, whatever a header names
 */
export function listenerFindings(
  gateway: EnvoyGateway,
  needs: PickerNeeds,
  isBounded: boolean,
): readonly EnvoyFinding[] {
  const { listener, manager } = gateway;
  const http2 = child(manager, 'http2_protocol_options');
  return [
    ...bufferFindings(listener, child(gateway.processor, 'processing_mode')),
    ...requestTimeoutFindings(manager, needs),
    ...lifetimeFindings(manager),
    ...streamFindings(http2),
    ...windowFindings(http2),
    ...stripFindings(gateway, isBounded),
    ...filterFindings(gateway),
  ];
}

function bufferFindings(listener: Setting, mode: Setting): readonly EnvoyFinding[] {
  const setting = child(listener, 'per_connection_buffer_limit_bytes');
  const bytes = numberOf(setting) ?? BUFFER_DEFAULT_BYTES;
  const buffered = ['request_body_mode', 'response_body_mode'].filter((name) =>
    (textOf(child(mode, name)) ?? '').startsWith('BUFFERED'),
  );
  if (buffered.length > 0) {
    const limits =
      `${bytes}: bodies are ${buffered.map((name) => `held whole (${name})`).join(' and ')}, and larger ones end in ` +
      '413 or 500';
    return [
      finding('error', 'per_connection_buffer_limit_bytes', setting, limits, 'stream the bodies: FULL_DUPLEX_STREAMED'),
    ];
  }
  if (bytes < BUFFER_BYTES_MIN) {
    const limits = `${bytes}: bodies come to the picker in messages of about so many bytes, each of which costs time`;
    return [finding('warning', 'per_connection_buffer_limit_bytes', setting, limits, 'set 32768')];
  }
  if (bytes <= PICKER_MESSAGE_BYTES) return [];
  const limits =
    `${bytes}: a message may be larger than the picker takes (--grpc-max-recv-msg-size, 4 MiB), which ends its ` +
    'request';
  return [finding('warning', 'per_connection_buffer_limit_bytes', setting, limits, 'set 32768')];
}

function requestTimeoutFindings(manager: Setting, { queueWaitMs }: PickerNeeds): readonly EnvoyFinding[] {
  const setting = child(manager, 'request_timeout');
  const ms = durationMsOf(setting);
  const wanted = queueWaitMs ?? QUEUE_WAIT_MS;
  if (ms === undefined || ms === 0 || ms > wanted) return [];
  const limits =
    `${seconds(ms)}: it runs until the last byte goes to a model server, so a longer wait in the picker's queue ends ` +
    'in 408';
  return [finding('warning', 'request_timeout', setting, limits, `set more than ${seconds(wanted)}`)];
}

function lifetimeFindings(manager: Setting): readonly EnvoyFinding[] {
  const setting = child(manager, 'common_http_protocol_options', 'max_stream_duration');
  const ms = durationMsOf(setting);
  if (ms === undefined || ms === 0 || ms > ANSWER_MS_MIN) return [];
  const limits = `${seconds(ms)}: every request ends then, in the middle of its answer too`;
  return [
    finding('error', 'max_stream_duration', setting, limits, 'remove it, or set more than the longest answer takes'),
  ];
}

function streamFindings(http2: Setting): readonly EnvoyFinding[] {
  const setting = child(http2, 'max_concurrent_streams');
  const streams = numberOf(setting);
  if (streams === undefined || streams >= STREAMS_MIN) return [];
  const limits = `${streams} requests at once on a client's connection; more wait in the client`;
  return [finding('warning', 'max_concurrent_streams', setting, limits, `set ${STREAMS_MIN} or more`)];
}

/**
 * The destination of a client must not reach a cluster that goes to any address. Elsewhere it chooses one of the
 * cluster's hosts, and only when the picker is away.
 */
function stripFindings({ manager, before, processor }: EnvoyGateway, isBounded: boolean): readonly EnvoyFinding[] {
  if (before.some(strips) || items(child(manager, 'early_header_mutation_extensions')).some(strips)) return [];
  const open = isOn(child(processor, 'failure_mode_allow'));
  if (isBounded && !open) return [];
  const limits = `a client's own ${DESTINATION} is not removed${open ? ', and counts when the picker is away' : ''}`;
  const remedy = 'add a header_mutation filter that removes it before ext_proc (deploy/envoy/envoy.yaml)';
  const severity = isBounded ? 'note' : open ? 'error' : 'warning';
  return [finding(severity, 'header_mutation', child(manager, 'http_filters'), limits, remedy)];
}

function strips(filter: Setting): boolean {
  const config = configOf(filter);
  const mutations = [...items(child(config, 'mutations', 'request_mutations')), ...items(child(config, 'mutations'))];
  return (
    typeOf(config) === 'HeaderMutation' &&
    mutations.some((one) => textOf(child(one, 'remove'))?.toLowerCase() === DESTINATION)
  );
}

function filterFindings({ before, behind }: EnvoyGateway): readonly EnvoyFinding[] {
  const buffers = [...before, ...behind].flatMap((filter) => {
    const config = configOf(filter);
    if (typeOf(config) !== 'Buffer') return [];
    const setting = child(config, 'max_request_bytes');
    const bytes = numberOf(setting) ?? 0;
    const limits = `${bytes}: larger request bodies end in 413, and all are held until they are complete`;
    return [
      finding(
        bytes < BODY_BYTES_MIN ? 'error' : 'warning',
        'max_request_bytes',
        setting,
        limits,
        'remove the buffer filter: the picker reads a body while it arrives',
      ),
    ];
  });
  const compressors = behind
    .filter((filter) => typeOf(configOf(filter)) === 'Compressor' && isSet(configOf(filter)))
    .map((filter) =>
      finding(
        'warning',
        'compressor',
        filter,
        'answers are compressed before the picker sees them: no token counts',
        'put the compressor before ext_proc',
      ),
    );
  return [...buffers, ...compressors];
}
