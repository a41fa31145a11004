// Rules that every plugin has to keep, as checks for a test runner of the author's choice (`pointsman/plugin-testing`).
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import { definitionChecks, parsed } from './definition-checks.js';
import { deciderChecks, handlerChecks } from './handler-checks.js';
import { hookChecks } from './hook-checks.js';
import type { PluginCheck } from './plugin-check.js';
import { programChecks } from './program-checks.js';
import { fairnessChecks, orderingChecks, usageLimitChecks } from './queue-checks.js';

export { type PluginCheck, PluginFault } from './plugin-check.js';

export interface CheckOptions {
  /** Parameters of the plugin as in a configuration; absent = none. */
  readonly parameters?: unknown;
}

/**
 * The rules of a plugin: those of every definition, and those of each extension point that it fills. Rules that build
 * on a broken one are left out, so that the failing check names the fault.
 */
export function checksOf(definition: PluginDefinition, { parameters }: CheckOptions = {}): readonly PluginCheck[] {
  const always = definitionChecks(definition, parameters);
  if (!accepts(definition, parameters)) return always;
  const { kinds } = definition;
  return [
    ...always,
    ...programChecks(definition, parameters),
    ...hookChecks(definition, parameters),
    ...handlerChecks(definition, parameters),
    ...deciderChecks(definition, parameters),
    ...(kinds.includes('ordering-policy') ? orderingChecks(definition, parameters) : []),
    ...(kinds.includes('fairness-policy') ? fairnessChecks(definition, parameters) : []),
    ...(kinds.includes('usage-limit-policy') ? usageLimitChecks(definition, parameters) : []),
  ];
}

function accepts(definition: PluginDefinition, parameters: unknown): boolean {
  try {
    parsed(definition, parameters);
    return true;
  } catch {
    return false;
  }
}
