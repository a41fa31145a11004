import { z } from 'zod';
import type { CompileContext } from '../plugin.js';

export const topologyProducerName = z
  .string()
  .default('topology-extractor')
  .describe('Name of the topology-extractor whose labels count; empty means the default.');

/** Label columns of host, rack, zone and region; undefined without such an extractor. */
export function topologyColumns(extractor: string, context: CompileContext): readonly number[] | undefined {
  const labels = context.topology(extractor || 'topology-extractor');
  if (labels === undefined) return undefined;
  return [labels.hostname, labels.rack, labels.zone, labels.region].map((key) =>
    context.label(`text ${key}`, (endpoint) => ({ kind: 'text', text: endpoint.labels[key] })),
  );
}
