import type { Endpoint } from '../contract/endpoint.js';
import type { KvEventSettings } from '../contract/kv-event-settings.js';
import type { PredictionSettings } from '../contract/prediction-settings.js';
import type { TokenSettings } from '../contract/token-settings.js';
import type { OperationName } from '../core/operations.js';

/** Counts estimated output as in-flight tokens, at most `maxTokens`. */
export interface EstimatedOutput {
  /** Output tokens for each prompt token; undefined = by the class of the output. */
  readonly ratio: number | undefined;
  readonly maxTokens: number | undefined;
  /** Whether requests are told apart by class; else all are of an unknown one. */
  readonly classes: boolean;
}

/** One operation of a compiled profile. */
export interface ProgramOperation {
  readonly code: OperationName;
  /** Configured name of the plugin, for explanations. */
  readonly name: string;
  /** Weight of a scorer; 1 otherwise. */
  readonly weight: number;
  /** Parameters in the order of the operation's documentation (assembly/scheduling/program.ts). At most 8. */
  readonly parameters: readonly number[];
}

/** A set of endpoints that the control thread writes as a mask: the parameter of OP_FILTER_MASK is its index. */
export interface MaskSpecification {
  readonly accepts: (labels: Readonly<Record<string, string>>) => boolean;
}

/** Value of one endpoint's labels or address in the form that the core compares. */
export type LabelValue =
  /** Compared by hash; undefined = absent. */
  | { readonly kind: 'text'; readonly text: string | undefined }
  /** From `min` to `max`, both included; undefined = absent, `bad` = its label is no range. */
  | { readonly kind: 'range'; readonly range: { readonly min: number; readonly max: number } | 'bad' | undefined };

/** A pair of columns that the control thread writes: the value that an operation reads of every endpoint. */
export interface LabelSpecification {
  /** Description of the value; specifications with equal keys read the same. */
  readonly key: string;
  readonly read: (endpoint: Endpoint) => LabelValue;
}

/** A filter of a profile. */
export interface ProfileFilter {
  readonly name: string;
  /**
   * Whether the filter keeps endpoints by figures that change by themselves, such as load, so that a later try may
   * succeed.
   */
  readonly judgesLoad: boolean;
  /** What its decisions are counted as; absent = they are not. */
  readonly counted?: 'prefix-cache-affinity' | 'served-model' | undefined;
}

/** A profile, compiled: plain data that the control thread writes into shared memory. */
export interface CompiledProfile {
  readonly name: string;
  readonly operations: readonly ProgramOperation[];
  /** In the order of their operations. */
  readonly filters: readonly ProfileFilter[];
}

/** Settings of the approximate prefix cache that every decision uses. */
export interface PrefixSettings {
  readonly blockTokens: number;
  readonly maxBlocks: number;
  /** Bound on the blocks of one endpoint in the index, when the engine does not report its own. */
  readonly capacityBlocks: number;
  readonly autoTune: boolean;
  /**
   * Source of the prefix index: placements (the default), the events of engines, or both, where placements expire after
   * a while.
   */
  readonly knownBy?: 'decisions' | 'events' | 'events and decisions' | undefined;
}

/** Formula from match to score, as in prefix-cache-scorer: (1 - w) × share + w × min(1, tokens / scale)². */
export interface MatchFormula {
  readonly lengthWeight: number;
  readonly scaleTokens: number;
}

/** A hook plugin as plain data, from which each shard makes its own instance. */
export interface HookPluginSettings {
  readonly name: string;
  readonly type: string;
  readonly parameters: unknown;
  /** Columns that its filter and its scorer fill; undefined = unused by the profiles. */
  readonly filterColumn: number | undefined;
  readonly scoreColumn: number | undefined;
  /** Columns that its `match` fills, each by its own formula. */
  readonly matchColumns: readonly (MatchFormula & { readonly column: number })[];
  /** Names of the profiles that contain it. */
  readonly profiles: readonly string[];
}

/** The profile handler and its deciders as plain data, from which each shard makes its own. */
export interface HandlerSettings {
  readonly name: string;
  readonly type: string;
  readonly parameters: unknown;
  readonly deciders: readonly { readonly name: string; readonly type: string; readonly parameters: unknown }[];
}

/** Result of compiling the scheduling part of a configuration. */
export interface CompiledScheduling {
  readonly profiles: readonly CompiledProfile[];
  readonly masks: readonly MaskSpecification[];
  readonly labels: readonly LabelSpecification[];
  /** Request headers, in lower case, whose values the programs read; a program names them by position. */
  readonly requestKeys: readonly string[];
  /** Named values to be written for every endpoint; a program names them by position. */
  readonly attributes: readonly string[];
  /** Model names that are no LoRA adapters. */
  readonly baseModels: readonly string[];
  /** Undefined when no plugin needs prefix matches. */
  readonly prefix: PrefixSettings | undefined;
  /** The plugin that set up the prefix index, as named in metrics. */
  readonly prefixProducer: { readonly name: string; readonly type: string } | undefined;
  /** Undefined = the events of engines are not followed. */
  readonly kvEvents?: KvEventSettings | undefined;
  /** Undefined = tokens are estimated. */
  readonly tokens?: TokenSettings | undefined;
  /** Estimates output for the in-flight tokens (inflight-load-producer). */
  readonly estimateOutput: EstimatedOutput | undefined;
  /** Whether requests may ask for their endpoint alone. */
  readonly reserves: boolean;
  /** A plugin reads which LoRA adapters are loaded. */
  readonly readsLoadedAdapters: boolean;
  readonly handler: HandlerSettings;
  /** Undefined when nothing predicts latency. */
  readonly prediction: (PredictionSettings & { readonly name: string; readonly type: string }) | undefined;
  /** Hook plugins, in the order of the configuration. */
  readonly host: readonly HookPluginSettings[];
}
