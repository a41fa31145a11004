// The server of the wire benches, as a worker: a transport with streams whose decisions come from memory.

import { parentPort, workerData } from 'node:worker_threads';
import type { TransportName } from '../../dist/src/contract/listen-settings.js';
import { createTransport } from '../../dist/src/ingress/transports/create.js';
import { quietOpener } from '../stream.ts';

const transport = await createTransport(workerData as TransportName);
const open = quietOpener(() => performance.now());
const port = await transport.listen(
  {
    ...{ host: '127.0.0.1', port: 0, reusePort: false, maxReceiveBytes: 4_194_304, maxSendBytes: 4_194_304 },
    ...{ streamsMax: 10_000, stallMs: 60_000, budget: open.held },
  },
  open,
);
parentPort!.postMessage(port);
parentPort!.on('message', async () => {
  await transport.close();
  parentPort!.close();
});
