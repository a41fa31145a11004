import type { ObserveSettings, SamplerSettings } from '../contract/observe-settings.js';
import { type FlagValues, flag, optionalText, toggle } from './flag.js';
import { parseAnswerHeader, parseChoice, parseInteger, parseOptionalInteger, parseZapLevel } from './flag-values.js';

const OBSERVING = 'Logs, metrics, traces';

/** Flags of logs, metrics and traces, in the order of the help. */
export const OBSERVE_FLAGS = {
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
  'fairness-id-metric-label-limit': flag<number | undefined>(
    OBSERVING,
    '<number>',
    undefined,
    undefined,
    parseOptionalInteger(0, 100_000),
    'Fairness ids that metrics show by name, the first ones; further ones are `other`, with 0 all are.',
  ),
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
  'stream-usage': toggle(
    OBSERVING,
    false,
    'Ask engines for the usage of streams (stream_options.include_usage); clients that did not ask do not see it.',
  ),
  ui: toggle(OBSERVING, true, 'Serve the page /ui/ on the metrics port.'),
  'decision-columns-every': flag(
    OBSERVING,
    '<number>',
    64,
    '64',
    parseInteger(0, 1_000_000),
    'One decision in so many is kept with all its columns, besides the 1st, 2nd, 4th, 8th … of each ten seconds of a ' +
      'shard; 0 = only refused ones.',
  ),
  'served-by-header': flag<string | undefined>(
    OBSERVING,
    '<name>',
    undefined,
    undefined,
    parseAnswerHeader,
    'Header of answers that names the endpoint which served, such as x-inference-pod. The proxy must send heads of ' +
      'answers (response_header_mode: SEND).',
  ),
  'allow-explain-header': toggle(
    OBSERVING,
    false,
    'Keep all columns of the decisions about requests with x-pointsman-explain: 1.',
  ),
};

/** What is told about the pool. @param sampler of the traces that the environment asks for; undefined = none */
export function observeSettings(
  flags: FlagValues<typeof OBSERVE_FLAGS>,
  poolName: string,
  sampler: SamplerSettings | undefined,
): ObserveSettings {
  return {
    poolName,
    log: { verbosity: flags.v, zapLogLevel: flags.zapLogLevel, zapEncoder: flags.zapEncoder },
    ui: flags.ui,
    streamMetrics: flags.enableGrpcStreamMetrics,
    fairnessIds: flags.fairnessIdMetricLabelLimit,
    columnsEvery: flags.decisionColumnsEvery,
    allowExplain: flags.allowExplainHeader,
    asksUsage: flags.streamUsage,
    servedByHeader: flags.servedByHeader,
    sampler,
    usage: flags.usageDir === undefined ? undefined : { folder: flags.usageDir, days: flags.usageDays },
  };
}
