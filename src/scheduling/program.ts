import type { OperationName } from '../core/programs.js';
import type { KvEventSettings } from '../kvevents/settings.js';
import type { Endpoint } from '../pool/endpoint.js';
import type { PredictionSettings } from '../prediction/settings.js';
import type { TokenSettings } from '../request/tokens/settings.js';

/** One operation of a compiled profile. */
export interface ProgramOperation {
  readonly code: OperationName;
  /** Configured name of the plugin, for explanations. */
  readonly name: string;
  /** Weight of a scorer; 1 otherwise. */
  readonly weight: number;
  /** Numbers in the order that the operation documents (assembly/scheduling/program.ts). At most 8. */
  readonly parameters: readonly number[];
}

/** A set of endpoints that the control thread keeps as a mask: the parameter of OP_FILTER_MASK is its index. */
export interface MaskSpecification {
  readonly accepts: (labels: Readonly<Record<string, string>>) => boolean;
}

/** What one endpoint's labels or address say, as the core compares it. */
export type LabelValue =
  /** Compared by hash; undefined = the endpoint has none. */
  | { readonly kind: 'text'; readonly text: string | undefined }
  /** From `min` to `max`, both included; undefined = the endpoint has none, `bad` = its label is no range. */
  | { readonly kind: 'range'; readonly range: { readonly min: number; readonly max: number } | 'bad' | undefined };

/** A pair of columns that the control thread keeps: what an operation reads about every endpoint. */
export interface LabelSpecification {
  /** What it reads, in words; specifications with equal keys read the same. */
  readonly key: string;
  readonly read: (endpoint: Endpoint) => LabelValue;
}

/** A profile, compiled: plain data that the control thread writes into shared memory. */
export interface CompiledProfile {
  readonly name: string;
  readonly operations: readonly ProgramOperation[];
}

/** Settings of the approximate prefix cache that every decision uses. */
export interface PrefixSettings {
  readonly blockTokens: number;
  readonly maxBlocks: number;
  /** Blocks that one endpoint may hold in the index, when the engine does not say. */
  readonly capacityBlocks: number;
  readonly autoTune: boolean;
  /**
   * What tells who holds which blocks: what was sent there (the default), what the engines say, or what they say and,
   * for a while, what was sent there.
   */
  readonly knownBy?: 'decisions' | 'events' | 'events and decisions' | undefined;
}

/** How a match becomes a score, as prefix-cache-scorer does it: (1 - w) × share + w × min(1, tokens / scale)². */
export interface MatchFormula {
  readonly lengthWeight: number;
  readonly scaleTokens: number;
}

/** A plugin that runs on the shards: plain data, from which each shard makes its own instance. */
export interface HookPluginSettings {
  readonly name: string;
  readonly type: string;
  readonly parameters: unknown;
  /** Columns that its filter and its scorer fill; undefined = no profile uses them. */
  readonly filterColumn: number | undefined;
  readonly scoreColumn: number | undefined;
  /** Columns that its `match` fills, each by a formula of its own. */
  readonly matchColumns: readonly (MatchFormula & { readonly column: number })[];
  /** Names of the profiles that it stands in. */
  readonly profiles: readonly string[];
}

/** The profile handler and the deciders that it may ask: plain data, from which each shard makes its own. */
export interface HandlerSettings {
  readonly name: string;
  readonly type: string;
  readonly parameters: unknown;
  readonly deciders: readonly { readonly name: string; readonly type: string; readonly parameters: unknown }[];
}

/** What the configuration's scheduling part compiles to. */
export interface CompiledScheduling {
  readonly profiles: readonly CompiledProfile[];
  readonly masks: readonly MaskSpecification[];
  readonly labels: readonly LabelSpecification[];
  /** Request headers, in lower case, whose values the programs look at; a program names them by position. */
  readonly requestKeys: readonly string[];
  /** Named values that somebody has to write for every endpoint; a program names them by position. */
  readonly attributes: readonly string[];
  /** Model names that are no LoRA adapters. */
  readonly baseModels: readonly string[];
  /** Undefined when no plugin needs prefix matches. */
  readonly prefix: PrefixSettings | undefined;
  /** The plugin that set up the prefix index, as metrics name it. */
  readonly prefixProducer: { readonly name: string; readonly type: string } | undefined;
  /** Undefined = no events of engines are followed. */
  readonly kvEvents?: KvEventSettings | undefined;
  /** Undefined = tokens are estimated. */
  readonly tokens?: TokenSettings | undefined;
  /** Count output estimates as in-flight tokens (inflight-load-producer). */
  readonly estimateOutput: { readonly ratio: number; readonly maxTokens: number | undefined } | undefined;
  readonly handler: HandlerSettings;
  /** Undefined when nothing predicts latency. */
  readonly prediction: (PredictionSettings & { readonly name: string; readonly type: string }) | undefined;
  /** Plugins that run on the shards, in the order of the configuration. */
  readonly host: readonly HookPluginSettings[];
}
