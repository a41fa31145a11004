import type { Piscina } from 'piscina';
import type { LoadedConfiguration, LoadOptions } from '../config/load.js';
import type { TlsMaterial, TransportName } from '../ingress/transport.js';
import type { Logger, LogOptions } from '../operations/log.js';
import type { MetricsServerOptions } from '../operations/telemetry/metrics-server.js';
import type { FileWatchOptions } from '../pool/discovery/file-watch.js';

/** A configuration file that is followed. */
export interface FollowedConfiguration extends FileWatchOptions {
  readonly file: string;
  readonly load: LoadOptions;
}

/** Everything that a picker starts with. Flags and configuration have been checked, and discovery is configured. */
export interface PickerOptions {
  readonly configuration: LoadedConfiguration;
  /** The configuration file to reload when it changes; undefined = it is not followed. */
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
  /** Folder of the certificate to follow; undefined = the certificate does not change. */
  readonly certificateFolder: string | undefined;
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** Label `name` of the pool's gauges. */
  readonly poolName: string;
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
  /** Whether models without an objective or rewrite rule are answered with 404. */
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
  /** Called when no shard can be started any more; the process should end. */
  readonly failed: (error: Error) => void;
}
