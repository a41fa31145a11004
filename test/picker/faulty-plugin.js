// A plugin that brings its shard down as a header of the request says; for tests of what the other shards do then.
import { definePlugin, z } from 'pointsman/plugin';

const FAULTS = {
  stall() {
    for (;;);
  },
  memory() {
    // Piece by piece: a large allocation that fails ends the whole process.
    let held;
    for (;;) held = { next: held, numbers: [1, 2, 3, 4] };
  },
};

const faultMaker = definePlugin({
  type: 'fault-maker',
  kinds: ['reporter'],
  stability: 'Stable',
  doc: 'Stalls the shard or fills its memory.',
  parameters: z.strictObject({}),
  host: () => ({
    requestHeaders: (request) => FAULTS[request.headers.get('x-fault')]?.(),
  }),
});

export const plugins = [faultMaker];
