import { Command, CommanderError, Option } from 'commander';
import { type TracingSettings, tracingSettings } from '../operations/tracing/settings.js';
import type { EndpointSource } from '../pool/discovery/kubernetes/kubernetes.js';
import { isAead } from './cipher-suites.js';
import type { Flag } from './flag.js';
import { FlagError, unexpectedArgument, unknownFlag } from './flag-error.js';
import { SERVE_FLAGS, type ServeFlagValues } from './flag-table.js';
import { selectedLabels } from './flag-values.js';

export { FlagError } from './flag-error.js';

/** Scrapes closer together than this cost more than they tell. */
const REFRESH_MS_MIN = 50;
const HELP_COLUMNS = 110;

export type LogLevel = 'fatal' | 'error' | 'info' | 'debug' | 'trace';

/** The command line of `pointsman serve`: sizes in bytes, durations in milliseconds. */
export interface ServeFlags extends ServeFlagValues {
  readonly logLevel: LogLevel;
  /** Environment variable POD_NAME. */
  readonly podName: string | undefined;
  /** Traces by the OTEL_* variables; undefined = none. */
  readonly traces: TracingSettings | undefined;
  /** One line each, to be logged once. */
  readonly warnings: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the flags of `pointsman serve` (without the command's own name), or its help text when the flags ask for it.
 * Flags may be written as Go programs take them: one or two dashes, `--flag=value` or `--flag value`, booleans alone or
 * with `=true` and `=false`. Throws FlagError.
 */
export function parseServeFlags(argv: readonly string[], env: Environment): ServeFlags | { readonly help: string } {
  if (asksForHelp(argv)) return { help: serveHelp() };
  const { command, read } = serveCommand();
  const given = uniformArguments(argv);
  try {
    command.parse(given, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) throw new FlagError(error.message.replaceAll(/\s*\n\s*/g, ' '));
    throw error;
  }
  const values = read();
  refuseContradictions(values);
  const traces = values.tracing ? tracingSettings(env) : NO_TRACES;
  return {
    ...values,
    poolNamespace: values.poolNamespace || env.NAMESPACE || '',
    refreshMetricsInterval: atLeast(REFRESH_MS_MIN, values.refreshMetricsInterval),
    logLevel: logLevel(values),
    podName: env.POD_NAME || undefined,
    traces: traces.settings,
    warnings: [
      ...withoutEffect(given),
      ...withoutCompanion(given, values),
      ...warningsOf(values),
      ...traces.warnings,
      ...(asksForTraces(given, values) && traces.settings === undefined ? [NO_EXPORTER] : []),
    ],
  };
}

function atLeast(least: number, value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.max(least, value);
}

const NO_TRACES = { settings: undefined, warnings: [] };
const NO_EXPORTER =
  '--tracing: no traces are written, because no variable says where to: set OTEL_EXPORTER_OTLP_ENDPOINT, or ' +
  'OTEL_TRACES_EXPORTER=console';

/** Whether the flag was given, beyond its default. */
function asksForTraces(given: readonly string[], { tracing }: ServeFlagValues): boolean {
  return tracing && given.some((argument) => argument.startsWith('--tracing='));
}

const SOURCES =
  '--endpoints-file (a list in a file), --pool-name (an InferencePool), --endpoint-selector (labels of pods), or a ' +
  'file-discovery plugin in ' +
  'dataLayer.discovery of the configuration';

/**
 * Source of the endpoints. With a discovery plugin `--pool-name` names the pool in the metrics only, as llm-d-router
 * has it. With `--pools` none is allowed: the process has no pool of its own then. Throws FlagError otherwise unless
 * there is exactly one source.
 */
export function sourceOfEndpoints(
  flags: Pick<ServeFlags, 'poolName' | 'poolGroup' | 'endpointSelector' | 'endpointTargetPorts'> &
    Partial<Pick<ServeFlags, 'pools'>>,
  configured: boolean,
): EndpointSource | 'configuration' | 'none' {
  const { poolName: name, poolGroup: group, endpointSelector: selector, endpointTargetPorts: ports } = flags;
  if (configured && selector) {
    throw new FlagError(
      `two sources of endpoints, --endpoint-selector and dataLayer.discovery: give one of ${SOURCES}`,
    );
  }
  if (configured) return 'configuration';
  if (selector) return { kind: 'selector', labels: selectedLabels(selector), ports };
  if (name) return { kind: 'pool', name, group };
  if (flags.pools !== undefined) return 'none';
  throw new FlagError(`no source of endpoints: give one of ${SOURCES}`);
}

function table(): [string, Flag<unknown>][] {
  return Object.entries(SERVE_FLAGS) as [string, Flag<unknown>][];
}

function isHelp(argument: string): boolean {
  return argument === '-h' || argument === '--help' || argument === '-help';
}

/** Whether help is asked for. It wins over everything else; the text of a flag's value does not count. */
function asksForHelp(argv: readonly string[]): boolean {
  return argv.some((argument, index) => isHelp(argument) && !takesNext(argv[index - 1]));
}

function takesNext(argument: string | undefined): boolean {
  if (argument === undefined || !argument.startsWith('-') || argument.includes('=')) return false;
  return definition(argument.replace(/^--?/, ''))?.placeholder !== undefined;
}

function definition(name: string): Flag<unknown> | undefined {
  return Object.hasOwn(SERVE_FLAGS, name) ? SERVE_FLAGS[name as keyof typeof SERVE_FLAGS] : undefined;
}

/** Every argument as `--flag=value`. */
function uniformArguments(argv: readonly string[]): string[] {
  const uniform: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index]!;
    const match = /^--?([^=-][^=]*)(?:=(.*))?$/s.exec(argument);
    if (match === null) throw unexpectedArgument(argument, hintAfter(argument, argv[index - 1]));
    const name = match[1]!;
    const flag = definition(name);
    if (flag === undefined) throw unknownFlag(name, Object.keys(SERVE_FLAGS), '--help');
    let value = match[2];
    if (value === undefined && flag.placeholder === undefined) value = 'true';
    value ??= argv[++index];
    if (value === undefined) throw new FlagError(`--${name}: needs a value: --${name}=${flag.placeholder}`);
    uniform.push(`--${name}=${value}`);
  }
  return uniform;
}

