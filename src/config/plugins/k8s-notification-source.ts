import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const k8sNotificationSource = definePlugin({
  type: 'k8s-notification-source',
  kinds: ['data-source'],
  stability: 'Beta',
  doc:
    'Kept for configurations of llm-d-router, where it tells extractors about objects of the Kubernetes API. There ' +
    'is ' +
    'no extractor here that reads it.',
  parameters: () =>
    z.strictObject({
      group: z.string().default('').describe('API group of the objects; empty = the core group.'),
      version: z.string().min(1).describe('Version of the API group.'),
      kind: z.string().min(1).describe('Kind of the objects.'),
    }),
  advise: () => ['no extractor reads it: it has no effect'],
});
