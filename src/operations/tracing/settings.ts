import type { SamplerSettings } from '../../contract/observe-settings.js';
import { Environment } from './environment.js';

/** Receiver of spans over OTLP. */
export interface OtlpSettings {
  readonly protocol: 'grpc' | 'http/protobuf';
  /** With http/protobuf the whole address, with grpc its host and port. */
  readonly url: URL;
  readonly headers: ReadonlyMap<string, string>;
  /** Time of one attempt. */
  readonly timeoutMs: number;
  readonly gzip: boolean;
  /** Files in PEM; undefined = the authorities of the system, no certificate of its own. */
  readonly tls: {
    readonly certificate: string | undefined;
    readonly clientKey: string | undefined;
    readonly clientCertificate: string | undefined;
  };
}

export interface BatchSettings {
  readonly delayMs: number;
  /** Spans that wait for their export. More are dropped and counted. */
  readonly queueMax: number;
  /** Spans of one export. */
  readonly batchMax: number;
  /** Time of one export with its repetitions. */
  readonly timeoutMs: number;
}

export interface TracingSettings {
  readonly sampler: SamplerSettings;
  /** Undefined = spans are written to the standard output. */
  readonly otlp: OtlpSettings | undefined;
  /** Attributes of the picker itself. */
  readonly resource: ReadonlyMap<string, string>;
  readonly batch: BatchSettings;
}

/** Result of reading the environment. */
export interface TracingEnvironment {
  /** Undefined = no traces. */
  readonly settings: TracingSettings | undefined;
  /** Reason why there are no traces; undefined = there are traces, or no variable asks for them. */
  readonly warnings: readonly string[];
}

/** Sampling and name of llm-d-router without variables. */
const DEFAULT_RATIO = 0.1;
const DEFAULT_SERVICE = 'llm-d-epp';
const TIMER_MS_MAX = 2 ** 31 - 1;
const OTLP = 'OTEL_EXPORTER_OTLP';
const TRACES = `${OTLP}_TRACES`;
const GRPC_PORT = '4317';
const HTTP_PORT = '4318';

/**
 * Reads the OTEL_* variables, https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/. Traces
 * are on when a variable names an exporter or an address.
 */
export function tracingSettings(values: Readonly<Record<string, string | undefined>>): TracingEnvironment {
  const env = new Environment(values);
  const exporter = exporterOf(env);
  if (exporter === undefined) return { settings: undefined, warnings: env.warnings };
  const settings = {
    sampler: samplerOf(env),
    otlp: exporter === 'otlp' ? otlpOf(env) : undefined,
    resource: resourceOf(env),
    batch: batchOf(env),
  };
  return { settings, warnings: env.warnings };
}

function exporterOf(env: Environment): 'otlp' | 'console' | undefined {
  if (env.boolean('OTEL_SDK_DISABLED') === true) return undefined;
  if (env.text('OTEL_TRACES_EXPORTER') === undefined) {
    return env.text(`${TRACES}_ENDPOINT`, `${OTLP}_ENDPOINT`) === undefined ? undefined : 'otlp';
  }
  const exporter = env.choice(['otlp', 'console', 'none'] as const, 'OTEL_TRACES_EXPORTER');
  return exporter === 'none' ? undefined : exporter;
}

const SAMPLERS = [
  'parentbased_traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'traceidratio',
  'always_on',
  'always_off',
] as const;

function samplerOf(env: Environment): SamplerSettings {
  const given = env.choice(SAMPLERS, 'OTEL_TRACES_SAMPLER');
  const argument = env.number(0, 1, 'OTEL_TRACES_SAMPLER_ARG');
  const name = given ?? SAMPLERS[0];
  const ratio = argument ?? (given === undefined ? DEFAULT_RATIO : 1);
  return {
    parentBased: name.startsWith('parentbased_'),
    ratio: name.endsWith('always_on') ? 1 : name.endsWith('always_off') ? 0 : ratio,
    propagates: propagates(env),
  };
}

/** Whether `traceparent` is passed on. Baggage passes unread in any case. */
function propagates(env: Environment): boolean {
  const names = env.text('OTEL_PROPAGATORS')?.split(',') ?? ['tracecontext'];
  const known = names.map((name) => name.trim());
  for (const name of known) {
    if (!['tracecontext', 'baggage', 'none'].includes(name)) {
      env.warnings.push(`OTEL_PROPAGATORS: ${name} is ignored: expected tracecontext, baggage or none`);
    }
  }
  return known.includes('tracecontext');
}

function otlpOf(env: Environment): OtlpSettings {
  const own = env.url(`${TRACES}_ENDPOINT`);
  const shared = own === undefined ? env.url(`${OTLP}_ENDPOINT`) : undefined;
  const given = own ?? shared;
  const protocols = ['grpc', 'http/protobuf'] as const;
  // llm-d-router exports over gRPC; the registered port of OTLP over HTTP says so itself.
  const usual = given?.url.port === HTTP_PORT ? 'http/protobuf' : 'grpc';
  const protocol = env.choice(protocols, `${TRACES}_PROTOCOL`, `${OTLP}_PROTOCOL`) ?? usual;
  const url = given?.url ?? new URL(`http://localhost:${protocol === 'grpc' ? GRPC_PORT : HTTP_PORT}`);
  const insecure = env.boolean(`${TRACES}_INSECURE`, `${OTLP}_INSECURE`);
  if (given?.hasScheme === false && insecure === false) url.protocol = 'https:';
  if (own === undefined && protocol !== 'grpc') url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return {
    protocol,
    url,
    headers: new Map([...env.pairs(`${OTLP}_HEADERS`), ...env.pairs(`${TRACES}_HEADERS`)]),
    timeoutMs: env.number(1, TIMER_MS_MAX, `${TRACES}_TIMEOUT`, `${OTLP}_TIMEOUT`) ?? 10_000,
    gzip: env.choice(['gzip', 'none'] as const, `${TRACES}_COMPRESSION`, `${OTLP}_COMPRESSION`) === 'gzip',
    tls: {
      certificate: env.text(`${TRACES}_CERTIFICATE`, `${OTLP}_CERTIFICATE`),
      clientKey: env.text(`${TRACES}_CLIENT_KEY`, `${OTLP}_CLIENT_KEY`),
      clientCertificate: env.text(`${TRACES}_CLIENT_CERTIFICATE`, `${OTLP}_CLIENT_CERTIFICATE`),
    },
  };
}

function resourceOf(env: Environment): ReadonlyMap<string, string> {
  const resource = new Map([['service.name', DEFAULT_SERVICE], ...env.pairs('OTEL_RESOURCE_ATTRIBUTES')]);
  const service = env.text('OTEL_SERVICE_NAME');
  if (service !== undefined) resource.set('service.name', service);
  return resource;
}

function batchOf(env: Environment): BatchSettings {
  const queueMax = env.number(1, 1_000_000, 'OTEL_BSP_MAX_QUEUE_SIZE') ?? 2_048;
  const batchMax = env.number(1, 1_000_000, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE') ?? 512;
  return {
    delayMs: env.number(1, TIMER_MS_MAX, 'OTEL_BSP_SCHEDULE_DELAY') ?? 5_000,
    queueMax,
    batchMax: Math.min(batchMax, queueMax),
    timeoutMs: env.number(1, TIMER_MS_MAX, 'OTEL_BSP_EXPORT_TIMEOUT') ?? 30_000,
  };
}
