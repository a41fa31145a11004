import { z } from 'zod';
import { definePlugin } from '../plugin.js';

export const reserveEndpoint = definePlugin({
  type: 'reserve-endpoint',
  kinds: ['header-processor'],
  stability: 'Alpha',
  reservesEndpoints: true,
  doc:
    'Answers a request with `Prefer: reserve-endpoint` with 204, its endpoint in x-llm-d-reserved-host-port, and ' +
    'the headers that it would have brought to the model server; nothing is sent there. Without the plugin the ' +
    'preference is ignored, and the request goes to its endpoint.',
  parameters: () => z.strictObject({}),
});
