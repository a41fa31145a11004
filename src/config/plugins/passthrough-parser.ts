import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const passthroughParser = definePlugin({
  type: 'passthrough-parser',
  kinds: ['parser'],
  stability: 'Beta',
  doc: 'Takes every request and looks at nothing in it: such requests are routed without model, prompt or tokens.',
  parameters: z.strictObject({}),
});
