import { z } from 'zod';
import { CORE } from '../../core/core-names.js';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews } from '../hooks/hooks.js';
import { definePlugin } from '../plugin.js';

const parameters = () =>
  z.strictObject({
    onMissing: z
      .enum(['Pass', 'Fail'])
      .default('Pass')
      .describe(
        'Endpoints that have told no list yet: Pass = they stay, unless another endpoint lists the model as an ' +
          'adapter; Fail = they are dropped.',
      ),
    fallbackOnEmpty: z.boolean().default(false).describe('Keep all endpoints when none is left, in place of a 503.'),
  });

/** What the list of an endpoint says of a model (assembly/scheduling/filters.ts). */
export function servesModel(endpoints: EndpointViews, slot: number, model: string): number {
  const models = endpoints.modelsOf(slot);
  if (models === undefined) return CORE.SERVES_UNKNOWN;
  const listed = models.get(model);
  if (listed === undefined) return CORE.SERVES_OTHERS;
  return listed.parent === '' ? CORE.SERVES_MODEL : CORE.SERVES_ADAPTER;
}

export const servedModelFilter = definePlugin({
  type: 'served-model-filter',
  kinds: ['filter'],
  stability: 'Alpha',
  doc:
    'Keeps the endpoints whose list of models (models-data-source) has the model of the request. It belongs behind ' +
    'filters by role and before those by session or prefix, because it compares the endpoints that are left. ' +
    'Newer than llm-d-router of August 2026: its parameters may change.',
  parameters,
  consumes: () => [{ key: 'served-models' }],
  operations: ['OP_FILTER_SERVED_MODEL'],
  hostedFilter: ({ onMissing, fallbackOnEmpty }, column) => ({
    code: 'OP_FILTER_SERVED_MODEL',
    parameters: [column, onMissing === 'Pass' ? 1 : 0, fallbackOnEmpty ? 1 : 0],
  }),
  host: () => ({
    filter: ({ targetModel }: HookRequest, endpoints: EndpointViews, column: Float32Array) => {
      // The column holds SERVES_ANY everywhere, which a request without a model leaves.
      if (targetModel === '') return;
      for (const slot of endpoints.slots) column[slot] = servesModel(endpoints, slot, targetModel);
    },
  }),
});
