import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const sglanghttpParser = definePlugin({
  type: 'sglanghttp-parser',
  kinds: ['parser'],
  stability: 'Beta',
  doc: 'Understands the native API of SGLang: /generate with token ids.',
  parameters: z.strictObject({}),
});
