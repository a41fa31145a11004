import { z } from 'zod';
import type { Endpoint } from '../../contract/endpoint.js';
import type { CompileContext } from '../plugin.js';

/** Parameters of every picker. */
export const endpointCount = () =>
  z.strictObject({
    maxNumOfEndpoints: z
      .int()
      .default(1)
      .describe(
        'Endpoints to name, the best first; the others are fallbacks, on other hosts where there are any. ' +
          '0 or less means 1.',
      ),
  });

/** Number of endpoints to pick, at least 1. */
export function picks({ maxNumOfEndpoints }: z.output<ReturnType<typeof endpointCount>>): number {
  return Math.max(1, maxNumOfEndpoints);
}

/** Labels that name the node of an endpoint, the first one that is there counts. */
const HOST_LABELS = ['kubernetes.io/hostname', 'nodeAddress'];

/** Machine of an endpoint as far as it is known: its node, else its own address. */
export function hostOf({ labels, address }: Pick<Endpoint, 'labels' | 'address'>): string {
  const label = HOST_LABELS.find((key) => labels[key] !== undefined && labels[key] !== '');
  return label === undefined ? address : labels[label]!;
}

/** Parameters of a picker whose further picks are on other hosts than those before them. */
export function picksApart(
  parameters: z.output<ReturnType<typeof endpointCount>>,
  context: CompileContext,
): readonly number[] {
  const count = picks(parameters);
  if (count === 1) return [count];
  return [count, context.label('host', (endpoint) => ({ kind: 'text', text: hostOf(endpoint) })) + 1];
}
