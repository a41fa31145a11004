// A shard of the gate's stress test: asks, waits, gives up, releases, as often as it is told, from the event loop as a
// real one.
import { parentPort, workerData } from 'node:worker_threads';
import { Bell } from '../../dist/src/core/bell.js';
import { attachCore, Decider, type PoolMemory } from '../../dist/src/core/index.js';
import { WaitSlots } from '../../dist/src/core/wait-slots.js';
import { describedRequest } from './gate-pool.ts';
import { plainRequest } from './pool.ts';

const { pool, thread, rounds, state } = workerData as {
  pool: PoolMemory;
  thread: number;
  rounds: number;
  /** [0] go, [1] asked, [2] dispatched at once, [3] dispatched later, [4] rejected, [5] cancelled. */
  state: SharedArrayBuffer;
};

const counts = new Int32Array(state);
const core = attachCore(pool, thread);
const decider = new Decider(core, BigInt(thread));
const waitSlots = new WaitSlots(core);
const held: { ticket: number; ticketGeneration: number }[] = [];
const waiting = new Set<number>();
let asked = 0;
let draws = thread;
const below = (bound: number) => {
  draws = (Math.imul(draws, 1664525) + 1013904223) >>> 0;
  return Math.floor((draws / 2 ** 32) * bound);
};

const bell = new Bell(core, () => {
  waitSlots.takeReturns((slot, result) => {
    waiting.delete(slot);
    if (result.kind === 'rejected') Atomics.add(counts, 4, 1);
    else if (result.kind === 'cancelled') Atomics.add(counts, 5, 1);
    else {
      Atomics.add(counts, 3, 1);
      const gate = { waitSlots: -1, held: result, blind: false };
      const { status, ticket, ticketGeneration } = decider.decide({ ...plainRequest, gate, priority: below(3) });
      if (status !== 'decided') throw new Error(`a dispatched request was ${status}`);
      held.push({ ticket, ticketGeneration });
    }
  });
});

function ask(): void {
  asked++;
  Atomics.add(counts, 1, 1);
  const gate = { waitSlots: waitSlots.next, held: undefined, blind: false };
  const request = { ...plainRequest, gate, priority: below(3), promptTokens: below(100) };
  const { status, ticket, ticketGeneration } = decider.decide(request);
  if (status === 'decided') {
    Atomics.add(counts, 2, 1);
    held.push({ ticket, ticketGeneration });
  } else if (status === 'waiting') waiting.add(waitSlots.enqueue(describedRequest));
  else throw new Error(status);
}

function turn(): void {
  for (let i = 0; i < 20; i++) {
    const action = below(4);
    if (action < 2 && asked < rounds && waiting.size < 50) ask();
    else if (action === 2 && waiting.size > 0) waitSlots.cancel([...waiting][below(waiting.size)]!);
    else {
      const { ticket, ticketGeneration } = held.pop() ?? { ticket: 0, ticketGeneration: 0 };
      decider.release(ticket, ticketGeneration);
    }
  }
  if (asked < rounds || waiting.size > 0 || held.length > 0) setImmediate(turn);
  else {
    bell.stop();
    parentPort!.close();
  }
}

// The port keeps the thread while it only waits for the bell.
parentPort!.on('message', () => undefined);
bell.start();
parentPort!.postMessage('ready');
const going = Atomics.waitAsync(counts, 0, 0);
if (going.async) void going.value.then(turn);
else turn();
