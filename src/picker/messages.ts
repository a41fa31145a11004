import type { LegacyModel, ModelRewrite, SlotAssignment } from '../contract/endpoint.js';
import type { EndpointFacts } from '../contract/endpoint-facts.js';
import type { KeptColumns } from '../contract/kept-columns.js';
import type { KeyPair } from '../contract/listen-settings.js';
import type { RetentionHint } from '../contract/queue-settings.js';
import type { SaturationSettings } from '../contract/saturation-settings.js';
import type { TapCounts } from '../core/decision-tap.js';
import type { PoolMemory } from '../core/memory.js';
import type { UsageReport } from '../flow-control/waiting-line.js';
import type { PoolRoute } from '../ingress/pool-choice.js';
import type { TraceBatch } from '../ingress/tracing/trace-record.js';
import type { ServingStatus } from '../ingress/transport.js';
import type { ShardUse } from '../operations/metrics/shard-metrics.js';
import type { VouchedNames } from '../operations/telemetry/shown-names.js';
import type { SegmentsState } from '../request/tokens/token-source.js';
import type { Ticket } from '../scheduling/decision.js';
import type {
  CompiledScheduling,
  EstimatedOutput,
  HookPluginSettings,
  PrefixSettings,
  ProfileFilter,
} from '../scheduling/program.js';
import type { ObjectiveTimes } from '../scheduling/wanted-times.js';
import type { ShardSections } from './picker-options.js';

/** Initial settings of a shard, by section: the objects made from the flags and the configuration. */
export interface ShardSettings extends ShardSections {
  readonly restart: RestartSettings;
  readonly reloadable: ReloadableSettings;
}

/** The parts of a configuration that only a restart changes. */
export interface RestartSettings
  extends Pick<
    CompiledScheduling,
    'tokens' | 'requestKeys' | 'baseModels' | 'prefixProducer' | 'prediction' | 'handler'
  > {
  readonly plugins: PluginSettings;
}

/** The parts of a configuration that a reload can change. */
export interface ReloadableSettings {
  readonly parsers: readonly string[];
  /** Names of the profiles in the order of their numbers. */
  readonly profiles: readonly string[];
  /** Filters of the profiles, in the same order. */
  readonly filters: readonly (readonly ProfileFilter[])[];
  readonly prefix: PrefixSettings | undefined;
  readonly estimateOutput: EstimatedOutput | undefined;
  /** Attribute that names the session of a request; undefined = its prompt tells. */
  readonly sessionAttribute: string | undefined;
  /** How engines are asked to keep the blocks of sessions; undefined = they are not asked. */
  readonly retention: RetentionHint | undefined;
  /** Latency objectives of requests, by objective. */
  readonly objectiveTimes: ObjectiveTimes;
  readonly saturation: SaturationSettings;
  /** Flow control of the shard; undefined = flow control is off. */
  readonly flowControl: ShardFlowControl | undefined;
  /** Whether requests may ask for their endpoint alone. */
  readonly reserves: boolean;
  /** Whether decisions depend on bodies of answers (config/proxy-needs.ts). */
  readonly readsAnswers: boolean;
}

/** The part of flow control that a shard has to know. */
export interface ShardFlowControl {
  /** Fairness ids with a token bucket, whose requests all go through the queues; `*` = all. */
  readonly limitedTenants: readonly string[];
  /**
   * Size in bytes of the largest body that every band can hold. A request with a larger body goes to the queues, which
   * decide.
   */
  readonly largestBody: number;
  /** Whether running requests may be evicted for requests of a higher band. */
  readonly evicts: boolean;
}

/** Hook plugins of a shard. Definitions are code, so the shard loads their modules itself. */
export interface PluginSettings {
  /** Addresses of the modules of third-party plugins (`--plugin`). */
  readonly modules: readonly string[];
  readonly configured: readonly HookPluginSettings[];
  /** Name shared by the shards of one picker, which separates its plugin channels from those of other pickers. */
  readonly group: string;
}

/** Memory that a shard compiles its code on (`--warm-up`, `--idle-warm-up`). */
export interface RehearsalPool {
  readonly pool: PoolMemory;
  /** Bound on the time that it takes of the thread. */
  readonly timeMs: number;
  readonly assignments: readonly SlotAssignment[];
}

/** Start data of a shard task. Its message port is transferred along. */
export interface ShardStart {
  readonly thread: number;
  readonly control: import('node:worker_threads').MessagePort;
  readonly health: HealthStatuses;
  /** The process's own pool comes first: its settings say where the shard listens. */
  readonly pools: readonly [PoolStart, ...PoolStart[]];
  /** How requests find their pool; undefined = the process has its own pool only. */
  readonly choice: ChoiceSettings | undefined;
  /** Undefined = the shard begins at once. */
  readonly rehearsal?: RehearsalPool | undefined;
}

/** Choice of the pool in a process that may serve several. */
export interface ChoiceSettings {
  /** Pool of the requests that nothing else says the pool of; undefined = they are refused. */
  readonly defaultPool: string | undefined;
}

