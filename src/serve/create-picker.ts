import { randomBytes, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Piscina } from 'piscina';
import { stringify } from 'yaml';
import { type ConfigurationSource, type LoadOptions, loadConfiguration } from '../config/load.js';
import { needsInWords, proxyNeeds } from '../config/proxy-needs.js';
import { defaultPoolSizes } from '../core/memory.js';
import { readCertificate, selfSignedCertificate } from '../ingress/certificate.js';
import type { TlsMaterial } from '../ingress/transport.js';
import { createLogger, type Logger, type LogOptions } from '../operations/log.js';
import { OPEN_METRICS_WARNING } from '../operations/telemetry/metrics-server.js';
import { TokenFile } from '../operations/telemetry/page-access.js';
import type { KubernetesCluster } from '../picker/control/kubernetes-cluster.js';
import { ProcessCluster } from '../picker/control/process-cluster.js';
import { Picker } from '../picker/picker.js';
import type { ListenAddresses, PickerOptions } from '../picker/picker-options.js';
import type { EndpointSource } from '../pool/discovery/kubernetes/kubernetes.js';
import { errorMessage } from '../runtime/error-message.js';
import { candidateOf } from './candidate.js';
import { AEAD_CIPHERS } from './cipher-suites.js';
import { type ServeFlags, sourceOfEndpoints } from './flags.js';
import { createCluster } from './kubernetes-cluster.js';
import { packageVersion } from './package-version.js';
import { pluginRegistry } from './plugin-registry.js';
import { followedPools } from './pools.js';
import { everyAddress } from './port.js';
import { replicaSettings } from './replica-settings.js';

/** Bounds that the transport for comparison lacks. */
const GRPC_JS_BOUNDS =
  '--transport=grpc-js is for comparison: unfinished messages and the resets of a connection are not bounded, compressed ' +
  'messages are inflated before they are refused, and a connection may have every stream';

/** gRPC's own default for one message. */
const DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024;

/** The configuration with every default written out, as YAML (`--print-effective-config`). */
export async function effectiveConfiguration(flags: ServeFlags): Promise<string> {
  const options = loadOptions(flags, (await pluginRegistry(flags.plugin)).registry);
  return stringify(loadConfiguration(configurationSource(flags), options).effective);
}

/**
 * A picker as the flags and their configuration want it, not started yet.
 * @param failed called when a running picker cannot go on
 * @param shardThreads `startShardThreads(flags.shards)`; the picker ends them, and so does a failure
 * @throws {Error} one line, when the configuration or a file that it names cannot be used
 */
export async function createPicker(
  flags: ServeFlags,
  failed: (error: Error) => void,
  shardThreads: Piscina,
): Promise<{ readonly picker: Picker; readonly log: Logger }> {
  try {
    const { modules, registry } = await pluginRegistry(flags.plugin);
    const configuration = loadConfiguration(configurationSource(flags), loadOptions(flags, registry));
    const source = sourceOfEndpoints(flags, configuration.discovery !== undefined);
    const isOwn = source !== 'none';
    const logOptions: LogOptions = { verbosity: flags.v, zapLogLevel: flags.zapLogLevel, zapEncoder: flags.zapEncoder };
    const log = createLogger(logOptions);
    if (flags.transport === 'grpc-js') log.warn(GRPC_JS_BOUNDS);
    for (const warning of [...flags.warnings, ...configuration.warnings]) log.warn(warning);
    log.info(
      needsInWords(proxyNeeds(configuration)),
      'what decisions read of the proxy (docs/guides/processing-modes.md)',
    );
    if (typeof source === 'string' && asksKubernetes(flags) && !flags.metricsClientCaFile)
      log.warn(OPEN_METRICS_WARNING);
    const cluster = new ProcessCluster(flags.pools !== undefined);
    const kubernetes = typeof source === 'string' ? undefined : await clusterOf(flags, source, cluster, log);
    const given = await fromFlags(flags);
    const options: Omit<PickerOptions, 'pools'> = {
      ...given,
      hasOwnPool: isOwn,
      metricsAccess: metricsAccess(flags, log),
      replica: isOwn ? replicaSettings(flags, configuration.replication, poolNameOf(flags)) : undefined,
      cluster,
      kubernetes,
      ...(kubernetes === undefined ? {} : { poolName: poolNameOf(flags) }),
      configuration,
      followed: followedConfiguration(flags, registry),
      candidate: candidateOf(flags.candidateConfig, flags.candidateEvery, configuration, loadOptions(flags, registry)),
      pluginModules: modules,
      shardThreads,
      log,
      logOptions,
      failed,
    };
    const base = { flags, load: loadOptions(flags, registry), log, options: () => options };
    return {
      picker: new Picker({ ...options, pools: followedPools(base, isOwn ? options.poolName : undefined) }),
      log,
    };
  } catch (error) {
    await shardThreads.destroy();
    throw error;
  }
}

