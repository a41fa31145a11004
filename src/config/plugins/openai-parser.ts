import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const openaiParser = definePlugin({
  type: 'openai-parser',
  kinds: ['parser'],
  stability: 'Stable',
  doc: 'Understands the OpenAI API: chat completions, completions, embeddings, responses, conversations and image generation.',
  parameters: z.strictObject({}),
});
