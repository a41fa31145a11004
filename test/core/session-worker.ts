// A shard whose sessions take turns through the gate, until it is told to stop or killed: it asks, waits, takes
// dispatches, gives up and releases.
import { parentPort, workerData } from 'node:worker_threads';
import { attachCore, Decider, type DecisionRequest, type PoolMemory } from '../../dist/src/core/index.js';
import { WaitSlots } from '../../dist/src/core/wait-slots.js';
import { describedRequest } from './gate-pool.ts';

interface Start {
  readonly pool: PoolMemory;
  readonly thread: number;
  readonly request: DecisionRequest;
  /** [0] go, [1] stop, [2] rounds, [3] turns that waited and went on, [4] dispatches that were not used. */
  readonly state: SharedArrayBuffer;
}

const { pool, thread, request, state } = workerData as Start;
const core = attachCore(pool, thread);
const decider = new Decider(core, BigInt(thread));
const waitSlots = new WaitSlots(core);
const flags = new Int32Array(state);
const hashes = (core.call.hashesAddress() >>> 0) / 8;
const chain = new BigUint64Array(pool.memory.buffer);
const running: { ticket: number; ticketGeneration: number }[] = [];
/** Round of the turn in each wait slot. */
const waiting = new Map<number, number>();

/** The turn of a round: one of 16 sessions of each thread over 2 shared prefixes, cut at a varying length. */
function promptOf(round: number) {
  const session = thread * 100 + (round % 16);
  const blocks = 5 + (round % 60);
  for (let i = 0; i < blocks; i++) {
    const owner = i < 10 ? session % 2 : session;
    chain[hashes + i] = (BigInt(owner * 1000 + i + 1) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
  }
  return { blocks, promptTokens: blocks * 64 };
}

function decide(round: number, held?: { ticket: number; ticketGeneration: number }): void {
  const gate = { waitSlots: waitSlots.next, held, blind: false };
  const decision = decider.decide({ ...request, ...promptOf(round), gate, nowMs: 1_000 + Atomics.load(flags, 2) });
  const { status, ticket, ticketGeneration } = decision;
  if (status === 'decided') running.push({ ticket, ticketGeneration });
  else if (status === 'waiting') {
    if (held !== undefined) Atomics.add(flags, 4, 1);
    waiting.set(waitSlots.enqueue({ ...describedRequest, sinceMs: 1_000 + Atomics.load(flags, 2) }), round);
  }
}

parentPort!.postMessage('ready');
Atomics.wait(flags, 0, 0);
for (let round = thread * 7; Atomics.load(flags, 1) === 0; round++) {
  decide(round);
  waitSlots.takeReturns((slot, result) => {
    const turn = waiting.get(slot)!;
    waiting.delete(slot);
    if (result.kind !== 'dispatched') return;
    Atomics.add(flags, 3, 1);
    decide(turn, result);
  });
  const [oldest] = waiting.keys();
  if (round % 11 === 0 && oldest !== undefined) waitSlots.cancel(oldest);
  if (running.length > 4) {
    const { ticket, ticketGeneration } = running.splice((round * 13) % running.length, 1)[0]!;
    decider.complete(ticket, ticketGeneration, round % 300, 1_000 + Atomics.load(flags, 2));
    decider.release(ticket, ticketGeneration);
  }
  Atomics.add(flags, 2, 1);
}
for (const { ticket, ticketGeneration } of running) decider.release(ticket, ticketGeneration);
for (const slot of waiting.keys()) waitSlots.cancel(slot);
parentPort!.postMessage('done');
