import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import {
  indexerFields,
  preciseAdvice,
  preciseEventSettings,
  preciseFields,
  precisePrefixSettings,
} from './kv-event-parameters.js';

const parameters = () =>
  z.strictObject({
    ...preciseFields(),
    indexerConfig: z
      .strictObject(indexerFields())
      .optional()
      .describe('Where the index is kept, and what its tiers count.'),
  });

export const precisePrefixCacheProducer = definePlugin({
  type: 'precise-prefix-cache-producer',
  // llm-d-router lists it as an extractor of endpoint-notification-source; here it needs no such list.
  kinds: ['producer', 'extractor'],
  stability: 'Beta',
  doc:
    'Knows which endpoint holds which prompt blocks because the engines say so: follows their KV events over ' +
    'ZeroMQ and ' +
    ("finds the longest prefix of a prompt on each endpoint. Needs the engine's own tokens (token-producer with " +
      '`vllm`).'),
  parameters,
  produces: ['prefix-match'],
  consumes: () => [{ key: 'prompt-tokens' }],
  advise: preciseAdvice,
  prefixSettings: precisePrefixSettings,
  kvEventSettings: preciseEventSettings,
});
