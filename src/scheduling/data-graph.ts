import type { ConfiguredPlugin, DataKey, DataNeed, PluginDefinition } from './plugin.js';

/** Thrown when no plugin of the configuration can meet a plugin's need. */
export class MissingProducer extends Error {
  readonly plugin: string;

  constructor(plugin: string, message: string) {
    super(message);
    this.plugin = plugin;
  }
}

/**
 * The producers that a set of plugins lacks, in the order of their discovery, the needs of the added ones included.
 * Throws MissingProducer when a need names a plugin that does not exist or does not produce the fact.
 */
export function missingProducers(
  plugins: readonly ConfiguredPlugin[],
  registry: readonly PluginDefinition[],
): readonly PluginDefinition[] {
  const present = new Map(plugins.map((plugin) => [plugin.name, plugin.definition]));
  const added: PluginDefinition[] = [];
  const pending: { name: string; needs: readonly DataNeed[] }[] = plugins.map((plugin) => ({
    name: plugin.name,
    needs: plugin.definition.consumes?.(plugin.parameters) ?? [],
  }));
  for (const { name, needs } of pending) {
    for (const need of needs) {
      if (isMet(name, need, present)) continue;
      const producer = defaultProducer(name, need, registry);
      present.set(producer.type, producer);
      added.push(producer);
      pending.push({ name: producer.type, needs: producer.consumes?.(producer.parameters.parse({})) ?? [] });
    }
  }
  return added;
}

function isMet(consumer: string, need: DataNeed, present: ReadonlyMap<string, PluginDefinition>): boolean {
  if (!need.producer) {
    return [...present.values()].some((definition) => produces(definition, need.key));
  }
  const named = present.get(need.producer);
  if (named === undefined) return false;
  if (produces(named, need.key)) return true;
  throw new MissingProducer(
    consumer,
    `plugin "${consumer}" takes ${need.key} from "${need.producer}", but a ${named.type} does not produce it`,
  );
}

function produces(definition: PluginDefinition, key: DataKey): boolean {
  return definition.produces?.includes(key) ?? false;
}

function defaultProducer(consumer: string, need: DataNeed, registry: readonly PluginDefinition[]): PluginDefinition {
  const definition = registry.find(
    ({ type, defaultProducerOf }) =>
      defaultProducerOf?.includes(need.key) && (!need.producer || need.producer === type),
  );
  if (definition !== undefined) return definition;
  throw new MissingProducer(
    consumer,
    !need.producer
      ? `plugin "${consumer}" needs ${need.key}, which no plugin produces`
      : `plugin "${consumer}" takes ${need.key} from "${need.producer}", which is not defined in plugins`,
  );
}