/** Start data of one pool in a shard. */
export interface PoolStart {
  /** Number of the pool; 0 = the process's own. A number is not given twice. */
  readonly pool: number;
  readonly memory: PoolMemory;
  readonly settings: ShardSettings;
  /** Seed of the pool's generators on the thread, as a decimal string (a bigint of 64 bits). */
  readonly seed: string;
  readonly snapshot: PoolSnapshot;
  /** How requests find the pool; undefined = they do not, because it has no source of endpoints. */
  readonly route: PoolRoute | undefined;
  /** Port whose requests are all for this pool; undefined = none. */
  readonly port: number | undefined;
}

export type HealthStatuses = readonly (readonly [string, ServingStatus])[];

/** The state of discovery in the form for shards. */
export interface PoolSnapshot {
  readonly version: number;
  readonly assignments: readonly SlotAssignment[];
  readonly rules: RulesMessage;
  readonly names: VouchedNames;
  readonly facts: readonly EndpointFacts[];
}

export interface RulesMessage {
  readonly objectives: readonly (readonly [string, number])[];
  readonly rewrites: readonly ModelRewrite[];
  readonly models: readonly (readonly [string, LegacyModel])[];
}

/** Control thread → one pool of a shard. */
export type ToPool =
  | {
      readonly kind: 'endpoints';
      readonly version: number;
      readonly added: readonly SlotAssignment[];
      readonly removed: readonly number[];
    }
  | ({ readonly kind: 'rules' } & RulesMessage)
  /** What endpoints have told of themselves; of the others nothing has changed. */
  | { readonly kind: 'facts'; readonly changed: readonly EndpointFacts[] }
  /** Names that metrics show as label values. */
  | { readonly kind: 'names'; readonly names: VouchedNames }
  /** New settings for the requests that begin after the message. */
  | { readonly kind: 'configured'; readonly settings: ReloadableSettings }
  /** Evicts a running request for one of a higher band. */
  | ({ readonly kind: 'evictRequest' } & Ticket)
  /** Answers `traces`: the shard may send the next ones. */
  | { readonly kind: 'tracesTaken' }
  /** Records decisions until the next such message; undefined = no longer. */
  /** Requests whose decisions keep their columns from now on, all of them. */
  | { readonly kind: 'keepColumns'; readonly wanted: readonly KeptColumns[] }
  | { readonly kind: 'record'; readonly recording: number; readonly bytesMax: number | undefined };

/** Control thread → shard. */
export type ToShard =
  | { readonly kind: 'pool'; readonly pool: number; readonly message: ToPool }
  | { readonly kind: 'addPool'; readonly start: PoolStart }
  /** Replaces how later requests find the pool. */
  | { readonly kind: 'route'; readonly pool: number; readonly route: PoolRoute }
  /** Closes the pool to new requests. Its streams end; requests that still wait after `timeoutMs` are answered. */
  | { readonly kind: 'removePool'; readonly pool: number; readonly timeoutMs: number }
  | { readonly kind: 'choice'; readonly choice: ChoiceSettings }
  | { readonly kind: 'health'; readonly statuses: HealthStatuses }
  /** New certificate for the connections that begin after the message. */
  | { readonly kind: 'certificate'; readonly pair: KeyPair }
  /** Lets the shard compile its code while nothing comes. */
  | { readonly kind: 'rehearse'; readonly rehearsal: RehearsalPool }
  /** Asks whether the shard goes on; answered by `going`. */
  | { readonly kind: 'look' }
  | { readonly kind: 'drain'; readonly timeoutMs: number };

/** One pool of a shard → control thread. */
export type FromPool =
  | { readonly kind: 'applied'; readonly version: number }
  /** Blocks of a prompt that its endpoint did not hold yet; sent only where they are counted. */
  | {
      readonly kind: 'speculated';
      readonly slot: number;
      readonly generation: number;
      readonly hashes: BigUint64Array;
    }
  | { readonly kind: 'ejected'; readonly endpoint: string }
  /** A request to the endpoint got no answer of its own: the control thread looks whether it takes connections. */
  | { readonly kind: 'doubted'; readonly slot: number; readonly generation: number }
  /** Records of traced requests of a thread; answered by `tracesTaken`. */
  | { readonly kind: 'traces'; readonly thread: number; readonly batch: TraceBatch }
  /** The thread records; before the first frames. */
  | { readonly kind: 'records'; readonly recording: number }
  /** Frames of a recording; `counts` with the last ones. */
  | {
      readonly kind: 'recorded';
      readonly recording: number;
      readonly frames: Uint8Array<ArrayBuffer>;
      readonly counts: TapCounts | undefined;
    }
  /** What the tokeniser of a thread remembers; sent with `going`. */
  | { readonly kind: 'segments'; readonly thread: number; readonly state: SegmentsState }
  /** Token usage and end of dispatched requests. */
  | ({ readonly kind: 'usage' } & UsageReport);

/** Shard → control thread. */
export type FromShard =
  /** The task runs on this worker thread. */
  | { readonly kind: 'started'; readonly threadId: number }
  | { readonly kind: 'listening'; readonly port: number }
  /** Answers `look`. */
  | { readonly kind: 'going'; readonly use: ShardUse }
  | { readonly kind: 'pool'; readonly pool: number; readonly message: FromPool }
  /** The shard cannot serve a pool. */
  | { readonly kind: 'poolFailed'; readonly pool: number; readonly reason: string }
  /** The streams of a removed pool have ended, or its time has. */
  | { readonly kind: 'poolEnded'; readonly pool: number };