/** Hint for an argument behind a flag that takes no value from the next one. */
function hintAfter(argument: string, before: string | undefined): string {
  const name = before?.replace(/^--?/, '') ?? '';
  const hint = definition(name)?.placeholder === undefined && definition(name) ? `; write --${name}=${argument}` : '';
  return hint || '; see --help';
}

/** The command line of `serve`, and the values that it holds once it has been parsed. */
function serveCommand(): { readonly command: Command; readonly read: () => ServeFlagValues } {
  const command = new Command('pointsman serve')
    .description('Pick the model server for every request that a proxy asks about (the default command).')
    .usage('[flags]')
    .exitOverride()
    .helpOption(false)
    .configureOutput({ writeErr: () => {}, getOutHelpWidth: () => HELP_COLUMNS });
  // Kept here and not by the command, which cannot tell a value of undefined from an empty text.
  const values: Record<string, unknown> = {};
  for (const [name, flag] of table()) {
    const option = new Option(`--${name} ${flag.placeholder ?? '<boolean>'}`, flag.doc).helpGroup(`${flag.group}:`);
    const key = option.attributeName();
    values[key] = flag.initial;
    option.default(flag.initial, flag.shown).argParser((text: string) => {
      values[key] = flag.parse(text, name, values[key]);
      return text;
    });
    command.addOption(option);
  }
  return { command, read: () => values as unknown as ServeFlagValues };
}

/** Text of `pointsman serve --help`. */
export function serveHelp(): string {
  const command = serveCommand().command.configureHelp({
    optionTerm: (option) => option.flags.replace(' <boolean>', '[=false]'),
    optionDescription: (option) => {
      const shown = option.defaultValueDescription;
      return shown === undefined ? option.description : `${option.description} (${shown})`;
    },
  });
  command.addHelpText(
    'after',
    '\nDurations: 50ms, 30s, 2m. Sizes: 64Mi, 20MB, 1048576. Environment: NAMESPACE, POD_NAME, OTEL_*.\n',
  );
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part) });
  command.outputHelp();
  return text;
}

function refuseContradictions(values: ServeFlagValues): void {
  refuseSharedPorts(values);
  if (values.configFile && values.configText) {
    throw new FlagError('--config-file and --config-text exclude each other: give only one of them');
  }
  if (values.poolName && values.endpointSelector) {
    throw new FlagError('--pool-name and --endpoint-selector exclude each other: give only one of them');
  }
  if (values.endpointsFile && values.endpointSelector) {
    throw new FlagError('--endpoints-file and --endpoint-selector exclude each other: give only one of them');
  }
  if (values.endpointSelector && values.endpointTargetPorts.length === 0) {
    throw new FlagError('--endpoint-selector needs the ports of the endpoints: add --endpoint-target-ports');
  }
  if (values.metricsClientCaFile && !values.metricsCertDir) {
    throw new FlagError('--metrics-client-ca-file needs TLS on the metrics port: add --metrics-cert-dir');
  }
  if (values.clientCaFile && !values.secureServing) {
    throw new FlagError('--client-ca-file needs TLS on the ext_proc port: remove --secure-serving=false');
  }
  const proof = values.metricsEndpointAuth || values.metricsClientCaFile || values.metricsAuthTokenFile;
  if (values.metricsCertDir && !proof) {
    throw new FlagError(
      '--metrics-cert-dir without any authentication: add --metrics-client-ca-file, --metrics-auth-token-file or ' +
        '--metrics-endpoint-auth',
    );
  }
}

