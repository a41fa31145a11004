// A whole scheduler in the place of the profiles: the endpoint with the fewest requests, the second one as fallback.
import { definePlugin, z } from 'pointsman/plugin';

const leastBusyScheduler = definePlugin({
  type: 'least-busy-scheduler',
  kinds: ['scheduler'],
  stability: 'Stable',
  doc: 'Sends every request to the endpoint that has the fewest requests in flight from here.',
  parameters: z.strictObject({}),
  scheduler: (_parameters, context) => ({
    schedule(request) {
      const { slots, inflight } = context.endpoints(request);
      // Nobody to choose from: the profiles know what to answer.
      if (slots.length === 0) return context.profiles.schedule(request);
      const inOrder = [...slots].sort((a, b) => inflight[a] - inflight[b] || a - b);
      return context.place(request, inOrder.slice(0, 2));
    },
  }),
});

export const plugins = [leastBusyScheduler];
