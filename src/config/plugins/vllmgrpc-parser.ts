import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const vllmgrpcParser = definePlugin({
  type: 'vllmgrpc-parser',
  kinds: ['parser'],
  stability: 'Beta',
  doc: 'Understands the gRPC API of vLLM: Generate and Embed of its engine service, compressed or not.',
  parameters: z.strictObject({}),
});
