import type { z } from 'zod';
import type { SaturationSettings } from '../admission/settings.js';
import type { FairnessSettings, OrderingSettings, UsageLimitSettings } from '../flow-control/settings.js';
import type { KvEventSettings } from '../kvevents/settings.js';
import type { PredictionSettings } from '../prediction/settings.js';
import type { TokenSettings } from '../request/tokens/settings.js';
import type { Scheduler } from './decision.js';
import type { HookContext, HookPlugin, SchedulerContext } from './hooks/hooks.js';
import type { HandlerContext, ProfileHandler, StageDecider } from './profile-handler.js';
import type {
  LabelSpecification,
  MaskSpecification,
  MatchFormula,
  PrefixSettings,
  ProgramOperation,
} from './program.js';

export { z } from 'zod';
export type { PickedEndpoint, Placement, Rejection, RejectionCode, ScheduleInput, Scheduler } from './decision.js';
export type { HookRequest } from './hooks/hook-request.js';
export type * from './hooks/hooks.js';
export type { RequestHeaders } from './request-headers.js';

/** What a plugin can be used as. A reference in the configuration asks for one of these. */
export type PluginKind =
  | 'filter'
  | 'scorer'
  | 'picker'
  | 'producer'
  | 'profile-handler'
  | 'decider'
  | 'header-processor'
  | 'screener'
  | 'admitter'
  | 'reporter'
  | 'scheduler'
  | 'parser'
  | 'discovery'
  | 'data-source'
  | 'extractor'
  | 'saturation-detector'
  | 'ordering-policy'
  | 'fairness-policy'
  | 'usage-limit-policy';

/** Alpha plugins load only with `--allow-experimental-plugins`. */
export type Stability = 'Stable' | 'Beta' | 'Alpha';

/** Facts about a request or its load that one plugin produces and others consume. */
export type DataKey =
  | 'prompt-tokens'
  | 'prefix-match'
  | 'in-flight-load'
  | 'session-id'
  | 'latency-prediction'
  | 'multicluster-load'
  | 'encoder-match';

/** What the metrics of an endpoint tell about it. */
export type EndpointSignal = 'waiting requests' | 'running requests' | 'KV usage' | 'LoRA adapters';

/** A fact that a plugin cannot work without. */
export interface DataNeed {
  readonly key: DataKey;
  /** Configured name of the producer to take it from; undefined = whichever plugin produces it. */
  readonly producer?: string | undefined;
}

/** Another plugin that the parameters name. */
export interface PluginReference {
  /** Configured name. */
  readonly name: string;
  /** Where the name stands in the parameters; for a default, where it would stand. */
  readonly path: readonly string[];
  readonly kinds: readonly PluginKind[];
}

/** Count estimated output as in-flight tokens: `ratio` × prompt tokens, at most `maxTokens`. */
export interface OutputEstimate {
  readonly ratio: number;
  readonly maxTokens: number | undefined;
}

/** Endpoint labels by what they name. */
export interface TopologyLabels {
  readonly hostname: string;
  readonly rack: string;
  readonly zone: string;
  readonly region: string;
}

/** What a plugin may ask for while its profile is compiled. */
export interface CompileContext {
  /** Configured name of the plugin. */
  readonly name: string;
  /** What the plugin is compiled as. */
  readonly kind: 'filter' | 'scorer' | 'picker' | 'admitter';
  /** Settings of the prefix index; undefined when nothing produces prefix matches. */
  readonly prefix: PrefixSettings | undefined;
  /** Index of the endpoint mask for a label rule. Rules with equal `key` share one mask. */
  mask(key: string, accepts: MaskSpecification['accepts']): number;
  /** Index of a pair of label columns. Specifications with equal `key` share one. */
  label(key: string, read: LabelSpecification['read']): number;
  /**
   * Index of a host column that a producer of prefix matches fills with scores, from the share of the prompt that it says
   * each endpoint holds; undefined when the matches of the named producer come from the prefix index.
   */
  matchColumn(producer: string, formula: MatchFormula): number | undefined;
  /** Index of a request header whose value a program looks at. */
  requestKey(header: string): number;
  /** Labels that say where an endpoint is, as the topology-extractor of that name has them; undefined = there is none. */
  topology(extractor: string): TopologyLabels | undefined;
  /** Index of a named value of the endpoints that is no signal of the core. */
  attribute(name: string): number;
}

/**
 * One plugin type: all that the loader, the compiler and the documentation know about it. Each definition is one file,
 * and becomes usable by one line in the registry.
 */
