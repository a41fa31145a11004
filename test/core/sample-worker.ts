// A shard as far as the sample ring knows it: decides, notes samples with numbers that belong together, and releases.
import { parentPort, workerData } from 'node:worker_threads';
import { attachCore, Decider, type DecisionRequest, type PoolMemory } from '../../dist/src/core/index.js';

interface Start {
  readonly pool: PoolMemory;
  readonly thread: number;
  readonly request: DecisionRequest;
  readonly rounds: number;
  readonly state: SharedArrayBuffer;
}

const { pool, thread, request, rounds, state } = workerData as Start;
const decider = new Decider(attachCore(pool, thread), BigInt(thread));
parentPort!.postMessage('ready');
Atomics.wait(new Int32Array(state), 0, 0);
for (let round = 0; round < rounds; round++) {
  const { ticket, ticketGeneration } = decider.decide({
    ...request,
    promptTokens: round,
    nowMs: round,
    priority: thread,
  });
  decider.noteSample(ticket, ticketGeneration, {
    outcome: 'completed',
    firstOutputMs: round,
    perTokenMs: round,
    durationMs: round,
    outputTokens: round,
    promptTokens: round,
    cachedTokens: round,
  });
  decider.release(ticket, ticketGeneration);
}
