import type { Piscina } from 'piscina';
import type { LoadedConfiguration, LoadOptions } from '../config/load.js';
import type { TlsMaterial, TransportName } from '../ingress/transport.js';
import type { Logger, LogOptions } from '../operations/log.js';
import type { MetricsServerOptions } from '../operations/telemetry/metrics-server.js';
import type { FileWatchOptions } from '../pool/discovery/file-watch.js';
import type { KubernetesCluster } from './control/kubernetes-cluster.js';

/** A configuration file that is followed. */
export interface FollowedConfiguration extends FileWatchOptions {
  readonly file: string;
  readonly load: LoadOptions;
}

/** Everything that a picker is started with; flags and configuration have been checked, discovery is configured. */
export interface PickerOptions {
  readonly configuration: LoadedConfiguration;
  /** Load the configuration again when its file changes; undefined = it stays. */
  readonly followed: FollowedConfiguration | undefined;
  /** Addresses of the modules of third-party plugins (resolvePluginModule). */
  readonly pluginModules: readonly string[];
  readonly host: string;
  readonly transport: TransportName;
  readonly grpcPort: number;
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly metricsTls: MetricsServerOptions['tls'];
  readonly tls: TlsMaterial | undefined;
  /** Follow the certificate in this folder; undefined = it stays. */
  readonly certificateFolder: string | undefined;
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** The cluster that says which endpoints there are; undefined = the configuration's discovery does. */
  readonly kubernetes: KubernetesCluster | undefined;
  /** Label `name` of the pool's gauges. */
  readonly poolName: string;
  readonly shards: number;
  /** `startShardThreads(shards)`; the picker ends them. */
  readonly shardThreads: Piscina;
  readonly maxEndpoints: number;
  readonly indexBlocks: number;
  readonly maxRequestBodyBytes: number;
  /** Of the whole process: each shard gets its share. */
  readonly maxStreams: number;
  readonly maxBufferedBytes: number;
  readonly maxConnections: number;
  /** Requests of which nothing comes for so long are answered with a 408. */
  readonly requestIdleMs: number;
  readonly emitScores: boolean;
  readonly ignoreSubset: boolean;
  /** Let requests choose their profile with a header. */
  readonly allowProfileHeader: boolean;
  /** Answer 404 to models that no objective and no rewrite rule names. */
  readonly requireModelMatch: boolean;
  readonly ejection: boolean;
  readonly refreshMetricsMs: number;
  readonly stalenessMs: number;
  readonly streamMetrics: boolean;
  readonly seed: bigint;
  readonly version: string;
  readonly commit: string;
  readonly log: Logger;
  readonly logOptions: LogOptions;
  /** No shard can be started any more: the process had better end. */
  readonly failed: (error: Error) => void;
}
