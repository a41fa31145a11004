import type { Piscina } from 'piscina';
import { stringify } from 'yaml';
import { type ConfigurationSource, type LoadOptions, loadConfiguration, runningWarnings } from '../config/load.js';
import { needsInWords, proxyNeeds } from '../config/proxy-needs.js';
import { createLogger, type Logger } from '../operations/log.js';
import { OPEN_METRICS_WARNING } from '../operations/telemetry/metrics-server.js';
import { TokenFile } from '../operations/telemetry/page-access.js';
import type { KubernetesCluster } from '../picker/control/kubernetes-cluster.js';
import { ProcessCluster } from '../picker/control/process-cluster.js';
import { Picker } from '../picker/picker.js';
import type { PickerOptions } from '../picker/picker-options.js';
import type { EndpointSource } from '../pool/discovery/kubernetes/kubernetes.js';
import { boundsOf } from './bounds-flags.js';
import { candidateOf } from './candidate.js';
import { decideSettings } from './decide-flags.js';
import { type ServeFlags, sourceOfEndpoints } from './flags.js';
import { createCluster } from './kubernetes-cluster.js';
import { listenSettings } from './listen-flags.js';
import { observeSettings } from './observe-flags.js';
import { packageVersion } from './package-version.js';
import { pluginRegistry } from './plugin-registry.js';
import { followedPools } from './pools.js';
import { replicaSettings } from './replica-settings.js';

/** Bounds that the transport for comparison lacks. */
const GRPC_JS_BOUNDS =
  '--transport=grpc-js is for comparison: unfinished messages and the resets of a connection are not bounded, ' +
  'compressed ' +
  'messages are inflated before they are refused, and a connection may have every stream';

/** The configuration with every default written out, as YAML (`--print-effective-config`). */
export async function effectiveConfiguration(flags: ServeFlags): Promise<string> {
  const options = loadOptions(flags, (await pluginRegistry(flags.plugin)).registry);
  return stringify(loadConfiguration(configurationSource(flags), options).effective);
}

/**
 * A picker by the flags and their configuration, before its start.
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
    const poolName = isKubernetes(source) ? poolNameOf(flags) : flags.poolName || 'default';
    const observe = observeSettings(flags, poolName, flags.traces?.sampler);
    const log = createLogger(observe.log);
    if (flags.transport === 'grpc-js') log.warn(GRPC_JS_BOUNDS);
    for (const warning of [...flags.warnings, ...runningWarnings(configuration)]) log.warn(warning);
    for (const note of configuration.notes) log.info(note);
    log.info(
      needsInWords(proxyNeeds(configuration)),
      'what decisions read of the proxy (docs/guides/processing-modes.md)',
    );
    if (!isKubernetes(source) && asksKubernetes(flags) && !flags.metricsClientCaFile) log.warn(OPEN_METRICS_WARNING);
    const cluster = new ProcessCluster(flags.pools !== undefined);
    const kubernetes = isKubernetes(source) ? await clusterOf(flags, source, cluster, log) : undefined;
    const candidate = candidateOf(flags.candidateConfig, configuration, loadOptions(flags, registry));
    const options: Omit<PickerOptions, 'pools'> = {
      listen: await listenSettings(flags, (text) => log.warn(text)),
      bounds: boundsOf(flags),
      decide: decideSettings(flags, candidate === undefined ? 0 : flags.candidateEvery),
      observe,
      traces: flags.traces,
      stateDir: flags.stateDir,
      allowExperimental: flags.allowExperimentalPlugins,
      poolDrainMs: flags.drainTimeout,
      lameDuckMs: flags.lameDuck,
      warmUpMs: flags.warmUp,
      idleWarmUpMs: flags.idleWarmUp,
      version: packageVersion(),
      commit: process.env.POINTSMAN_COMMIT ?? 'unknown',
      hasOwnPool: isOwn,
      metricsAccess: metricsAccess(flags, log),
      replica: isOwn ? replicaSettings(flags, configuration.replication, poolNameOf(flags)) : undefined,
      cluster,
      kubernetes,
      configuration,
      followed: followedConfiguration(flags, registry),
      candidate,
      pluginModules: modules,
      shardThreads,
      log,
      failed,
    };
    const base = { flags, load: loadOptions(flags, registry), log, options: () => options };
    return {
      picker: new Picker({ ...options, pools: followedPools(base, isOwn ? poolName : undefined) }),
      log,
    };
  } catch (error) {
    await shardThreads.destroy();
    throw error;
  }
}

function isKubernetes(source: ReturnType<typeof sourceOfEndpoints>): source is EndpointSource {
  return typeof source !== 'string';
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
  { allowExperimentalPlugins, endpointsFile, featureGates }: ServeFlags,
  registry: LoadOptions['registry'],
): LoadOptions {
  return { allowExperimental: allowExperimentalPlugins, registry, endpointsFile, featureGates };
}

function followedConfiguration(flags: ServeFlags, registry: LoadOptions['registry']): PickerOptions['followed'] {
  if (!flags.configFile) return undefined;
  return { file: flags.configFile, watched: flags.watchConfig, load: loadOptions(flags, registry) };
}

/** Whether the API server decides who may read the metrics: with a token file of its own it does not. */
function asksKubernetes({ metricsEndpointAuth, metricsAuthTokenFile }: ServeFlags): boolean {
  return metricsEndpointAuth && metricsAuthTokenFile === undefined;
}

function metricsAccess({ metricsAuthTokenFile }: ServeFlags, log: Logger): PickerOptions['metricsAccess'] {
  if (metricsAuthTokenFile === undefined) return undefined;
  return new TokenFile(metricsAuthTokenFile, (problem) => log.error({ part: 'metrics' }, problem)).mayRead;
}
