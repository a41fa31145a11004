import { CORE } from '../core/core-names.js';
import { type ReadName, readsOf } from '../core/operations.js';
import { CoreTables, ProgramTooLarge } from './core-tables.js';
import type { CompileContext, ConfiguredPlugin } from './plugin.js';
import { openingOperations, predictionOf } from './prediction-operations.js';
import { singleProfileHandler } from './profile-handlers/single-profile-handler.js';
import type {
  CompiledProfile,
  CompiledScheduling,
  EstimatedOutput,
  HandlerSettings,
  HookPluginSettings,
  PrefixSettings,
  ProfileFilter,
  ProgramOperation,
} from './program.js';

/**
 * Bound on the operations: an explained decision has a column for each, besides those of the terms of marginal cost and
 * the note of its pick.
 */
const OPERATIONS_MAX = CORE.EXPLAIN_COLUMNS - CORE.SHARE_TERMS - 1;

/** A plugin in a profile; `weight` counts for scorers. */
export interface ProfilePlugin extends ConfiguredPlugin {
  readonly weight: number;
}

export interface Profile {
  readonly name: string;
  readonly plugins: readonly ProfilePlugin[];
}

/**
 * Compiles profiles to programs. In a program the prediction and the admitters come first, then the filters, then the
 * scorers, each in the order of the profile, then the one picker at any position. `producers` are all producers of the
 * configuration and `plugins` all plugins; hook plugins are listed with the columns that they fill. `handler` chooses
 * among the profiles. Throws ProgramTooLarge when a table of the core would overflow.
 */
export function compileScheduling(
  profiles: readonly Profile[],
  producers: readonly ConfiguredPlugin[],
  plugins: readonly ConfiguredPlugin[] = [],
  handler: ConfiguredPlugin = onlyProfile,
): CompiledScheduling {
  if (profiles.length > CORE.PROFILES_MAX) {
    throw new ProgramTooLarge(`${profiles.length} profiles, but at most ${CORE.PROFILES_MAX} can be held: remove some`);
  }
  const shared = sharedPrefixSettings(producers);
  const prefix = shared?.settings;
  const producer = producers.find(({ name }) => name === shared?.from);
  const tables = new CoreTables(plugins);
  const prediction = predictionOf(producers);
  const admitters = plugins.filter(({ definition }) => definition.kinds.includes('admitter'));
  const opening = (profile: Profile) =>
    openingOperations(profile.plugins, admitters, prediction, ({ name }) =>
      compileContext(name, 'admitter', prefix, tables),
    );
  return {
    profiles: profiles.map((profile) => compileProfile(profile, opening(profile), prefix, tables)),
    masks: tables.masks.entries,
    labels: tables.labels.entries,
    requestKeys: tables.requestKeys.entries,
    attributes: tables.attributes.entries,
    baseModels: baseModels(profiles),
    prefix,
    prefixProducer: producer && { name: producer.name, type: producer.definition.type },
    kvEvents: firstOf(producers, ({ definition, parameters }) => definition.kvEventSettings?.(parameters)),
    tokens: firstOf(producers, ({ definition, parameters }) => definition.tokenSettings?.(parameters)),
    estimateOutput: outputEstimate(producers, plugins),
    reserves: plugins.some(({ definition }) => definition.reservesEndpoints),
    readsLoadedAdapters: plugins.some(({ definition }) => definition.readsLoadedAdapters),
    handler: handlerSettings(handler, plugins),
    prediction,
    host: hookPlugins(plugins, profiles, tables),
  };
}

const onlyProfile: ConfiguredPlugin = {
  name: singleProfileHandler.type,
  definition: singleProfileHandler,
  parameters: {},
};

function handlerSettings(
  { name, definition, parameters }: ConfiguredPlugin,
  plugins: readonly ConfiguredPlugin[],
): HandlerSettings {
  const deciders = plugins
    .filter((plugin) => plugin.definition.decider !== undefined)
    .map((plugin) => ({ name: plugin.name, type: plugin.definition.type, parameters: plugin.parameters }));
  return { name, type: definition.type, parameters, deciders };
}

/**
 * Settings of the prefix index, which all producers of prefix matches share. A producer that follows the engines'
 * events sets it up, because it has the best data; otherwise the one with the largest capacity (the first of equals).
 * Undefined without a producer.
 */
export function sharedPrefixSettings(
  producers: readonly ConfiguredPlugin[],
): { readonly settings: PrefixSettings; readonly from: string; readonly ignored: readonly string[] } | undefined {
  const asked = producers.flatMap(({ name, definition, parameters }) =>
    definition.prefixSettings === undefined ? [] : [{ name, settings: definition.prefixSettings(parameters) }],
  );
  if (asked.length === 0) return undefined;
  const largest = asked.reduce((best, next) =>
    next.settings.capacityBlocks > best.settings.capacityBlocks ? next : best,
  );
  const chosen = asked.find(({ settings }) => settings.knownBy?.startsWith('events')) ?? largest;
  const ignored = asked.filter((entry) => entry !== chosen).map((entry) => entry.name);
  return { settings: chosen.settings, from: chosen.name, ignored };
}

function outputEstimate(
  producers: readonly ConfiguredPlugin[],
  plugins: readonly ConfiguredPlugin[],
): EstimatedOutput | undefined {
  const classes = plugins.some(({ definition }) => definition.classifiesOutput);
  for (const { definition, parameters } of producers) {
    const estimate = definition.outputEstimate?.(parameters);
    if (estimate !== undefined) return { ...estimate, classes };
  }
  return undefined;
}

