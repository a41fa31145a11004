import { z } from 'zod';
import { definePlugin, type PluginDefinition, type PluginKind } from '../../scheduling/plugin.js';

/** A plugin type of llm-d-router that does nothing here, and why. */
export interface PluginWithoutEffect {
  readonly type: string;
  readonly kind: PluginKind;
  readonly stability: PluginDefinition['stability'];
  /** Effect in llm-d-router, as one sentence. */
  readonly does: string;
  /** What stands in for it here, as the end of a sentence. */
  readonly why: string;
}

/** A plugin that accepts any parameters, and reports at the start that it has no effect. */
export function withoutEffect({ type, kind, stability, does, why }: PluginWithoutEffect): PluginDefinition {
  return definePlugin({
    type,
    kinds: [kind],
    stability,
    doc: `${does} Kept for configurations of llm-d-router, without effect: ${why}.`,
    parameters: () => z.looseObject({}),
    advise: () => [`has no effect: ${why}`],
    ...(kind === 'filter' || kind === 'scorer' ? { operations: [], compile: () => undefined } : {}),
  });
}
