import type { FlagParser } from './flag-values.js';
import {
  type FileOwner,
  parseAddress,
  parseBoolean,
  parseBytes,
  parseChoice,
  parseCipherSuites,
  parseFileMode,
  parseFileOwner,
  parseFlagDuration,
  parseInteger,
  parseMessageSize,
  parseMovedMetric,
  parseOptionalInteger,
  parseOptionalText,
  parsePoolGroup,
  parsePort,
  parseSelector,
  parseSocketPath,
  parseTargetPorts,
  parseText,
  parseTexts,
  parseTlsVersion,
  parseWarmUp,
  parseZapLevel,
} from './flag-values.js';

/** One command-line flag. */
export interface Flag<Value> {
  readonly group: string;
  /** Placeholder of the value in the help; undefined = a boolean flag, which needs no value. */
  readonly placeholder: string | undefined;
  readonly initial: Value;
  /** The default as the help shows it; undefined = nothing worth showing. */
  readonly shown: string | undefined;
  readonly doc: string;
  /** The value by which the program behaves, whatever is given, and why; undefined = the flag has its effect. */
  readonly inert?: { readonly value: unknown; readonly why: string };
  /** Throws FlagError. A method, so that flags of different values fit one table. */
  parse(...given: Parameters<FlagParser<Value>>): Value;
}

const PORTS = 'Ports';
const TLS = 'Transport security';
const POOL = 'Pool';
const CONFIGURATION = 'Configuration';
const SIGNALS = 'Signals and decisions';
const LIMITS = 'Limits';
const LIFE = 'Life of the process';
const OBSERVING = 'Logs, metrics, traces';
const COMPATIBLE = 'Accepted from command lines of llm-d-router, without effect';
const MOVED = 'No longer supported (refused when set)';

const MEBIBYTE = 1024 * 1024;

function flag<Value>(
  group: string,
  placeholder: string,
  initial: Value,
  shown: string | undefined,
  parse: FlagParser<Value>,
  doc: string,
): Flag<Value> {
  return { group, placeholder, initial, shown, doc, parse };
}

function toggle(group: string, initial: boolean, doc: string): Flag<boolean> {
  return { group, placeholder: undefined, initial, shown: String(initial), doc, parse: parseBoolean };
}

/** A flag of llm-d-router that changes nothing here. `value` is the one that describes what this program does. */
function inert<Value>(
  placeholder: string | undefined,
  initial: Value,
  parse: FlagParser<Value>,
  value: Value | undefined,
  why: string,
): Flag<Value> {
  const doc = `${why.charAt(0).toUpperCase()}${why.slice(1)}.`;
  return { group: COMPATIBLE, placeholder, initial, shown: undefined, doc, parse, inert: { value, why } };
}

function optionalText(group: string, placeholder: string, doc: string): Flag<string | undefined> {
  return flag<string | undefined>(group, placeholder, undefined, undefined, parseOptionalText, doc);
}

function address(doc: string): Flag<string | undefined> {
  return flag<string | undefined>(PORTS, '<ip>', undefined, undefined, parseAddress, doc);
}

function movedMetric(): Flag<undefined> {
  return flag(MOVED, '<name>', undefined, undefined, parseMovedMetric, 'Metric names stand in the configuration now.');
}

const messageSize = (doc: string) =>
  flag<number | undefined>(LIMITS, '<size>', undefined, undefined, parseMessageSize, doc);

