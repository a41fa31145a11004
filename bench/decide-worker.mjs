// One thread of threads/decide-N: makes a round of decisions each time the round number rises.
import { parentPort, workerData } from 'node:worker_threads';
import { decisions } from './decide.ts';

const start = workerData;
const decide = decisions(start.pool, start.thread);
for (let i = 0; i < start.decisions; i++) decide();
parentPort.postMessage('warm');
for (let round = 0; ; ) {
  Atomics.wait(start.state, 0, round);
  round = Atomics.load(start.state, 0);
  for (let i = 0; i < start.decisions; i++) decide();
  Atomics.add(start.state, 1, 1);
  Atomics.notify(start.state, 1);
}
