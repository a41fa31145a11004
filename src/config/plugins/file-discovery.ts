import { z } from 'zod';
import { once } from '../../runtime/once.js';
import { definePlugin } from '../../scheduling/plugin.js';

export const fileDiscoveryParameters = once(() =>
  z.strictObject({
    path: z.string().min(1).describe("YAML or JSON file with the endpoints, from the configuration's folder."),
    watchFile: z.boolean().default(false).describe('Load the file again when it changes.'),
  }),
);

export const fileDiscovery = definePlugin({
  type: 'file-discovery',
  kinds: ['discovery'],
  stability: 'Beta',
  doc: 'Takes the endpoints of the pool from a file.',
  parameters: fileDiscoveryParameters,
  files: [['path']],
});
