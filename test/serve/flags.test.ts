import { getCiphers } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { OPENSSL_CIPHERS } from '../../dist/src/serve/cipher-suites.js';
import { decideSettings } from '../../dist/src/serve/decide-flags.js';
import { FlagError, parseServeFlags, type ServeFlags, sourceOfEndpoints } from '../../dist/src/serve/flags.js';

function flags(argv: readonly string[], env: Record<string, string> = {}): ServeFlags {
  const result = parseServeFlags(argv, env);
  if ('help' in result) throw new Error('got the help');
  return result;
}

function help(argv: readonly string[]): string {
  const result = parseServeFlags(argv, {});
  if (!('help' in result)) throw new Error('got no help');
  return result.help;
}

describe('without any flag', () => {
  it('every value is the default', () => {
    expect(flags([])).toMatchObject({
      grpcPort: 9002,
      grpcHealthPort: 9003,
      metricsPort: 9090,
      secureServing: true,
      enableCertReload: false,
      tlsCipherSuites: [],
      metricsEndpointAuth: true,
      healthChecking: false,
      haEnableLeaderElection: false,
      drainTimeout: 30_000,
      lameDuck: 5_000,
      debugCore: false,
      poolGroup: 'inference.networking.k8s.io',
      poolNamespace: '',
      poolName: '',
      endpointSelector: '',
      endpointTargetPorts: [],
      disableEndpointSubsetFilter: false,
      emitEndpointScores: false,
      refreshMetricsInterval: undefined,
      scrapeCpuPercent: undefined,
      refreshPrometheusMetricsInterval: 5000,
      metricsStalenessThreshold: 2000,
      allowExperimentalPlugins: false,
      tracing: true,
      enablePprof: true,
      enableGrpcStreamMetrics: false,
      watchConfig: true,
      printEffectiveConfig: false,
      requireModelMatch: false,
      modelRewriteHeader: true,
      v: 2,
      logLevel: 'info',
      shards: 1,
      maxRequestBodySize: 67_108_864,
      maxStreams: 10_000,
      maxBufferedBytes: 536_870_912,
      disableEndpointEjection: false,
      maxEndpoints: 512,
      indexBlocks: 1_048_576,
      warnings: [],
    });
  });

  it.each([
    'certPath',
    'bindAddress',
    'grpcBindAddress',
    'grpcHealthBindAddress',
    'metricsBindAddress',
    'metricsAuthTokenFile',
    'tlsMinVersion',
    'metricsClientCaFile',
    'metricsCertDir',
    'configFile',
    'configText',
    'grpcMaxRecvMsgSize',
    'grpcMaxSendMsgSize',
    'seed',
    'podName',
  ] as const)('%s is not set', (name) => {
    expect(flags([])[name]).toBeUndefined();
  });
});

