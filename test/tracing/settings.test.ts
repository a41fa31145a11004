import { describe, expect, it } from 'vitest';
import { tracingSettings } from '../../dist/src/operations/tracing/settings.js';

const read = (env: Readonly<Record<string, string>>) => {
  const { settings, warnings } = tracingSettings(env);
  expect(warnings).toEqual([]);
  return settings;
};
const otlp = (env: Readonly<Record<string, string>>) => read({ OTEL_TRACES_EXPORTER: 'otlp', ...env })?.otlp;
const sampler = (env: Readonly<Record<string, string>>) => read({ OTEL_TRACES_EXPORTER: 'otlp', ...env })?.sampler;
const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';

describe('the OTEL_* variables', () => {
  it.each([
    {},
    { OTEL_SERVICE_NAME: 'epp' },
    { OTEL_TRACES_EXPORTER: 'none', [ENDPOINT]: 'http://collector:4317' },
    { OTEL_SDK_DISABLED: 'true', [ENDPOINT]: 'http://collector:4317' },
    { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4317' },
  ])('%j asks for no traces', (env) => {
    expect(read(env)).toBeUndefined();
  });

  it.each([
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, 'grpc', 'http://localhost:4317/'],
    [{ [ENDPOINT]: 'http://collector:4317' }, 'grpc', 'http://collector:4317/'],
    [{ [ENDPOINT]: 'collector:4317' }, 'grpc', 'http://collector:4317/'],
    [{ [ENDPOINT]: 'collector:4317', OTEL_EXPORTER_OTLP_INSECURE: 'false' }, 'grpc', 'https://collector:4317/'],
    [{ [ENDPOINT]: 'http://collector:4318' }, 'http/protobuf', 'http://collector:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, 'http/protobuf', 'http://localhost:4318/v1/traces'],
    [
      { [ENDPOINT]: 'https://c/otlp/', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' },
      'http/protobuf',
      'https://c/otlp/v1/traces',
    ],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:4318/mine' }, 'http/protobuf', 'http://c:4318/mine'],
    [{ [ENDPOINT]: 'http://a:1', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://b:2' }, 'grpc', 'http://b:2/'],
    [
      { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
      'http/protobuf',
      'http://localhost:4318/v1/traces',
    ],
  ])('%j exports over %s to %s', (env, protocol, url) => {
    const found = otlp(env as Record<string, string>);
    expect({ protocol: found?.protocol, url: found?.url.href }).toEqual({ protocol, url });
  });

  it('headers of traces go before those of all signals, and are decoded', () => {
    const env = { OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b=two%20words', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=3' };
    expect([...otlp(env)!.headers]).toEqual([
      ['a', '3'],
      ['b', 'two words'],
    ]);
  });

  it('time, compression and certificates of an export are read', () => {
    const env = {
      OTEL_EXPORTER_OTLP_TIMEOUT: '2500',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/ca.pem',
    };
    expect(otlp(env)).toMatchObject({ timeoutMs: 2_500, gzip: true, tls: { certificate: '/ca.pem' } });
  });

  it.each([
    [{}, { parentBased: true, ratio: 0.1 }],
    [
      { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
      { parentBased: true, ratio: 0.01 },
    ],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, { parentBased: false, ratio: 1 }],
    [{ OTEL_TRACES_SAMPLER: 'always_on' }, { parentBased: false, ratio: 1 }],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, { parentBased: false, ratio: 0 }],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, { parentBased: true, ratio: 0 }],
    [{ OTEL_PROPAGATORS: 'none' }, { propagates: false }],
    [{ OTEL_PROPAGATORS: 'tracecontext,baggage' }, { propagates: true }],
  ])('%j samples with %j', (env, expected) => {
    expect(sampler(env as Record<string, string>)).toMatchObject(expected);
  });

  it('the name of the service goes before the one among the attributes', () => {
    const attributes = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,zone=z%2C1' };
    const resource = (env: Readonly<Record<string, string>>) =>
      read({ OTEL_TRACES_EXPORTER: 'console', ...env })!.resource;
    expect(resource({}).get('service.name')).toBe('llm-d-epp');
    expect(resource(attributes).get('service.name')).toBe('a');
    const both = resource({ ...attributes, OTEL_SERVICE_NAME: 'b' });
    expect([both.get('service.name'), both.get('zone')]).toEqual(['b', 'z,1']);
  });

  it('queue and batches are bounded by the variables, and a batch by the queue', () => {
    const env = { OTEL_TRACES_EXPORTER: 'otlp', OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_BSP_SCHEDULE_DELAY: '10' };
    expect(read(env)!.batch).toEqual({ delayMs: 10, queueMax: 100, batchMax: 100, timeoutMs: 30_000 });
  });

  it.each([
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER=zipkin is ignored: expected otlp, console, none'],
    [{ [ENDPOINT]: 'ftp://x' }, `${ENDPOINT}=ftp://x is ignored: expected an address such as http://localhost:4317`],
    [{ [ENDPOINT]: 'http://x', OTEL_TRACES_SAMPLER: 'xray' }, 'OTEL_TRACES_SAMPLER=xray is ignored'],
    [
      { [ENDPOINT]: 'http://x', OTEL_TRACES_SAMPLER_ARG: '7' },
      'OTEL_TRACES_SAMPLER_ARG=7 is ignored: expected a number from 0 to 1',
    ],
    [{ [ENDPOINT]: 'http://x', OTEL_PROPAGATORS: 'b3' }, 'OTEL_PROPAGATORS: b3 is ignored'],
    [{ [ENDPOINT]: 'http://x', OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, 'OTEL_EXPORTER_OTLP_HEADERS: a part is ignored'],
  ])('%j is warned of', (env, warning) => {
    expect(tracingSettings(env as Record<string, string>).warnings).toEqual([expect.stringContaining(warning)]);
  });

  it('a warning about headers does not repeat them', () => {
    const { warnings } = tracingSettings({ [ENDPOINT]: 'http://x', OTEL_EXPORTER_OTLP_HEADERS: 'authorization=%zz' });
    expect(warnings.join()).not.toContain('%zz');
  });
});
