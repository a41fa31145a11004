import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

export const learnedLimitDetector = definePlugin({
  type: 'learned-limit-detector',
  kinds: ['saturation-detector'],
  stability: 'Beta',
  doc:
    'An endpoint takes a request while what it has not answered yet is less than one step of its engine can read, ' +
    'while it ' +
    ('runs fewer requests than were found to make it queue, and while its KV cache has room for the answers. All ' +
      'three are ') +
    'learned from the requests themselves; scraped metrics only correct them. The default while flow control is on.',
  parameters: () => z.strictObject({}),
});
