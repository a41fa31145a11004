import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const vertexaiParser = definePlugin({
  type: 'vertexai-parser',
  kinds: ['parser'],
  stability: 'Beta',
  doc: 'Understands chat completions and raw predictions of Vertex AI over gRPC, compressed or not.',
  parameters: z.strictObject({}),
});