describe('a flag', () => {
  it.each([
    [['--grpc-port=1'], { grpcPort: 1 }],
    [['--grpc-port', '1'], { grpcPort: 1 }],
    [['-grpc-port', '1'], { grpcPort: 1 }],
    [['-grpc-port=1'], { grpcPort: 1 }],
    [['--grpc-port=1', '--grpc-port=2'], { grpcPort: 2 }],
    [['--grpc-port=0'], { grpcPort: 0 }],
    [['--grpc-health-port=65535'], { grpcHealthPort: 65_535 }],
    [['--metrics-port=1'], { metricsPort: 1 }],
    [['--secure-serving=false'], { secureServing: false }],
    [['--secure-serving=0'], { secureServing: false }],
    [['--secure-serving'], { secureServing: true }],
    [['--secure-serving', '--tracing=false'], { secureServing: true, tracing: false }],
    [['--emit-endpoint-scores=true'], { emitEndpointScores: true }],
    [['--allow-profile-header'], { allowProfileHeader: true }],
    [['--served-by-header=X-Inference-Pod'], { servedByHeader: 'x-inference-pod' }],
    [['--served-by-header='], { servedByHeader: undefined }],
    [['--cert-path=/certs', '--enable-cert-reload'], { certPath: '/certs', enableCertReload: true }],
    [['--tls-min-version=VersionTLS12'], { tlsMinVersion: 'TLSv1.2' }],
    [['--tls-min-version=VersionTLS13'], { tlsMinVersion: 'TLSv1.3' }],
    [
      ['--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256'],
      { tlsCipherSuites: ['ECDHE-RSA-AES128-GCM-SHA256', 'TLS_AES_128_GCM_SHA256'] },
    ],
    [
      ['--metrics-cert-dir=/c', '--metrics-client-ca-file=/ca', '--metrics-endpoint-auth=false'],
      { metricsCertDir: '/c', metricsClientCaFile: '/ca', metricsEndpointAuth: false },
    ],
    [['--metrics-cert-dir=/c'], { metricsCertDir: '/c' }],
    [
      ['--metrics-cert-dir=/c', '--metrics-auth-token-file=/t', '--metrics-endpoint-auth=false'],
      { metricsCertDir: '/c', metricsAuthTokenFile: '/t' },
    ],
    [
      ['--bind-address=127.0.0.1', '--metrics-bind-address=[::1]'],
      { bindAddress: '127.0.0.1', metricsBindAddress: '::1' },
    ],
    [['--health-checking'], { healthChecking: true }],
    [['--drain-timeout=1m30s'], { drainTimeout: 90_000 }],
    [['--drain-timeout=0s'], { drainTimeout: 0 }],
    [['--pool-name=p', '--pool-group=inference.networking.k8s.io'], { poolName: 'p' }],
    [['--pool-name=p', '--pool-group=inference.networking.k8s.io/v1'], { poolGroup: 'inference.networking.k8s.io' }],
    [['--pool-name=p', '--pool-group='], { poolGroup: 'inference.networking.k8s.io' }],
    [['--pool-namespace=prod'], { poolNamespace: 'prod' }],
    [
      ['--endpoint-selector=app=x', '--endpoint-target-ports=8000,8001', '--endpoint-target-ports=8000,8002'],
      { endpointSelector: 'app=x', endpointTargetPorts: [8000, 8001, 8002] },
    ],
    [['--disable-endpoint-subset-filter'], { disableEndpointSubsetFilter: true }],
    [['--refresh-metrics-interval=500ms'], { refreshMetricsInterval: 500 }],
    [['--scrape-cpu-percent=5'], { scrapeCpuPercent: 5 }],
    [['--refresh-prometheus-metrics-interval=100ms'], { refreshPrometheusMetricsInterval: 100 }],
    [['--metrics-staleness-threshold=5s'], { metricsStalenessThreshold: 5000 }],
    [['--metrics-staleness-threshold=0s'], { metricsStalenessThreshold: 0 }],
    [['--config-file=a.yaml'], { configFile: 'a.yaml' }],
    [['--config-text=kind: X\nplugins: [a=b]\n'], { configText: 'kind: X\nplugins: [a=b]\n' }],
    [['--config-text', '-h'], { configText: '-h' }],
    [['--config-text='], { configText: undefined }],
    [['--allow-experimental-plugins'], { allowExperimentalPlugins: true }],
    [['--enable-pprof=false', '--enable-grpc-stream-metrics'], { enablePprof: false, enableGrpcStreamMetrics: true }],
    [['--grpc-max-recv-msg-size=10485760'], { grpcMaxRecvMsgSize: 10_485_760 }],
    [['--grpc-max-recv-msg-size=10Mi'], { grpcMaxRecvMsgSize: 10_485_760 }],
    [['--grpc-max-recv-msg-size=10MiB'], { grpcMaxRecvMsgSize: 10_485_760 }],
    [['--grpc-max-recv-msg-size=20M'], { grpcMaxRecvMsgSize: 20_000_000 }],
    [['--grpc-max-recv-msg-size=0', '--grpc-max-send-msg-size=0'], { grpcMaxRecvMsgSize: undefined }],
    [['--grpc-max-send-msg-size=20MB'], { grpcMaxSendMsgSize: 20_000_000 }],
    [['--grpc-max-send-msg-size=1Pi'], { grpcMaxSendMsgSize: 4_294_967_295 }],
    [['--grpc-max-send-msg-size='], { grpcMaxSendMsgSize: undefined }],
    [['-v=4'], { v: 4, logLevel: 'debug' }],
    [['--v', '4'], { v: 4, logLevel: 'debug' }],
    [['-v', '5'], { v: 5, logLevel: 'trace' }],
    [['--v=0'], { v: 0, logLevel: 'info' }],
    [['--zap-encoder=json', '--zap-log-level=error'], { zapEncoder: 'json', logLevel: 'error' }],
    [['--zap-log-level=panic'], { logLevel: 'fatal' }],
    [['--zap-log-level=5', '-v=2'], { logLevel: 'trace' }],
    [
      ['--zap-devel', '--zap-stacktrace-level=panic', '--zap-time-encoding=iso8601', '--zap-encoder=console'],
      { zapDevel: true, zapEncoder: 'console' },
    ],
    [['--shards=4'], { shards: 4 }],
    [['--max-request-body-size=1Mi'], { maxRequestBodySize: 1_048_576 }],
    [['--max-streams=5'], { maxStreams: 5 }],
    [['--max-buffered-bytes=1G'], { maxBufferedBytes: 1_000_000_000 }],
    [['--disable-endpoint-ejection'], { disableEndpointEjection: true }],
    [['--max-endpoints=10240'], { maxEndpoints: 10_240 }],
    [['--index-blocks=2097152'], { indexBlocks: 2_097_152 }],
    [['--seed=7'], { seed: 7 }],
  ])('%j is %j', (argv, expected) => {
    expect(flags(argv)).toMatchObject(expected);
  });

  it.each([
    ['numbers', ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0']],
    ['addresses', ['--grpc-port=7', '--metrics-port=7', '--grpc-bind-address=::1', '--metrics-bind-address=127.0.0.1']],
  ])('ports of free %s of their own do not meet', (_, argv) => {
    expect(flags(argv)).toMatchObject({ secureServing: true });
  });

  it.each([
    [['--no-such-flag'], 'unknown flag --no-such-flag; see --help'],
    [['--gprc-port=1'], 'unknown flag --gprc-port; did you mean --grpc-port?'],
    [['--constructor=1'], 'unknown flag --constructor'],
    [['serve-this'], 'unexpected argument "serve-this"; see --help'],
    [['--tracing', 'false'], 'unexpected argument "false"; write --tracing=false'],
    [['--'], 'unexpected argument "--"'],
    [['--grpc-port'], '--grpc-port: needs a value: --grpc-port=<port>'],
    [['--grpc-port=abc'], '--grpc-port: expected a number from 0 to 65535, got "abc"'],
    [['--metrics-port=65536'], '--metrics-port: expected a number from 0 to 65535'],
    [['--grpc-health-port=-1'], '--grpc-health-port: expected a number'],
    [['--secure-serving=maybe'], '--secure-serving: expected true or false, got "maybe"'],
    [['--drain-timeout=soon'], '--drain-timeout: expected a duration such as 50ms, 1.5s or 2m30s, got "soon"'],
    [['--drain-timeout=-1s'], '--drain-timeout: must not be negative'],
    [['--drain-timeout=1000h'], '--drain-timeout: must be at most 596h'],
    [['--metrics-staleness-threshold=-1s'], '--metrics-staleness-threshold: must not be negative'],
    [['--grpc-max-recv-msg-size=10invalid'], '--grpc-max-recv-msg-size: expected a size such as 10Mi'],
    [['--grpc-max-recv-msg-size=abc'], '--grpc-max-recv-msg-size: expected a size'],
    [['--grpc-max-recv-msg-size=-10Mi'], '--grpc-max-recv-msg-size: must be greater than 0, got "-10Mi"'],
    [['--grpc-max-recv-msg-size=10Ei'], '--grpc-max-recv-msg-size: expected a size'],
    [['--grpc-max-send-msg-size=-1'], '--grpc-max-send-msg-size: must be greater than 0'],
    [['--grpc-max-send-msg-size', '-1'], '--grpc-max-send-msg-size: must be greater than 0'],
    [['--max-request-body-size=0'], '--max-request-body-size: must be greater than 0'],
    [
      ['--tls-min-version=VersionTLS99'],
      'expected one of VersionTLS12, VersionTLS13, got "VersionTLS99"; did you mean',
    ],
    [
      ['--trusted-proxies=10.0.0.7,10.0.0.0/33'],
      '--trusted-proxies: expected IP addresses or networks such as 10.0.0.7',
    ],
    [['--tls-cipher-suites=TLS_NOPE'], '--tls-cipher-suites: unknown cipher suite "TLS_NOPE"'],
    [
      ['--pool-name=a', '--endpoint-selector=app=x', '--endpoint-target-ports=8000'],
      '--pool-name and --endpoint-selector',
    ],
    [['--endpoint-selector=app=x'], 'add --endpoint-target-ports'],
    [['--endpoint-target-ports=1,2,3,4,5,6,7,8,9'], '--endpoint-target-ports: expected at most 8 ports'],
    [['--endpoint-target-ports=0'], '--endpoint-target-ports: expected a number from 1 to 65535'],
    [['--config-file=a', '--config-text=b'], '--config-file and --config-text exclude each other'],
    [
      ['--metrics-client-ca-file=/ca.pem'],
      '--metrics-client-ca-file needs TLS on the metrics port: add --metrics-cert-dir',
    ],
    [['--grpc-bind-address=localhost'], '--grpc-bind-address: expected an IP address such as 127.0.0.1 or ::1'],
    [['--client-ca-file=/ca', '--secure-serving=false'], '--client-ca-file needs TLS on the ext_proc port'],
    [['--metrics-cert-dir=/c', '--metrics-endpoint-auth=false'], '--metrics-cert-dir without any authentication'],
    [['--total-queued-requests-metric=x'], '--total-queued-requests-metric is no longer supported'],
    [['--total-running-requests-metric=x'], '--total-running-requests-metric is no longer supported'],
    [['--kv-cache-usage-percentage-metric=x'], '--kv-cache-usage-percentage-metric is no longer supported'],
    [['--lora-info-metric='], '--lora-info-metric is no longer supported'],
    [['--cache-info-metric=x'], '--cache-info-metric is no longer supported'],
    [['--v=many'], '--v: expected a number'],
    [['--zap-log-level=loud'], '--zap-log-level: expected one of debug, info, error, panic'],
    [['--zap-encoder=xml'], '--zap-encoder: expected one of json, console'],
    [['--shards=0'], '--shards: expected a number from 1 to 64'],
    [['--max-endpoints=10241'], '--max-endpoints: expected a number from 1 to 10240'],
    [['--seed=1.5'], '--seed: expected a number from 0 to 4294967295'],
    [['--grpc-port=9090'], '--grpc-port and --metrics-port are both 9090: give each a port of its own'],
    [
      ['--grpc-port=7', '--metrics-port=7', '--grpc-bind-address=::1', '--bind-address=::1'],
      '--grpc-port and --metrics-port are both 7',
    ],
    [['--served-by-header=not a name'], '--served-by-header: expected the name of a header of our own'],
    [['--served-by-header=Content-Length'], 'clients and proxies act on this one, got "Content-Length"'],
  ])('%j is refused in one line', (argv, message) => {
    let thrown: unknown;
    try {
      parseServeFlags(argv, {});
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(FlagError);
    expect((thrown as Error).message).toContain(message);
    expect((thrown as Error).message).not.toContain('\n');
  });

  it.each([
    [['--refresh-metrics-interval=10ms'], '--refresh-metrics-interval=10ms is clamped to 50ms'],
    [['--ha-enable-leader-election'], '--ha-enable-leader-election has no effect'],
    [['--endpoint-target-ports=8000'], '--endpoint-target-ports has no effect without --endpoint-selector'],
    [['--enable-cert-reload'], '--enable-cert-reload has no effect without --cert-path'],
    [['--cert-path=/c', '--secure-serving=false'], '--cert-path has no effect without --secure-serving'],
    [['--secure-serving=false', '--tls-min-version=VersionTLS13'], '--tls-min-version has no effect without --secure'],
    [['--grpc-socket-mode=0600'], '--grpc-socket-mode has no effect without --grpc-socket'],
    [['--pool-namespace=llm'], '--pool-namespace has no effect without --pool-name or --endpoint-selector'],
    [['--watch-config=false'], '--watch-config has no effect without --config-file'],
  ])('%j gives a warning', (argv, warning) => {
    expect(flags(argv).warnings).toEqual([expect.stringContaining(warning)]);
  });

  it('a flag clamps the refresh interval', () => {
    expect(flags(['--refresh-metrics-interval=10ms']).refreshMetricsInterval).toBe(50);
  });
});

describe('the environment', () => {
  it('the environment gives the namespace when no flag does', () => {
    expect(flags([], { NAMESPACE: 'prod' }).poolNamespace).toBe('prod');
    expect(flags(['--pool-namespace=test'], { NAMESPACE: 'prod' }).poolNamespace).toBe('test');
  });

  it("the environment gives the pod's name", () => {
    expect(flags([], { POD_NAME: 'epp-1' }).podName).toBe('epp-1');
  });
});

describe('the help', () => {
  it.each([['--help'], ['-h'], ['-help']])('the help is given for %s', (argument) => {
    expect(help([argument])).toContain('Usage: pointsman serve [flags]');
  });

  it('the help wins over other flags', () => {
    expect(help(['--grpc-port=1', '--help', '--no-such-flag'])).toContain('--grpc-port <port>');
  });

  it('the help lists every flag in a group, with its default', () => {
    const text = help(['--help']);
    const names = Object.keys(flags([])).filter(
      (name) => !['traces', 'logLevel', 'podName', 'warnings'].includes(name),
    );
    for (const name of names) {
      expect(text).toContain(`--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
    }
    expect(text).toMatch(/^Ports:$/m);
    expect(text).toMatch(/--grpc-port <port> +Port of ext_proc\. \(9002\)/);
  });
});

describe('the source of endpoints', () => {
  const given = (...argv: string[]) => flags(argv);

  it('the source of endpoints is the discovery of the configuration, for which --pool-name is only a name', () => {
    expect(sourceOfEndpoints(given(), true)).toBe('configuration');
    expect(sourceOfEndpoints(given('--pool-name=p'), true)).toBe('configuration');
  });

  it('the source of endpoints is the InferencePool of --pool-name, in the group of --pool-group', () => {
    const flags = given('--pool-name=p', '--pool-group=inference.networking.x-k8s.io');
    expect(sourceOfEndpoints(flags, false)).toEqual({
      kind: 'pool',
      name: 'p',
      group: 'inference.networking.x-k8s.io',
    });
  });

  it('the source of endpoints is what --endpoint-selector selects', () => {
    const flags = given('--endpoint-selector=app in (a, b),!old', '--endpoint-target-ports=8000,8001');
    const source = sourceOfEndpoints(flags, false);
    expect(source).toMatchObject({
      kind: 'selector',
      labels: { selector: 'app in (a, b),!old' },
      ports: [8000, 8001],
    });
    const accepts = (source as Extract<typeof source, { kind: 'selector' }>).labels.accepts;
    expect([{ app: 'b' }, { app: 'b', old: '' }, { app: 'c' }].map(accepts)).toEqual([true, false, false]);
  });

  it('the source of endpoints is missing with all three named', () => {
    expect(() => sourceOfEndpoints(given(), false)).toThrow(
      'no source of endpoints: give one of --endpoints-file (a list in a file), --pool-name (an InferencePool), ' +
        '--endpoint-selector (labels of pods), or a file-discovery plugin in dataLayer.discovery of the configuration',
    );
  });

  it('the source of endpoints is not two', () => {
    const flags = given('--endpoint-selector=app=x', '--endpoint-target-ports=8000');
    expect(() => sourceOfEndpoints(flags, true)).toThrow(
      /^two sources of endpoints, --endpoint-selector and dataLayer.discovery/,
    );
  });

  it.each([['app in (a'], ['app=x,=y'], ['app=x,a b']])(
    'the source of endpoints with the selector %j is refused with the place of the mistake',
    (selector) => {
      expect(() => given(`--endpoint-selector=${selector}`)).toThrow(/--endpoint-selector: .* at character \d+/);
    },
  );

  it('the source of endpoints in an unknown API group is refused', () => {
    expect(() => given('--pool-name=p', '--pool-group=x')).toThrow(
      /^--pool-group: expected inference.networking.k8s.io or inference.networking.x-k8s.io/,
    );
  });
});

describe('the cipher suites', () => {
  it.each([...OPENSSL_CIPHERS])('%s is %s, which this OpenSSL has', (_name, cipher) => {
    expect(getCiphers()).toContain(cipher.toLowerCase());
  });
});

describe('the age from which on signals are unknown', () => {
  const unknownFromMs = (...argv: readonly string[]) => decideSettings(flags(argv), 0).stalenessMs;

  it('the age from which on signals are unknown is that of its flag while scrapes are close together', () => {
    expect(unknownFromMs()).toBe(2_000);
    expect(unknownFromMs('--metrics-staleness-threshold=500ms')).toBe(500);
  });

  it('the age from which on signals are unknown is three intervals of scrapes that are far apart', () => {
    expect(unknownFromMs('--refresh-metrics-interval=10s')).toBe(30_000);
    expect(unknownFromMs('--refresh-metrics-interval=1s', '--metrics-staleness-threshold=1s')).toBe(3_000);
    expect(unknownFromMs('--refresh-metrics-interval=1s', '--metrics-staleness-threshold=0s')).toBe(3_000);
  });
});