function firstOf<T>(
  producers: readonly ConfiguredPlugin[],
  read: (producer: ConfiguredPlugin) => T | undefined,
): T | undefined {
  for (const producer of producers) {
    const found = read(producer);
    if (found !== undefined) return found;
  }
  return undefined;
}

function hookPlugins(
  plugins: readonly ConfiguredPlugin[],
  profiles: readonly Profile[],
  { columns }: CoreTables,
): readonly HookPluginSettings[] {
  return plugins
    .filter(({ definition }) => definition.host !== undefined || definition.scheduler !== undefined)
    .map(({ name, definition, parameters }) => ({
      name,
      type: definition.type,
      parameters,
      filterColumn: columns.find('filter', name),
      scoreColumn: columns.find('scorer', name),
      matchColumns: columns.matchesOf(name),
      profiles: profiles
        .filter((profile) => profile.plugins.some((each) => each.name === name))
        .map((each) => each.name),
    }));
}

function baseModels(profiles: readonly Profile[]): readonly string[] {
  const named = profiles.flatMap(({ plugins }) =>
    plugins.flatMap(({ definition, parameters }) => definition.baseModels?.(parameters) ?? []),
  );
  return [...new Set(named)];
}

function compileProfile(
  profile: Profile,
  opening: readonly ProgramOperation[],
  prefix: PrefixSettings | undefined,
  tables: CoreTables,
): CompiledProfile {
  const members = (['filter', 'scorer', 'picker'] as const).flatMap((kind) =>
    profile.plugins
      .filter((plugin) => plugin.definition.kinds.includes(kind))
      .flatMap((plugin) => {
        const weight = kind === 'scorer' ? plugin.weight : 1;
        if (kind !== 'picker' && fillsColumn(plugin)) return [hookOperation(plugin, kind, weight, tables)];
        return compileOperation(plugin, kind, weight, prefix, tables);
      }),
  );
  const operations = [...opening, ...members];
  const filters = operations.filter(({ code }) => code.startsWith('OP_FILTER_')).map(profileFilter);
  if (operations.length > OPERATIONS_MAX) {
    throw new ProgramTooLarge(
      `profile "${profile.name}" has ${operations.length} plugins, but at most ${OPERATIONS_MAX} fit a program: ` +
        'remove some',
    );
  }
  return { name: profile.name, operations, filters };
}

/** Inputs that do not change with load. */
const STEADY: ReadonlySet<ReadName> = new Set<ReadName>([
  'mask',
  'hookColumn',
  'labels',
  'promptLength',
  'earlierPick',
]);

function profileFilter(operation: ProgramOperation): ProfileFilter {
  const judgesLoad = !readsOf(operation).every((read) => STEADY.has(read));
  const counted = COUNTED.get(operation.code);
  return { name: operation.name, judgesLoad, ...(counted === undefined ? {} : { counted }) };
}

/** Filters whose decisions are counted. */
const COUNTED: ReadonlyMap<string, NonNullable<ProfileFilter['counted']>> = new Map([
  ['OP_FILTER_PREFIX_AFFINITY', 'prefix-cache-affinity'],
  ['OP_FILTER_SERVED_MODEL', 'served-model'],
]);

/** Whether the program reads a column that a hook plugin fills. */
function fillsColumn({ definition }: ProfilePlugin): boolean {
  return definition.host !== undefined && definition.compile === undefined;
}

function hookOperation(
  { name, definition, parameters }: ProfilePlugin,
  kind: 'filter' | 'scorer',
  weight: number,
  { columns }: CoreTables,
): ProgramOperation {
  const column = columns.index(kind, name);
  if (kind === 'scorer') return { code: 'OP_SCORE_HOST', name, weight, parameters: [column] };
  const own = definition.hostedFilter?.(parameters, column);
  if (own !== undefined) return { ...own, name, weight };
  const keepsAll = definition.whenNoneLeft === 'keep-all';
  return { code: 'OP_FILTER_HOST', name, weight, parameters: [column, keepsAll ? 1 : 0] };
}

function compileOperation(
  plugin: ProfilePlugin,
  kind: CompileContext['kind'],
  weight: number,
  prefix: PrefixSettings | undefined,
  tables: CoreTables,
): readonly ProgramOperation[] {
  const context = compileContext(plugin.name, kind, prefix, tables);
  const operation = plugin.definition.compile?.(plugin.parameters, weight, context);
  return operation === undefined ? [] : [operation];
}

function compileContext(
  name: string,
  kind: CompileContext['kind'],
  prefix: PrefixSettings | undefined,
  { masks, labels, requestKeys, attributes, topologies, columns, matchProducers }: CoreTables,
): CompileContext {
  return {
    name,
    kind,
    prefix,
    mask: (key, accepts) => masks.index(key, { accepts }),
    label: (key, read) => labels.index(key, { key, read }),
    matchColumn: (producer, formula) => (matchProducers.has(producer) ? columns.match(producer, formula) : undefined),
    requestKey: (header) => requestKeys.index(header.toLowerCase(), header.toLowerCase()),
    topology: (extractor) => topologies.get(extractor),
    attribute: (name) => attributes.index(name, name),
  };
}
