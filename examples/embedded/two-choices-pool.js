// A picker with a scheduler of its own in one file: node examples/embedded/two-choices-pool.js --grpc-port=9002
// Two endpoints are drawn by lot and the less busy one serves (the power of two choices).
import { isMainThread } from 'node:worker_threads';
import { embedPicker } from 'pointsman/picker';
import { definePlugin, z } from 'pointsman/plugin';

const draw = (slots, random) => slots[Math.floor(random() * slots.length)];
const twoChoices = definePlugin({
  type: 'two-choices-scheduler',
  kinds: ['scheduler'],
  stability: 'Stable',
  doc: 'Draws two endpoints and takes the one with fewer requests in flight.',
  parameters: z.strictObject({}),
  scheduler: (_parameters, { endpoints, place, profiles, random }) => ({
    schedule(request) {
      const { slots, inflight } = endpoints(request);
      if (slots.length === 0) return profiles.schedule(request);
      const [a, b] = [draw(slots, random), draw(slots, random)];
      return place(request, [inflight[b] < inflight[a] ? b : a]);
    },
  }),
});
export const plugins = [twoChoices];

// The shards load this module too, each on its own thread. No top-level await: the picker itself waits for the module.
if (isMainThread && process.argv[1] === import.meta.filename) {
  embedPicker({
    configuration: {
      plugins: [
        { type: 'two-choices-scheduler' },
        { type: 'file-discovery', parameters: { path: 'examples/endpoints.yaml', watchFile: true } },
      ],
      dataLayer: { discovery: { pluginRef: 'file-discovery' } },
    },
    plugins: [import.meta.url],
    flags: ['--secure-serving=false', ...process.argv.slice(2)],
  }).then((picker) => {
    console.log(`serving on port ${picker.grpcPort}`);
    process.once('SIGTERM', () => picker.stop(30_000));
  });
}
