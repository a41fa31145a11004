import type { Piscina } from 'piscina';
import type { LoadedConfiguration, LoadOptions } from '../config/load.js';
import type { Bounds } from '../contract/bounds.js';
import type { DecideSettings } from '../contract/decide-settings.js';
import type { ListenSettings } from '../contract/listen-settings.js';
import type { ObserveSettings } from '../contract/observe-settings.js';
import type { PoolRoute } from '../ingress/pool-choice.js';
import type { Logger } from '../operations/log.js';
import type { MayRead } from '../operations/telemetry/page-access.js';
import type { TracingSettings } from '../operations/tracing/settings.js';
import type { FileWatchOptions } from '../pool/discovery/file-watch.js';
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
  /** Differs from that of another definition if a change to that one has to open the pool anew. */
  readonly identity: string;
  /**
   * Options of the pool; those of the process in it have no effect. Rejects with one line when its configuration cannot
   * be used.
   */
  options(): Promise<PickerOptions>;
}

/** A configuration that decides in shadow beside the running one (`--candidate-config`). */
export interface CandidateOptions {
  /** Its first version, which can run beside the configuration, and the text of it. */
  readonly configuration: LoadedConfiguration;
  readonly text: string;
  readonly followed: FollowedConfiguration;
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

/** Settings by section, unchanged for shards. */
export interface ShardSections {
  readonly listen: ListenSettings;
  readonly bounds: Bounds;
  readonly decide: DecideSettings;
  readonly observe: ObserveSettings;
}

/** Options of a picker. Flags and configuration have been checked, and discovery is configured. */
export interface PickerOptions extends ShardSections {
  readonly configuration: LoadedConfiguration;
  /** Undefined = the configuration is not from a file. */
  readonly followed: FollowedConfiguration | undefined;
  /** Whether plugins are allowed that are not finished. */
  readonly allowExperimental: boolean;
  /** Undefined = nothing decides in shadow. */
  readonly candidate: CandidateOptions | undefined;
  /** Addresses of the modules of third-party plugins (resolvePluginModule). */
  readonly pluginModules: readonly string[];
  /** Access to the metrics port in the place of Kubernetes; undefined = Kubernetes says it where it is asked. */
  readonly metricsAccess: MayRead | undefined;
  /** Connection of all pools to the cluster that they come from. */
  readonly cluster: ProcessCluster;
  /** The cluster with the endpoints; undefined = the configuration's discovery finds them. */
  readonly kubernetes: KubernetesCluster | undefined;
  /** Whether the process has a pool of its own; without one it serves those of `pools` only. */
  readonly hasOwnPool: boolean;
  /** Further pools; undefined = the process serves its own one only. */
  readonly pools: FollowedPools | undefined;
  /** Milliseconds that the streams of a removed pool get to end. */
  readonly poolDrainMs: number;
  /** `startShardThreads(bounds.shards)`; the picker ends them. */
  readonly shardThreads: Piscina;
  /** Where traces of requests are written; undefined = nowhere. */
  readonly traces: TracingSettings | undefined;
  /** Milliseconds that a drain goes on serving new requests at least; 0 = none. */
  readonly lameDuckMs: number;
  /** Milliseconds in which shards compile their code before they listen; 0 = none. */
  readonly warmUpMs: number;
  /** Milliseconds of a shard's thread in which it compiles code while nothing comes, once it is ready; 0 = none. */
  readonly idleWarmUpMs: number;
  readonly version: string;
  readonly commit: string;
  readonly log: Logger;
  /** Folder that keeps the prefix index and what was learned; undefined = a restart begins anew. */
  readonly stateDir: string | undefined;
  /** Replicas that share placements and load; undefined = none. */
  readonly replica: ReplicaSettings | undefined;
  /** Called when no shard can be started any more; the process should end. */
  readonly failed: (error: Error) => void;
}
