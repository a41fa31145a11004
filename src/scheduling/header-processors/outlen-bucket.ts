import { z } from 'zod';
import { definePlugin } from '../plugin.js';

export const outlenBucket = definePlugin({
  type: 'outlen-bucket',
  kinds: ['header-processor'],
  stability: 'Beta',
  classifiesOutput: true,
  doc:
    'Tells requests apart by the expected length of their answers, for addEstimatedOutputTokens of ' +
    'inflight-load-producer. Long: `enable_thinking` in `chat_template_kwargs`, or a `thinking_budget` above 4000 ' +
    'where that is not set. Short: tools without thinking, or a bound of the client below 500 tokens. All others are ' +
    'of an unknown length.',
  parameters: () => z.strictObject({}),
});