/** Every flag of `pointsman serve`, by name, in the order of the help. */
export const SERVE_FLAGS = {
  'grpc-port': flag(PORTS, '<port>', 9002, '9002', parsePort, 'Port of ext_proc.'),
  'grpc-socket': flag<string | undefined>(
    PORTS,
    '<file>',
    undefined,
    undefined,
    parseSocketPath,
    'Unix domain socket that takes ext_proc as well, in plain text.',
  ),
  'grpc-socket-mode': flag(PORTS, '<mode>', 0o660, '0660', parseFileMode, 'Permissions of --grpc-socket.'),
  'grpc-socket-owner': flag<FileOwner | undefined>(
    PORTS,
    '<uid:gid>',
    undefined,
    undefined,
    parseFileOwner,
    'Owner of --grpc-socket, by numbers.',
  ),
  'grpc-health-port': flag(PORTS, '<port>', 9003, '9003', parsePort, 'Port of gRPC health.'),
  transport: flag(
    PORTS,
    '<name>',
    'lean',
    'lean',
    parseChoice(['lean', 'grpc-js'] as const),
    'What carries ext_proc: lean, or grpc-js, which is slower and compared with.',
  ),
  'metrics-port': flag(PORTS, '<port>', 9090, '9090', parsePort, 'Port of the Prometheus metrics.'),
  'bind-address': address('Address of this machine that all ports are opened on; every address without.'),
  'grpc-bind-address': address('Address of the ext_proc port, in the place of --bind-address.'),
  'grpc-health-bind-address': address('Address of the gRPC health port, in the place of --bind-address.'),
  'metrics-bind-address': address('Address of the metrics port, in the place of --bind-address.'),

  'secure-serving': toggle(TLS, true, 'Serve ext_proc over TLS, self-signed without --cert-path.'),
  'cert-path': optionalText(TLS, '<directory>', 'Directory with tls.crt and tls.key.'),
  'enable-cert-reload': toggle(TLS, false, 'Load the certificate again when its files change.'),
  'client-ca-file': optionalText(TLS, '<file>', 'Clients of ext_proc need a certificate of these CAs.'),
  'tls-min-version': flag<'TLSv1.2' | 'TLSv1.3' | undefined>(
    TLS,
    '<version>',
    undefined,
    undefined,
    parseTlsVersion,
    'VersionTLS12 or VersionTLS13.',
  ),
  'tls-cipher-suites': flag<readonly string[]>(
    TLS,
    '<names>',
    [],
    undefined,
    parseCipherSuites,
    'Cipher suites by their Go names, with commas.',
  ),
  'metrics-endpoint-auth': toggle(TLS, true, 'Ask Kubernetes who may read the metrics.'),
  'metrics-auth-token-file': optionalText(
    TLS,
    '<file>',
    'Readers of the metrics port need the token of this file; Kubernetes is not asked.',
  ),
  'metrics-client-ca-file': optionalText(TLS, '<file>', 'Clients of the metrics port need a certificate of these CAs.'),
  'metrics-cert-dir': optionalText(TLS, '<directory>', 'Directory with tls.crt and tls.key of the metrics port.'),

  'pool-name': flag(POOL, '<name>', '', undefined, parseText, 'Name of the InferencePool, and label of the metrics.'),
  'pool-namespace': flag(
    POOL,
    '<name>',
    '',
    "$NAMESPACE, else the service account's",
    parseText,
    'Namespace of the pool.',
  ),
  'pool-group': flag(
    POOL,
    '<group>',
    'inference.networking.k8s.io',
    'inference.networking.k8s.io',
    parsePoolGroup,
    'API group of the InferencePool; inference.networking.x-k8s.io reads the older v1alpha2.',
  ),
  'endpoint-selector': flag(
    POOL,
    '<selector>',
    '',
    undefined,
    parseSelector,
    'Labels of the endpoints, without a pool.',
  ),
  'endpoint-target-ports': flag<readonly number[]>(
    POOL,
    '<ports>',
    [],
    undefined,
    parseTargetPorts,
    'One to eight ports of each selected endpoint.',
  ),

  'endpoints-file': optionalText(
    POOL,
    '<file>',
    'Endpoints in a file, followed when it changes; in place of dataLayer.discovery of the configuration.',
  ),
  pools: optionalText(POOL, '<file>', 'Further pools that this process serves, followed when the file changes.'),
  'max-pools': flag(POOL, '<number>', 256, '256', parseInteger(1, 1024), 'Pools of the file of --pools.'),

  'config-file': optionalText(CONFIGURATION, '<file>', 'EndpointPickerConfig, YAML or JSON.'),
  'config-text': optionalText(CONFIGURATION, '<text>', 'EndpointPickerConfig itself.'),
  'watch-config': toggle(CONFIGURATION, true, 'Load --config-file again when it changes.'),
  'candidate-config': optionalText(
    CONFIGURATION,
    '<file>',
    'Configuration that decides in shadow beside the running one; followed when it changes.',
  ),
  'candidate-every': flag(
    CONFIGURATION,
    '<number>',
    1,
    '1',
    parseInteger(1, 1_000_000),
    'Requests from one decision of --candidate-config to the next; 1 = it decides each.',
  ),
  'print-effective-config': toggle(CONFIGURATION, false, 'Print the configuration with all defaults, and end.'),
  plugin: flag<readonly string[]>(
    CONFIGURATION,
    '<module>',
    [],
    undefined,
    parseTexts,
    'Module with plugins of your own, ./file.js or a package; may be given several times.',
  ),
  'allow-experimental-plugins': toggle(CONFIGURATION, false, 'Load plugins of Alpha stability.'),

  'refresh-metrics-interval': flag(
    SIGNALS,
    '<duration>',
    50,
    '50ms',
    parseFlagDuration(0),
    'Time between two scrapes of an endpoint, at least 50ms.',
  ),
  'metrics-staleness-threshold': flag(
    SIGNALS,
    '<duration>',
    2000,
    '2s',
    parseFlagDuration(1e-6),
    'Age from which on signals count as unknown.',
  ),
  'require-model-match': toggle(
    SIGNALS,
    false,
    'Answer 404 to models that no objective and no rewrite rule names, and to requests that name none.',
  ),
  'model-rewrite-header': toggle(
    SIGNALS,
    true,
    'Let requests choose the model with the header x-llm-d-model-name-rewrite.',
  ),
  'disable-endpoint-subset-filter': toggle(SIGNALS, false, "Ignore the proxy's subset hint."),
  'disable-endpoint-ejection': toggle(SIGNALS, false, 'Keep endpoints that fail among the picks.'),
  'allow-profile-header': toggle(
    SIGNALS,
    false,
    'Let requests choose their scheduling profile with the header x-pointsman-profile.',
  ),
  'emit-endpoint-scores': toggle(SIGNALS, false, 'Tell the proxy the scores of all candidates.'),
  seed: flag<number | undefined>(
    SIGNALS,
    '<number>',
    undefined,
    undefined,
    parseOptionalInteger(0, 2 ** 32 - 1),
    'Same seed, same input: same picks.',
  ),

  shards: flag(LIMITS, '<number>', 1, '1', parseInteger(1, 64), 'Threads that serve ext_proc.'),
  'max-streams': flag(
    LIMITS,
    '<number>',
    10_000,
    '10000',
    parseInteger(1, 1_000_000),
    'Open ext_proc streams; more get a quick 503.',
  ),
  'max-connections': flag(LIMITS, '<number>', 1024, '1024', parseInteger(1, 1_000_000), 'Open ext_proc connections.'),
  'request-idle-timeout': flag(
    LIMITS,
    '<duration>',
    60_000,
    '60s',
    parseFlagDuration(1),
    'Requests of which nothing comes for so long get a 408.',
  ),
  'max-request-body-size': flag(LIMITS, '<size>', 64 * MEBIBYTE, '64Mi', parseBytes, 'Larger bodies get a 413.'),
  'max-buffered-bytes': flag(LIMITS, '<size>', 512 * MEBIBYTE, '512Mi', parseBytes, 'Request bytes held at once.'),
  'max-endpoints': flag(LIMITS, '<number>', 512, '512', parseInteger(1, 4096), 'Endpoint slots of the pool.'),
  'index-blocks': flag(
    LIMITS,
    '<number>',
    1_048_576,
    '1048576',
    parseInteger(1024, 2 ** 28),
    'Different blocks that the prefix index can hold.',
  ),
  'grpc-max-recv-msg-size': messageSize('Largest message from the proxy, such as 10Mi.'),
  'grpc-max-send-msg-size': messageSize('Largest message to the proxy.'),

  'decision-log-size': flag(
    LIMITS,
    '<number>',
    65_536,
    '65536',
    parseInteger(0, 2 ** 22),
    'Decisions kept for "why" and the page; 0 = none.',
  ),

  'drain-timeout': flag(
    LIFE,
    '<duration>',
    30_000,
    '30s',
    parseFlagDuration(0),
    'Time that open streams get to finish after SIGTERM.',
  ),
  'lame-duck': flag(
    LIFE,
    '<duration>',
    5_000,
    '5s',
    parseFlagDuration(0),
    'Time that new requests are still served after SIGTERM, within --drain-timeout; longer while proxies send.',
  ),
  'warm-up': flag(
    LIFE,
    '<duration>',
    0,
    '0s',
    parseWarmUp,
    'Time, at most 3s, in which each shard compiles its code with made-up requests before it is ready.',
  ),
  'state-dir': optionalText(
    LIFE,
    '<directory>',
    'Folder that keeps the prefix index and what was learned, so that a restart goes on from there.',
  ),
  'replication-url': optionalText(
    LIFE,
    '<url>',
    'NATS servers through which the replicas of the pool share load and prompts, nats://[user:password@]host:4222.',
  ),
  'ha-enable-leader-election': toggle(LIFE, false, 'Elect a leader among replicas through Kubernetes.'),

  'debug-core': toggle(
    OBSERVING,
    false,
    'Run the build of the core that checks itself at every release of a lock. Slower; for reports of faults.',
  ),
  v: flag(OBSERVING, '<number>', 2, '2', parseInteger(0, 100), 'Log level: 2 default, 3 verbose, 4 debug, 5 trace.'),
  'zap-log-level': flag<string | undefined>(
    OBSERVING,
    '<level>',
    undefined,
    undefined,
    parseZapLevel,
    'debug, info, error, panic or a number; goes before --v.',
  ),
  'zap-encoder': flag(
    OBSERVING,
    '<format>',
    'json',
    'json',
    parseChoice(['json', 'console'] as const),
    'Format of the log.',
  ),
  'enable-grpc-stream-metrics': toggle(OBSERVING, false, 'Metrics of every gRPC stream.'),
  tracing: toggle(OBSERVING, true, 'Write OpenTelemetry traces when the OTEL_* variables name an exporter.'),
  'usage-dir': optionalText(
    OBSERVING,
    '<directory>',
    'Folder for the usage of each tenant: one file for each UTC day, renewed every minute.',
  ),
  'usage-days': flag(
    OBSERVING,
    '<number>',
    31,
    '31',
    parseInteger(1, 3_660),
    'Days that files of --usage-dir are kept.',
  ),
  ui: toggle(OBSERVING, true, 'Serve the page /ui/ on the metrics port.'),
  'decision-columns-every': flag(
    OBSERVING,
    '<number>',
    64,
    '64',
    parseInteger(0, 1_000_000),
    'One decision in so many is kept with all its columns; 0 = only refused ones.',
  ),
  'allow-explain-header': toggle(
    OBSERVING,
    false,
    'Keep all columns of the decisions about requests with x-pointsman-explain: 1.',
  ),

  'health-checking': inert(
    undefined,
    false,
    parseBoolean,
    true,
    'gRPC health is always served on the ext_proc port too',
  ),
  'enable-pprof': inert(undefined, true, parseBoolean, false, 'the metrics port serves no profiles of Go'),
  'refresh-prometheus-metrics-interval': inert(
    '<duration>',
    5000,
    parseFlagDuration(1e-6),
    undefined,
    "the pool's gauges are computed when the metrics page is read",
  ),
  'zap-devel': inert(undefined, false, parseBoolean, false, 'the log has one form for production and development'),
  'zap-stacktrace-level': inert<string>(
    '<level>',
    'error',
    parseChoice<string>(['info', 'error', 'panic']),
    undefined,
    'log lines carry no stack traces',
  ),
  'zap-time-encoding': inert<string>(
    '<format>',
    'epoch',
    parseChoice<string>(['epoch', 'millis', 'nano', 'nanos', 'iso8601', 'rfc3339', 'rfc3339nano']),
    'epoch',
    'times in the log are seconds since 1970',
  ),

  'total-queued-requests-metric': movedMetric(),
  'total-running-requests-metric': movedMetric(),
  'kv-cache-usage-percentage-metric': movedMetric(),
  'lora-info-metric': movedMetric(),
  'cache-info-metric': movedMetric(),
};

type Table = typeof SERVE_FLAGS;
type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The values of all flags by name in camel case: sizes in bytes, durations in milliseconds. */
export type ServeFlagValues = {
  readonly [Name in keyof Table as CamelCase<Name>]: Table[Name] extends Flag<infer Value> ? Value : never;
};
