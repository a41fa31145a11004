import { DESTINATION } from '../gateway/headers.js';
import { type EnvoyFinding, finding, type PickerNeeds, seconds } from './finding.js';
import { child, durationMsOf, entries, isSet, items, numberOf, type Setting, textOf, typeOf } from './setting.js';

/** Envoy's bound on connections, pending requests and requests of a cluster without circuit breakers. */
const BREAKER_DEFAULT = 1024;
/** Bound below which a finding is an error: some tens of users reach it. */
const BREAKER_MIN = 128;
/** Requests in flight that a gateway of one pool should hold. */
const BREAKER_WANTED = 10_000;
/** Streams of a connection below which requests wait for connections. */
const STREAMS_MIN = 100;
/** Largest window that is reported: the initial one of HTTP/2 (RFC 9113), rounded up. */
const WINDOW_BYTES_MIN = 65_536;
/** Shortest life of a stream that long answers fit into. */
const ANSWER_MS_MIN = 600_000;
/** Header of ORIGINAL_DST clusters that name none. */
const ORIGINAL_DST_HEADER = 'x-envoy-original-dst-host';

/** Findings of the picker's cluster: every request holds a stream of it until its answer has ended. */
export function pickerClusterFindings(cluster: Setting): readonly EnvoyFinding[] {
  const options = httpOptions(cluster);
  const http2 = http2Options(cluster, options);
  const found = [...breakerFindings(cluster, 'the picker', true), ...lifetimeFindings(options, 'the picker')];
  if (http2 === undefined) {
    const limits = 'the cluster of the picker speaks HTTP/1: gRPC needs HTTP/2, so every request fails with 500';
    found.push(
      finding('error', 'http2_protocol_options', cluster, limits, 'add explicit_http_config.http2_protocol_options'),
    );
  } else {
    found.push(...windowFindings(http2), ...streamFindings(http2));
  }
  // A control plane leaves out the hosts of EDS that are not ready.
  if (!isSet(child(cluster, 'health_checks')) && textOf(child(cluster, 'type')) !== 'EDS') {
    const limits = 'a picker that drains still gets requests, because Envoy does not ask it';
    const remedy = 'add a grpc_health_check of envoy.service.ext_proc.v3.ExternalProcessor';
    found.push(finding('warning', 'health_checks', child(cluster, 'health_checks'), limits, remedy));
  }
  if (!isKnownToPicker(cluster)) found.push(shareFinding(cluster));
  return found;
}

/** Whether the picker knows the proxy by more than its address, so that it has no share by address. */
function isKnownToPicker(cluster: Setting): boolean {
  const tls = child(cluster, 'transport_socket', 'typed_config', 'common_tls_context');
  const certificates = ['tls_certificates', 'tls_certificate_sds_secret_configs'];
  if (certificates.some((name) => items(child(tls, name)).length > 0)) return true;
  const hosts = items(child(cluster, 'load_assignment', 'endpoints')).flatMap((place) =>
    items(child(place, 'lb_endpoints')),
  );
  return hosts.length > 0 && hosts.every((host) => isSet(child(host, 'endpoint', 'address', 'pipe')));
}

function shareFinding(cluster: Setting): EnvoyFinding {
  const limits =
    'no client certificate: the picker knows this proxy by its address, which has a share beside other addresses';
  const remedy = 'where several proxies with unequal load ask one picker, name them in --trusted-proxies of the picker';
  return finding('note', 'transport_socket', child(cluster, 'transport_socket'), limits, remedy);
}

/** Findings of a cluster of model servers. @param spare the cluster serves only requests that nothing was picked for */
export function engineClusterFindings(
  cluster: Setting,
  spare: boolean,
  { destinations = 1 }: PickerNeeds,
): readonly EnvoyFinding[] {
  return [
    ...(destinations > 1 ? listFindings(cluster, destinations) : []),
    ...breakerFindings(cluster, 'the model servers', false),
    ...lifetimeFindings(httpOptions(cluster), 'the model servers'),
    ...(spare || honours(cluster) ? [] : [balanceFinding(cluster)]),
  ];
}

/** A cluster with one address cannot be given a list: Envoy takes a list for a wrong address. */
function listFindings(cluster: Setting, destinations: number): readonly EnvoyFinding[] {
  const original = child(cluster, 'original_dst_lb_config');
  if (textOf(child(cluster, 'type')) !== 'ORIGINAL_DST' || !isSet(child(original, 'use_http_header'))) return [];
  const named = `the picker names up to ${destinations} destinations`;
  const limits = `${named}, and ORIGINAL_DST takes one address: requests get 503`;
  const remedy = 'use the policy override_host, or set maxNumOfEndpoints: 1 in the configuration of the picker';
  return [finding('error', 'use_http_header', child(original, 'use_http_header'), limits, remedy)];
}

/** Whether a cluster sends a request to the destination that the picker has put into it. */
export function honours(cluster: Setting): boolean {
  const original = child(cluster, 'original_dst_lb_config');
  if (textOf(child(cluster, 'type')) === 'ORIGINAL_DST') {
    const byHeader = child(original, 'use_http_header').value === true;
    const byMetadata = isSet(child(original, 'metadata_key'));
    return (byHeader && headerOf(original) === DESTINATION) || byMetadata;
  }
  return overrideSources(cluster).some(
    (source) => textOf(child(source, 'header')) === DESTINATION || isSet(child(source, 'metadata')),
  );
}

/** Whether a cluster sends a request to whatever address its destination header names. */
export function takesAnyAddress(cluster: Setting): boolean {
  const original = child(cluster, 'original_dst_lb_config');
  const byHeader = child(original, 'use_http_header').value === true && headerOf(original) === DESTINATION;
  return textOf(child(cluster, 'type')) === 'ORIGINAL_DST' && byHeader;
}

