import type { GateEntry } from '../config/feature-gates.js';
import { BOUNDS_FLAGS } from './bounds-flags.js';
import { DECIDE_FLAGS } from './decide-flags.js';
import { type Flag, type FlagValues, flag, optionalText, toggle } from './flag.js';
import {
  type FlagParser,
  parseBoolean,
  parseChoice,
  parseFlagDuration,
  parseGates,
  parseInteger,
  parseMovedMetric,
  parsePoolGroup,
  parseSelector,
  parseTargetPorts,
  parseText,
  parseTexts,
  parseWarmUp,
} from './flag-values.js';
import { LISTEN_FLAGS } from './listen-flags.js';
import { OBSERVE_FLAGS } from './observe-flags.js';

const POOL = 'Pool';
const CONFIGURATION = 'Configuration';
const LIFE = 'Life of the process';
const COMPATIBLE = 'Accepted from command lines of llm-d-router, without effect';
const MOVED = 'No longer supported (refused when set)';

/**
 * A flag of llm-d-router that changes nothing here. A flag that is accepted without effect. `value` describes what this
 * program does instead.
 */
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

function movedMetric(): Flag<undefined> {
  return flag(MOVED, '<name>', undefined, undefined, parseMovedMetric, 'Metric names stand in the configuration now.');
}

/** Every flag of `pointsman serve`, by name, in the order of the help. */
export const SERVE_FLAGS = {
  ...LISTEN_FLAGS,

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
  'feature-gates': flag<readonly GateEntry[]>(
    CONFIGURATION,
    '<gates>',
    [],
    undefined,
    parseGates,
    'Feature gates, name or name=false with commas between; they go before featureGates of the configuration.',
  ),
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

  ...DECIDE_FLAGS,
  ...BOUNDS_FLAGS,

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
  'idle-warm-up': flag(
    LIFE,
    '<duration>',
    1_000,
    '1s',
    parseWarmUp,
    'CPU time, at most 3s, in which each shard compiles its code with made-up requests while nothing comes, once the ' +
      'picker is ready; 0s = none.',
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
  'replication-cpu-percent': flag(
    LIFE,
    '<number>',
    25,
    '25',
    parseInteger(1, 100),
    'Share of one core that sharing with replicas may take: above it updates come less often, then leave out short ' +
      'prompts.',
  ),
  'ha-enable-leader-election': toggle(LIFE, false, 'Elect a leader among replicas through Kubernetes.'),

  ...OBSERVE_FLAGS,

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
  'watch-config-file': inert(
    undefined,
    false,
    parseBoolean,
    true,
    'the configuration is followed anyway, unless --watch-config=false is given',
  ),
  'plugin-state-staleness-threshold': inert(
    '<duration>',
    300_000,
    parseFlagDuration(1e-6),
    undefined,
    'the charge of a request is released when its stream ends, however long it takes',
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

/** The values of all flags by name in camel case: sizes in bytes, durations in milliseconds. */
export type ServeFlagValues = FlagValues<typeof SERVE_FLAGS>;
