import type { z } from 'zod';
import type { KvEventSettings } from '../contract/kv-event-settings.js';
import type { PredictionSettings } from '../contract/prediction-settings.js';
import type {
  FairnessSettings,
  OrderingSettings,
  SessionSettings,
  UsageLimitSettings,
} from '../contract/queue-settings.js';
import type { SaturationSettings } from '../contract/saturation-settings.js';
import type { TokenSettings } from '../contract/token-settings.js';
import type { OperationName } from '../core/operations.js';
import type { Scheduler } from './decision.js';
import type { HookContext, HookPlugin, SchedulerContext } from './hooks/hooks.js';
import type { HandlerContext, ProfileHandler, StageDecider } from './profile-handler.js';
import type {
  EstimatedOutput,
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

/** Kinds of plugins. A reference in the configuration requires one of these. */
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
  | 'peer-discovery'
  | 'replica-syncer'
  | 'eviction-policy'
  | 'responder'
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
  | 'encoder-match'
  | 'agent-identity'
  | 'served-models';

/** Signals in the metrics of an endpoint. */
export type EndpointSignal = 'waiting requests' | 'running requests' | 'KV usage' | 'LoRA adapters';

/** A fact that a plugin requires. */
export interface DataNeed {
  readonly key: DataKey;
  /** Configured name of its producer; undefined or empty = any producer of the fact. */
  readonly producer?: string | undefined;
}

/** Another plugin that the parameters name. */
export interface PluginReference {
  /** Configured name. */
  readonly name: string;
  /** Path of the name in the parameters, also when it is a default. */
  readonly path: readonly string[];
  readonly kinds: readonly PluginKind[];
}

/** Output that a producer of in-flight load counts, by its parameters. */
export type OutputEstimate = Omit<EstimatedOutput, 'classes'>;

/** Settings of sessions, as `flowControl.sessions` has them; the others have their defaults. */
export interface SessionRequest {
  readonly mode: SessionSettings['mode'];
  /** Duration; 0s = no bound. */
  readonly maxWait?: string;
  /** Durations. */
  readonly idleLease?: string;
  readonly forgetAfter?: string;
  readonly capacityTokens?: number;
  readonly usableCache?: number;
}

/** Findings about the files that parameters name. */
export interface FileFindings {
  /** Ends the start; one line. */
  readonly fault?: string | undefined;
  readonly advice: readonly string[];
}

/** Endpoint labels by their meaning. */
export interface TopologyLabels {
  readonly hostname: string;
  readonly rack: string;
  readonly zone: string;
  readonly region: string;
}

/** Services for a plugin while its profile is compiled. */
export interface CompileContext {
  /** Configured name of the plugin. */
  readonly name: string;
  /** Kind as which the plugin is compiled. */
  readonly kind: 'filter' | 'scorer' | 'picker' | 'admitter';
  /** Settings of the prefix index; undefined when nothing produces prefix matches. */
  readonly prefix: PrefixSettings | undefined;
  /** Index of the endpoint mask for a label rule. Rules with equal `key` share one mask. */
  mask(key: string, accepts: MaskSpecification['accepts']): number;
  /** Index of a pair of label columns. Specifications with equal `key` share one. */
  label(key: string, read: LabelSpecification['read']): number;
  /**
   * Index of a hook column that a producer of prefix matches fills with scores, computed from its share of the prompt
   * per endpoint. Undefined when the matches of the named producer come from the prefix index.
   */
  matchColumn(producer: string, formula: MatchFormula): number | undefined;
  /** Index of a request header whose value a program reads. */
  requestKey(header: string): number;
  /** Labels of an endpoint's location by the topology-extractor of that name; undefined without it. */
  topology(extractor: string): TopologyLabels | undefined;
  /** Index of a named endpoint value that is no signal of the core. */
  attribute(name: string): number;
}

/**
 * One plugin type for the loader, the compiler and the documentation. Each definition is one file, and becomes usable
 * by one line in the registry.
 */
export interface PluginDefinition<Parameters = unknown> {
  readonly type: string;
  readonly kinds: readonly PluginKind[];
  readonly stability: Stability;
  /** Set when the type is kept only for old configurations; loading it warns. */
  readonly deprecated?: { readonly replacement: string };
  /** One paragraph for users. */
  readonly doc: string;
  /** Source of the idea and the formula: project and place. Absent = llm-d-router's plugin of the same name. */
  readonly source?: string;
  /** Endpoint signals that the plugin reads. When they are all unknown, it treats all endpoints alike. */
  readonly signals?: readonly EndpointSignal[];
  /**
   * Strict object schema with a default and a description for every field; no transforms, so that output is valid
   * input.
   */
  readonly parameters: z.ZodType<Parameters>;
  /** Parameters that name a file or folder to read. Relative ones are resolved from the configuration's folder. */
  readonly files?: readonly (readonly string[])[];
  /** Looks at the files that the parameters name, once their paths are absolute. */
  examine?(parameters: Parameters): FileFindings;
  /** Whether a data source may list this producer as an extractor, as llm-d-router wants it; here nothing follows. */
  readonly listedAsExtractor?: boolean;
  /** Facts that this plugin produces. */
  readonly produces?: readonly DataKey[];
  /** Facts for which this type is added, without parameters, when nothing else in the configuration produces them. */
  readonly defaultProducerOf?: readonly DataKey[];
  consumes?(parameters: Parameters): readonly DataNeed[];
  /** Advice for settings that load: one line for each deprecated field or odd value. */
  advise?(parameters: Parameters): readonly string[];
  /**
   * Operations of the core that `compile` chooses from. Their inputs are the plugin's: they say what it needs of the
   * proxy, and whether learned costs replace it (core/operations.ts).
   */
  readonly operations?: readonly OperationName[];
  /**
   * Operation of the program: filters, scorers, pickers, and admitters, which come first in every profile. `weight` is
   * 1 for all but scorers. Undefined = no effect with these parameters.
   */
  compile?(parameters: Parameters, weight: number, context: CompileContext): ProgramOperation | undefined;
  /** Names of models that are no LoRA adapters, by the parameters. */
  baseModels?(parameters: Parameters): readonly string[];
  /**
   * Makes the hook plugin that runs on the shards. Called on each shard with parameters that were sent as plain data. A
   * filter or scorer with this method needs no `compile`.
   * @throws with one line for the user; the picker does not start then.
   */
  host?(parameters: Parameters, context: HookContext): HookPlugin;
  /** Whether the hook plugin of a producer of prefix matches computes them (`match`) in place of the prefix index. */
  readonly hostsMatches?: boolean;
  /** Bound on the time of one hook in milliseconds (default 20). A slower call counts as failed. */
  readonly budgetMs?: number;
  /**
   * Behaviour when the column of a hook filter leaves no endpoint: reject the request (the default), or keep the
   * candidates.
   */
  readonly whenNoneLeft?: 'reject' | 'keep-all';
  /** Operation by which a hook filter reads its column; absent = 0 drops an endpoint, any other value keeps it. */
  hostedFilter?(parameters: Parameters, column: number): Pick<ProgramOperation, 'code' | 'parameters'>;
  /** Makes the scheduler that replaces the profiles; kind `scheduler`. Called as `host`. */
  scheduler?(parameters: Parameters, context: SchedulerContext): Scheduler;
  /** Plugins that the parameters name; each must be configured and be of one of the given kinds. */
  references?(parameters: Parameters): readonly PluginReference[];
  /** Makes the part of a profile handler that runs on the shards; kind `profile-handler`. */
  profileHandler?(parameters: Parameters, context: HandlerContext): ProfileHandler;
  /** Advice on a profile handler with profiles of these names, one line each. Faults come first. */
  handlerAdvice?(parameters: Parameters, profiles: readonly string[]): readonly string[];
  /** Makes a decider; kind `decider`. */
  decider?(parameters: Parameters): StageDecider;
  /** Labels that a topology extractor reads. */
  topologyLabels?(parameters: Parameters): TopologyLabels;
  /** Settings that a producer of prefix matches requires of the prefix index. */
  prefixSettings?(parameters: Parameters): PrefixSettings;
  /** Settings by which a producer of prefix matches follows the events of engines. */
  kvEventSettings?(parameters: Parameters): KvEventSettings;
  /** Settings of a latency predictor. @throws with one line for the user */
  predictionSettings?(parameters: Parameters): PredictionSettings;
  /** Token source of a producer of prompt tokens; undefined = it estimates. */
  tokenSettings?(parameters: Parameters): TokenSettings | undefined;
  /** Whether requests are told apart by the expected length of their answers where the plugin is configured. */
  readonly classifiesOutput?: true;
  /** Whether requests may ask for their endpoint alone where the plugin is configured. */
  readonly reservesEndpoints?: true;
  /** Whether the endpoints' lists of models are fetched where the plugin is configured. */
  readonly fetchesModels?: true;
  /** Whether the plugin reads which adapters the endpoints have loaded. */
  readonly readsLoadedAdapters?: true;
  /** Output that a producer of in-flight load counts. */
  outputEstimate?(parameters: Parameters): OutputEstimate | undefined;
  /** Settings of a saturation detector for admission and the capacity gate; absent = room is learned. */
  saturationSettings?(parameters: Parameters): SaturationSettings;
  /** Settings of an ordering policy for the queues. */
  orderingSettings?(parameters: Parameters): OrderingSettings;
  /** Settings of a fairness policy for the queues. */
  fairnessSettings?(parameters: Parameters): FairnessSettings;
  /** Attribute that the plugin of that name sets to the name of a request's session. */
  sessionAttribute?(parameters: Parameters, name: string): string;
  /** Settings of sessions for which a plugin stands by being named, where `flowControl.sessions` is absent. */
  sessionSettings?(parameters: Parameters): SessionRequest;
  /** Settings of a usage limit policy for the capacity gate. */
  usageLimitSettings?(parameters: Parameters): UsageLimitSettings;
}

/** A definition as its author writes it. */
export type PluginSource<Schema extends z.ZodType> = Omit<PluginDefinition<z.output<Schema>>, 'parameters'> & {
  /** A function makes the schema when it is first read: a start makes those of the configured plugins alone. */
  readonly parameters: Schema | (() => Schema);
};

/** Checks a definition's functions against its parameter schema and drops the parameter type. */
export function definePlugin<Schema extends z.ZodType>({
  parameters,
  ...definition
}: PluginSource<Schema>): PluginDefinition {
  let schema = typeof parameters === 'function' ? undefined : parameters;
  const get = () => {
    schema ??= (parameters as () => Schema)();
    return schema;
  };
  return Object.defineProperty(definition, 'parameters', { get, enumerable: true }) as PluginDefinition;
}

/** A plugin of one configuration: a definition with a name and checked parameters. */
export interface ConfiguredPlugin {
  readonly name: string;
  readonly definition: PluginDefinition;
  readonly parameters: unknown;
}