function headerOf(original: Setting): string {
  return textOf(child(original, 'http_header_name')) ?? ORIGINAL_DST_HEADER;
}

/** Sources of the load balancing policy `override_host`. */
function overrideSources(cluster: Setting): readonly Setting[] {
  return items(child(cluster, 'load_balancing_policy', 'policies'))
    .map((policy) => child(policy, 'typed_extension_config', 'typed_config'))
    .filter((config) => typeOf(config) === 'OverrideHost')
    .flatMap((config) => [
      ...items(child(config, 'override_host_sources')),
      ...items(child(config, 'primary_override_sources')),
    ]);
}

function balanceFinding(cluster: Setting): EnvoyFinding {
  const original = child(cluster, 'original_dst_lb_config');
  if (textOf(child(cluster, 'type')) === 'ORIGINAL_DST') {
    const limits =
      `the destination is not read from ${DESTINATION}, but from ` +
      (child(original, 'use_http_header').value === true
        ? headerOf(original)
        : 'the address that the client connected to');
    return finding(
      'error',
      'original_dst_lb_config',
      original,
      limits,
      `set use_http_header: true and http_header_name: ${DESTINATION}`,
    );
  }
  const limits = 'the cluster balances by itself: what the picker chooses has no effect';
  const policy = `the policy override_host with the header ${DESTINATION}`;
  const remedy = `use type: ORIGINAL_DST with use_http_header, or ${policy}`;
  return finding('error', 'lb_policy', child(cluster, 'lb_policy'), limits, remedy);
}

const BREAKERS = ['max_connections', 'max_pending_requests', 'max_requests'] as const;

function breakerFindings(cluster: Setting, whose: string, isPicker: boolean): readonly EnvoyFinding[] {
  const breakers = child(cluster, 'circuit_breakers');
  const thresholds = items(child(breakers, 'thresholds')).find((each) => {
    const priority = textOf(child(each, 'priority'));
    return priority === undefined || priority === 'DEFAULT';
  });
  return BREAKERS.flatMap((name): EnvoyFinding[] => {
    const setting = thresholds === undefined ? breakers : child(thresholds, name);
    const given = thresholds === undefined ? undefined : numberOf(setting);
    const bound = given ?? BREAKER_DEFAULT;
    // HTTP/2 carries many requests on a connection, so few connections suffice for the picker.
    const wanted =
      isPicker && name === 'max_connections' ? 1 : given === undefined ? BREAKER_DEFAULT + 1 : BREAKER_DEFAULT;
    if (bound >= wanted) return [];
    const shown = given === undefined ? `not set, so ${bound}` : String(bound);
    const limits = `${shown} of ${whose}: ${brokenBy(name, isPicker)}`;
    return [finding(bound < BREAKER_MIN ? 'error' : 'warning', name, setting, limits, `set ${BREAKER_WANTED} or more`)];
  });
}

function brokenBy(name: (typeof BREAKERS)[number], isPicker: boolean): string {
  const end = isPicker ? '500' : '503 overflow';
  if (name === 'max_requests') return `more requests at once, each until the end of its answer, end in ${end}`;
  if (name === 'max_connections')
    return 'a model server over HTTP/1 needs a connection for each request; more of them wait';
  return `more requests that wait for a connection end in ${end}`;
}

/** HttpProtocolOptions of a cluster. */
function httpOptions(cluster: Setting): Setting {
  const found = entries(child(cluster, 'typed_extension_protocol_options')).find(
    ([, options]) => typeOf(options) === 'HttpProtocolOptions',
  );
  return found?.[1] ?? { path: cluster.path, value: undefined };
}

function http2Options(cluster: Setting, options: Setting): Setting | undefined {
  const places = [
    child(options, 'explicit_http_config', 'http2_protocol_options'),
    child(options, 'auto_config', 'http2_protocol_options'),
    child(options, 'use_downstream_protocol_config', 'http2_protocol_options'),
    child(cluster, 'http2_protocol_options'),
  ];
  return places.find(isSet) ?? [child(options, 'auto_config')].find(isSet);
}

function streamFindings(http2: Setting): readonly EnvoyFinding[] {
  const setting = child(http2, 'max_concurrent_streams');
  const streams = numberOf(setting);
  if (streams === undefined || streams >= STREAMS_MIN) return [];
  const limits = `${streams} requests on a connection to the picker; more open further connections`;
  return [finding('warning', 'max_concurrent_streams', setting, limits, `set ${BREAKER_WANTED} or more`)];
}

/** Findings of the windows that bodies flow through. */
export function windowFindings(http2: Setting): readonly EnvoyFinding[] {
  return ['initial_stream_window_size', 'initial_connection_window_size'].flatMap((name) => {
    const setting = child(http2, name);
    const bytes = numberOf(setting);
    if (bytes === undefined || bytes > WINDOW_BYTES_MIN) return [];
    const limits = `${bytes} bytes: bodies wait for an update of the window after each of them`;
    return [finding('warning', name, setting, limits, 'set 1048576 or more')];
  });
}

function lifetimeFindings(options: Setting, whose: string): readonly EnvoyFinding[] {
  const setting = child(options, 'common_http_protocol_options', 'max_stream_duration');
  const ms = durationMsOf(setting);
  if (ms === undefined || ms === 0 || ms >= ANSWER_MS_MIN) return [];
  const limits = `${seconds(ms)}: streams to ${whose} end then, also in the middle of an answer`;
  return [
    finding('error', 'max_stream_duration', setting, limits, 'remove it, or set more than the longest answer takes'),
  ];
}