/** The cluster that the endpoints come from. Nothing of it is loaded without. */
async function clusterOf(
  flags: ServeFlags,
  source: EndpointSource,
  cluster: ProcessCluster,
  log: Logger,
): Promise<KubernetesCluster> {
  if (source.kind === 'selector' && flags.podName === undefined) {
    log.warn('POD_NAME is not set: the pool is called "epp" in the metrics and in the lease');
  }
  const settings = {
    namespace: flags.poolNamespace || undefined,
    source,
    poolName: poolNameOf(flags),
    election: flags.haEnableLeaderElection,
    reviews: asksKubernetes(flags),
    podName: flags.podName,
  };
  return createCluster(settings, cluster, log);
}

/** The pool's name, else that of the Deployment that the picker's own pod belongs to. */
function poolNameOf({ poolName, podName }: ServeFlags): string {
  return poolName || /^(.+)-[a-z0-9]+-[a-z0-9]+$/.exec(podName ?? '')?.[1] || 'epp';
}

function configurationSource({ configFile, configText }: ServeFlags): ConfigurationSource {
  return { file: configFile, text: configText };
}

function loadOptions(
  { allowExperimentalPlugins, endpointsFile }: ServeFlags,
  registry: LoadOptions['registry'],
): LoadOptions {
  return { allowExperimental: allowExperimentalPlugins, registry, endpointsFile };
}

function followedConfiguration(flags: ServeFlags, registry: LoadOptions['registry']): PickerOptions['followed'] {
  if (!flags.configFile) return undefined;
  return { file: flags.configFile, watched: flags.watchConfig, load: loadOptions(flags, registry) };
}

type FromFlags = Omit<
  PickerOptions,
  | 'cluster'
  | 'kubernetes'
  | 'replica'
  | 'hasOwnPool'
  | 'pools'
  | 'metricsAccess'
  | 'configuration'
  | 'followed'
  | 'candidate'
  | 'pluginModules'
  | 'shardThreads'
  | 'log'
  | 'logOptions'
  | 'failed'
>;