export interface PluginDefinition<Parameters = unknown> {
  readonly type: string;
  readonly kinds: readonly PluginKind[];
  readonly stability: Stability;
  /** Set when the type is kept only for old configurations; loading it warns. */
  readonly deprecated?: { readonly replacement: string };
  /** One paragraph for users. */
  readonly doc: string;
  /** Where the idea and the formula come from: project and place. Absent = llm-d-router's plugin of the same name. */
  readonly source?: string;
  /** Signals of endpoints that it reads; without any of them it treats all endpoints alike. */
  readonly signals?: readonly EndpointSignal[];
  /** Strict object schema with a default and a description for every field; no transforms, so that output is valid input. */
  readonly parameters: z.ZodType<Parameters>;
  /** Facts that this plugin produces. */
  readonly produces?: readonly DataKey[];
  /** Facts for which this type is added, without parameters, when nothing else in the configuration produces them. */
  readonly defaultProducerOf?: readonly DataKey[];
  consumes?(parameters: Parameters): readonly DataNeed[];
  /** One line for each setting that loads but deserves a word: deprecated fields, odd values. */
  advise?(parameters: Parameters): readonly string[];
  /**
   * Operation of the program: filters, scorers, pickers, and admitters, which come first in every profile. `weight` is 1
   * for all but scorers. Undefined = nothing to do with these parameters.
   */
  compile?(parameters: Parameters, weight: number, context: CompileContext): ProgramOperation | undefined;
  /** Model names that the parameters say are no LoRA adapters. */
  baseModels?(parameters: Parameters): readonly string[];
  /**
   * Makes the part of the plugin that runs on the shards: a hook plugin. Called on each shard with parameters that have
   * travelled there as plain data. A filter or scorer that has this needs no `compile`.
   * @throws with one line for the user; the picker does not start then.
   */
  host?(parameters: Parameters, context: HookContext): HookPlugin;
  /** Set for producers of prefix matches whose hook plugin tells them (`match`), rather than the prefix index. */
  readonly hostsMatches?: boolean;
  /** Longest time in milliseconds that one hook of the hook plugin may take (20). Slower counts as failed. */
  readonly budgetMs?: number;
  /** When the column of a host filter leaves no endpoint: reject the request (the default), or keep what was there. */
  readonly whenNoneLeft?: 'reject' | 'keep-all';
  /** Makes the scheduler that takes the place of the profiles; kind `scheduler`. Called as `host`. */
  scheduler?(parameters: Parameters, context: SchedulerContext): Scheduler;
  /** Plugins that the parameters name; each must be configured and be of one of its kinds. */
  references?(parameters: Parameters): readonly PluginReference[];
  /** Makes the part of a profile handler that runs on the shards; kind `profile-handler`. */
  profileHandler?(parameters: Parameters, context: HandlerContext): ProfileHandler;
  /** What a profile handler does with the profiles of these names, one line each: what will not work, first of all. */
  handlerAdvice?(parameters: Parameters, profiles: readonly string[]): readonly string[];
  /** Makes a decider; kind `decider`. */
  decider?(parameters: Parameters): StageDecider;
  /** Labels that a topology extractor reads. */
  topologyLabels?(parameters: Parameters): TopologyLabels;
  /** What a producer of prefix matches asks of the prefix index. */
  prefixSettings?(parameters: Parameters): PrefixSettings;
  /** How a producer of prefix matches follows the events of engines. */
  kvEventSettings?(parameters: Parameters): KvEventSettings;
  /** How a producer of latency predictions comes to them. @throws with one line for the user */
  predictionSettings?(parameters: Parameters): PredictionSettings;
  /** Where a producer of prompt tokens gets them from; undefined = it estimates. */
  tokenSettings?(parameters: Parameters): TokenSettings | undefined;
  /** What a producer of in-flight load counts for output. */
  outputEstimate?(parameters: Parameters): OutputEstimate | undefined;
  /** What a saturation detector tells admission and the gate; absent = room is learned. */
  saturationSettings?(parameters: Parameters): SaturationSettings;
  /** What an ordering policy tells the queues. */
  orderingSettings?(parameters: Parameters): OrderingSettings;
  /** What a fairness policy tells the queues. */
  fairnessSettings?(parameters: Parameters): FairnessSettings;
  /** What a usage limit policy tells the gate. */
  usageLimitSettings?(parameters: Parameters): UsageLimitSettings;
}

/** Checks a definition's functions against its parameter schema and forgets the parameter type. */
export function definePlugin<Schema extends z.ZodType>(
  definition: Omit<PluginDefinition<z.output<Schema>>, 'parameters'> & { readonly parameters: Schema },
): PluginDefinition {
  return definition;
}

/** A plugin of one configuration: a definition with a name and checked parameters. */
export interface ConfiguredPlugin {
  readonly name: string;
  readonly definition: PluginDefinition;
  readonly parameters: unknown;
}