/** Flags of each port and of the address that it is opened on. */
const PORT_FLAGS = [
  ['grpc-port', 'grpcPort', 'grpcBindAddress'],
  ['grpc-health-port', 'grpcHealthPort', 'grpcHealthBindAddress'],
  ['metrics-port', 'metricsPort', 'metricsBindAddress'],
] as const;

/** Refuses one number for two ports of one address; 0 is a free port each time. */
function refuseSharedPorts(values: ServeFlagValues): void {
  const ports = PORT_FLAGS.map(([flag, port, address]) => {
    return { flag, port: values[port], address: values[address] || values.bindAddress };
  });
  for (const [i, one] of ports.entries()) {
    for (const other of ports.slice(i + 1)) {
      const meet = !one.address || !other.address || one.address === other.address;
      if (one.port === 0 || one.port !== other.port || !meet) continue;
      throw new FlagError(`--${one.flag} and --${other.flag} are both ${one.port}: give each a port of its own`);
    }
  }
}

/** A line for each flag that asks for something that the program does not do. */
function withoutEffect(given: readonly string[]): string[] {
  return given.flatMap((argument) => {
    const [, name = '', text = ''] = /^--([^=]+)=(.*)$/s.exec(argument) ?? [];
    const flag = definition(name);
    if (flag?.inert === undefined || flag.parse(text, name, flag.initial) === flag.inert.value) return [];
    return [`${argument} has no effect: ${flag.inert.why}`];
  });
}

/** A flag that acts only beside others. */
interface Companion {
  readonly names: readonly string[];
  readonly others: string;
  acts(values: ServeFlagValues): boolean;
}

const COMPANIONS: readonly Companion[] = [
  {
    names: ['ha-enable-leader-election', 'pool-namespace'],
    others: '--pool-name or --endpoint-selector',
    acts: ({ poolName, endpointSelector }) => Boolean(poolName || endpointSelector),
  },
  { names: ['pool-group'], others: '--pool-name', acts: ({ poolName }) => Boolean(poolName) },
  {
    names: ['endpoint-target-ports'],
    others: '--endpoint-selector',
    acts: ({ endpointSelector }) => Boolean(endpointSelector),
  },
  {
    names: ['cert-path', 'tls-min-version', 'tls-cipher-suites'],
    others: '--secure-serving',
    acts: ({ secureServing }) => secureServing,
  },
  { names: ['usage-days'], others: '--usage-dir', acts: ({ usageDir }) => Boolean(usageDir) },
  { names: ['enable-cert-reload'], others: '--cert-path', acts: ({ certPath }) => Boolean(certPath) },
  {
    names: ['grpc-socket-mode', 'grpc-socket-owner'],
    others: '--grpc-socket',
    acts: ({ grpcSocket }) => Boolean(grpcSocket),
  },
  { names: ['watch-config'], others: '--config-file', acts: ({ configFile }) => Boolean(configFile) },
  {
    names: ['candidate-every'],
    others: '--candidate-config',
    acts: ({ candidateConfig, pools }) => Boolean(candidateConfig) || pools !== undefined,
  },
];

/** A line for each changed flag that acts only beside another flag which was not given. */
function withoutCompanion(given: readonly string[], values: ServeFlagValues): string[] {
  const idle = new Map(
    COMPANIONS.filter(({ acts }) => !acts(values)).flatMap(({ names, others }) => names.map((name) => [name, others])),
  );
  const warned = given.flatMap((argument) => {
    const [, name = '', text = ''] = /^--([^=]+)=(.*)$/s.exec(argument) ?? [];
    const others = idle.get(name);
    const flag = definition(name)!;
    if (others === undefined || flag.parse(text, name, flag.initial) === flag.initial) return [];
    return [`--${name} has no effect without ${others}`];
  });
  return [...new Set(warned)];
}

function warningsOf(values: ServeFlagValues): readonly string[] {
  const warnings: string[] = [];
  if ((values.refreshMetricsInterval ?? REFRESH_MS_MIN) < REFRESH_MS_MIN) {
    const given = `${values.refreshMetricsInterval}ms`;
    warnings.push(`--refresh-metrics-interval=${given} is clamped to ${REFRESH_MS_MIN}ms`);
  }
  const weak = values.tlsCipherSuites.filter((cipher) => !isAead(cipher));
  if (weak.length > 0) {
    warnings.push(
      `--tls-cipher-suites: ${weak.join(', ')} can be attacked by padding; without the flag only AEAD suites are used`,
    );
  }
  return warnings;
}

function logLevel({ v, zapLogLevel }: ServeFlagValues): LogLevel {
  if (zapLogLevel === 'panic') return 'fatal';
  if (zapLogLevel === 'error' || zapLogLevel === 'info' || zapLogLevel === 'debug') return zapLogLevel;
  const verbosity = zapLogLevel === undefined ? v : Number(zapLogLevel);
  if (verbosity >= 5) return 'trace';
  return verbosity >= 3 ? 'debug' : 'info';
}
