// A shard as far as the core knows it: decides, grows and releases as fast as it can until it is told to stop or
// killed.
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
const core = attachCore(pool, thread);
const decider = new Decider(core, BigInt(thread));
const flags = new Int32Array(state);
const hashes = (core.call.hashesAddress() >>> 0) / 8;
const chain = new BigUint64Array(pool.memory.buffer);
const held: { ticket: number; generation: number }[] = [];

/** One of 32 conversations over 4 shared prefixes, cut at a varying length. */
function writeChain(round: number): number {
  const session = (round * 7 + thread) % 32;
  const blocks = 1 + (round % 90);
  for (let i = 0; i < blocks; i++) {
    const owner = i < 20 ? session % 4 : 100 + session;
    chain[hashes + i] = (BigInt(owner * 1000 + i + 1) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
  }
  return blocks;
}

parentPort!.postMessage('ready');
Atomics.wait(flags, 0, 0);
for (let round = 0; round < rounds && Atomics.load(flags, 1) === 0; round++) {
  const blocks = writeChain(round);
  const { ticket, ticketGeneration } = decider.decide({ ...request, blocks, promptTokens: blocks * 64 });
  held.push({ ticket, generation: ticketGeneration });
  if (round % 3 === 0) decider.grow(ticket, ticketGeneration, round % 7, (round % 7) * 64);
  if (round % 2 === 0) decider.prefillDone(ticket, ticketGeneration, 1);
  if (held.length > 20) {
    const done = held.splice((round * 13) % held.length, 1)[0]!;
    decider.release(done.ticket, done.generation);
  }
  Atomics.add(flags, 2, 1);
}
for (const { ticket, generation } of held) decider.release(ticket, generation);
parentPort!.postMessage('done');
