import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const anthropicParser = definePlugin({
  type: 'anthropic-parser',
  kinds: ['parser'],
  stability: 'Beta',
  doc: 'Understands the Anthropic API: messages, and token counting without a look at its answer.',
  parameters: z.strictObject({}),
});
