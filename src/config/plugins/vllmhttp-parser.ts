import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const vllmhttpParser = definePlugin({
  type: 'vllmhttp-parser',
  kinds: ['parser'],
  stability: 'Beta',
  doc: 'Understands the token-in, token-out API of vLLM over HTTP: inference/v1/generate.',
  parameters: z.strictObject({}),
});