async function fromFlags(flags: ServeFlags): Promise<FromFlags> {
  return {
    addresses: await listenAddresses(flags),
    transport: flags.transport,
    socket: socketFile(flags),
    grpcPort: flags.grpcPort,
    healthPort: flags.grpcHealthPort,
    metricsPort: flags.metricsPort,
    metricsTls: metricsTls(flags),
    tls: flags.secureServing ? await servingTls(flags) : undefined,
    certificate: flags.certPath ? { folder: flags.certPath, watched: flags.enableCertReload } : undefined,
    maxReceiveBytes: flags.grpcMaxRecvMsgSize ?? DEFAULT_MESSAGE_BYTES,
    maxSendBytes: flags.grpcMaxSendMsgSize ?? Number.MAX_SAFE_INTEGER,
    stateDir: flags.stateDir,
    poolName: flags.poolName || 'default',
    shards: flags.shards,
    maxEndpoints: flags.maxEndpoints,
    maxCharges: defaultPoolSizes.requests,
    poolDrainMs: flags.drainTimeout,
    indexBlocks: flags.indexBlocks,
    ui: flags.ui,
    allowExperimental: flags.allowExperimentalPlugins,
    decisions: flags.decisionLogSize,
    columnsEvery: flags.decisionColumnsEvery,
    allowExplain: flags.allowExplainHeader,
    maxRequestBodyBytes: flags.maxRequestBodySize,
    maxStreams: flags.maxStreams,
    maxConnections: flags.maxConnections,
    requestIdleMs: flags.requestIdleTimeout,
    maxBufferedBytes: flags.maxBufferedBytes,
    emitScores: flags.emitEndpointScores,
    ignoreSubset: flags.disableEndpointSubsetFilter,
    tracing: flags.traces,
    usage: flags.usageDir === undefined ? undefined : { folder: flags.usageDir, days: flags.usageDays },
    models: { matchRequired: flags.requireModelMatch, clientsRewrite: flags.modelRewriteHeader },
    lameDuckMs: flags.lameDuck,
    warmUpMs: flags.warmUp,
    ejection: !flags.disableEndpointEjection,
    allowProfileHeader: flags.allowProfileHeader,
    refreshMetricsMs: flags.refreshMetricsInterval,
    stalenessMs: flags.metricsStalenessThreshold,
    streamMetrics: flags.enableGrpcStreamMetrics,
    seed: flags.seed === undefined ? randomBytes(8).readBigUInt64LE() : BigInt(flags.seed),
    version: packageVersion(),
    commit: process.env.POINTSMAN_COMMIT ?? 'unknown',
  };
}

async function listenAddresses(flags: ServeFlags): Promise<ListenAddresses> {
  const all = flags.bindAddress ?? (await everyAddress());
  return {
    grpc: flags.grpcBindAddress ?? all,
    health: flags.grpcHealthBindAddress ?? all,
    metrics: flags.metricsBindAddress ?? all,
  };
}

/** Whether Kubernetes says who may read the metrics, where there is one. A token of its own takes the place of its word. */
function asksKubernetes({ metricsEndpointAuth, metricsAuthTokenFile }: ServeFlags): boolean {
  return metricsEndpointAuth && metricsAuthTokenFile === undefined;
}

function metricsAccess({ metricsAuthTokenFile }: ServeFlags, log: Logger): PickerOptions['metricsAccess'] {
  if (metricsAuthTokenFile === undefined) return undefined;
  return new TokenFile(metricsAuthTokenFile, (problem) => log.error({ part: 'metrics' }, problem)).mayRead;
}

function socketFile({ grpcSocket, grpcSocketMode, grpcSocketOwner }: ServeFlags): PickerOptions['socket'] {
  return grpcSocket === undefined ? undefined : { path: grpcSocket, mode: grpcSocketMode, owner: grpcSocketOwner };
}

async function servingTls(flags: ServeFlags): Promise<TlsMaterial> {
  const pair = flags.certPath ? readCertificate(flags.certPath, 'cert-path') : await selfSignedCertificate();
  return {
    ...pair,
    minVersion: flags.tlsMinVersion,
    ciphers: flags.tlsCipherSuites.length === 0 ? AEAD_CIPHERS : flags.tlsCipherSuites.join(':'),
    clientCa: flags.clientCaFile ? clientAuthority(flags.clientCaFile, 'client-ca-file') : undefined,
  };
}

function metricsTls(flags: ServeFlags): PickerOptions['metricsTls'] {
  if (!flags.metricsCertDir) return undefined;
  const pair = { ...readCertificate(flags.metricsCertDir, 'metrics-cert-dir'), ciphers: AEAD_CIPHERS };
  return flags.metricsClientCaFile
    ? { ...pair, clientCa: clientAuthority(flags.metricsClientCaFile, 'metrics-client-ca-file') }
    : pair;
}

function clientAuthority(path: string, flag: string): string {
  try {
    const pem = readFileSync(path, 'utf8');
    new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw new Error(`--${flag}: ${path} is no PEM certificate that can be read: ${errorMessage(error)}`);
  }
}
