import type { Piscina } from 'piscina';
import type { LoadedConfiguration, LoadOptions } from '../config/load.js';
import type { PoolRoute } from '../ingress/pool-choice.js';
import type { SocketFile, TlsMaterial, TransportName } from '../ingress/transport.js';
import type { Logger, LogOptions } from '../operations/log.js';
import type { MetricsServerOptions } from '../operations/telemetry/metrics-server.js';
import type { MayRead } from '../operations/telemetry/page-access.js';
import type { TracingSettings } from '../operations/tracing/settings.js';
import type { FileWatchOptions } from '../pool/discovery/file-watch.js';
import type { ModelAccess } from '../request/rules.js';
import type { KubernetesCluster } from './control/kubernetes-cluster.js';
import type { ProcessCluster } from './control/process-cluster.js';
import type { ReplicaSettings } from './control/replication-control.js';

/** A configuration file that is loaded again on SIGHUP, and when it changes if it is watched. */
export interface FollowedConfiguration extends FileWatchOptions {
  readonly file: string;
  readonly watched: boolean;
  readonly load: LoadOptions;
}

/** A pool beside the process's own. */
export interface PoolDefinition {
  readonly route: PoolRoute;
  /** Port of the pool's own; undefined = none. */
  readonly port: number | undefined;
  /** Differs from that of another definition when the pool has to be opened anew. */
  readonly identity: string;
  /** Options of the pool; those of the process in it have no effect. Rejects with one line when its configuration cannot be used. */
  options(): Promise<PickerOptions>;
}

/** A configuration that decides in shadow beside the running one (`--candidate-config`). */
export interface CandidateOptions {
  /** Its first version, which can run beside the configuration, and the text of it. */
  readonly configuration: LoadedConfiguration;
  readonly text: string;
  readonly followed: FollowedConfiguration;
  /** Requests from one shadow decision to the next. */
  readonly every: number;
}

/** The file with the pools beside the process's own, followed when it changes. */
export interface FollowedPools extends FileWatchOptions {
  readonly file: string;
  readonly watched: boolean;
  /** @throws ConfigurationError */
  readonly read: (text: string) => {
    readonly pools: readonly PoolDefinition[];
    readonly defaultPool: string | undefined;
  };
}

/** Addresses that the ports are opened on. */
export interface ListenAddresses {
  readonly grpc: string;
  readonly health: string;
  readonly metrics: string;
}

/** Options of a picker. Flags and configuration have been checked, and discovery is configured. */
export interface PickerOptions {
  readonly configuration: LoadedConfiguration;
  /** Undefined = the configuration is not from a file. */
  readonly followed: FollowedConfiguration | undefined;
  /** Whether plugins are allowed that are not finished. */
  readonly allowExperimental: boolean;
  /** Undefined = nothing decides in shadow. */
  readonly candidate: CandidateOptions | undefined;
  /** Addresses of the modules of third-party plugins (resolvePluginModule). */
  readonly pluginModules: readonly string[];
  readonly addresses: ListenAddresses;
  readonly transport: TransportName;
  /** A Unix domain socket that ext_proc is served on as well; undefined = none. */
  readonly socket: SocketFile | undefined;
  readonly grpcPort: number;
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly metricsTls: MetricsServerOptions['tls'];
  /** Access to the metrics port in the place of Kubernetes; undefined = Kubernetes says it where it is asked. */
  readonly metricsAccess: MayRead | undefined;
  readonly tls: TlsMaterial | undefined;
  /** Folder of the certificate: read again on SIGHUP, and when it changes if it is watched. Undefined = self-signed or none. */
  readonly certificate: { readonly folder: string; readonly watched: boolean } | undefined;
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** Connection of all pools to the cluster that they come from. */
  readonly cluster: ProcessCluster;
  /** The cluster that says which endpoints there are; undefined = the configuration's discovery does. */
  readonly kubernetes: KubernetesCluster | undefined;
  /** Label `name` of the pool's gauges. */
  readonly poolName: string;
  /** Whether the process has a pool of its own; without one it serves those of `pools` only. */
  readonly hasOwnPool: boolean;
  /** Further pools; undefined = the process serves its own one only. */
  readonly pools: FollowedPools | undefined;
  /** Bound on the requests in flight that are charged. */
  readonly maxCharges: number;
  /** Milliseconds that the streams of a removed pool get to end. */
  readonly poolDrainMs: number;
  readonly shards: number;
  /** `startShardThreads(shards)`; the picker ends them. */
  readonly shardThreads: Piscina;
  readonly maxEndpoints: number;
  readonly indexBlocks: number;
  readonly maxRequestBodyBytes: number;
  /** Bound of the whole process; each shard gets its share. */
  readonly maxStreams: number;
  readonly maxBufferedBytes: number;
  readonly maxConnections: number;
  /** Time without data from the client after which a request is answered with 408. */
  readonly requestIdleMs: number;
  readonly emitScores: boolean;
  readonly ignoreSubset: boolean;
  /** Whether a request may choose its profile with a header. */
  readonly allowProfileHeader: boolean;
  /** Whether the metrics port serves the page. */
  readonly ui: boolean;
  /** Decisions that the log keeps; 0 = none. */
  readonly decisions: number;
  /** One decision in so many keeps all columns; 0 = only refused and marked ones. */
  readonly columnsEvery: number;
  /** Whether requests with `x-pointsman-explain: 1` keep all columns of their decisions. */
  readonly allowExplain: boolean;
  /** Traces of requests; undefined = none. */
  readonly tracing?: TracingSettings | undefined;
  /** Files with the usage of each tenant, and the days that they are kept; undefined = none. */
  readonly usage?: { readonly folder: string; readonly days: number } | undefined;
  /** Models that clients may ask for. */
  readonly models: ModelAccess;
  /** Milliseconds that a drain goes on serving new requests at least; 0 = none. */
  readonly lameDuckMs: number;
  /** Milliseconds in which shards compile their code before they listen; 0 = none. */
  readonly warmUpMs: number;
  readonly ejection: boolean;
  readonly refreshMetricsMs: number;
  readonly stalenessMs: number;
  readonly streamMetrics: boolean;
  readonly seed: bigint;
  readonly version: string;
  readonly commit: string;
  readonly log: Logger;
  readonly logOptions: LogOptions;
  /** Folder that keeps the prefix index and what was learned; undefined = a restart begins anew. */
  readonly stateDir: string | undefined;
  /** Replicas that share what they know; undefined = none. */
  readonly replica: ReplicaSettings | undefined;
  /** Called when no shard can be started any more; the process should end. */
  readonly failed: (error: Error) => void;
}
