// Counts requests on one thread of the pool, then waits to be ended. With `first` every round makes a new series.
import { parentPort, workerData } from 'node:worker_threads';
import { attachCore } from '../../dist/src/core/memory.js';
import { ShardRecorder } from '../../dist/src/operations/telemetry/shard-recorder.js';

const { pool, thread, rounds, first } = workerData;
const recorder = new ShardRecorder(attachCore(pool, thread), { endpointOf: () => undefined });
for (let round = 0; round < rounds; round++) {
  const model = first === undefined ? `m${round % 7}` : `m${first}-${round}`;
  recorder.routed(recorder.series({ model, target: 't', fairness: 'f', priority: round % 3 }), round);
}
parentPort.postMessage(rounds);
setInterval(() => {}, 1000);
