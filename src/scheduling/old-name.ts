import type { PluginDefinition } from './plugin.js';

/** A plugin under a name that it had before. Its schema is made when it is read; nothing is added under an old name. */
export function underOldName(definition: PluginDefinition, type: string): PluginDefinition {
  const { defaultProducerOf: _, ...members } = Object.getOwnPropertyDescriptors(definition);
  const renamed = { type, deprecated: { replacement: definition.type }, doc: `Old name of ${definition.type}.` };
  const all = { ...members, ...Object.getOwnPropertyDescriptors(renamed) };
  return Object.defineProperties({}, all) as PluginDefinition;
}
