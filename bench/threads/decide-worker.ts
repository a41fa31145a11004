// One thread of threads/decide-N.
import { workerData } from 'node:worker_threads';
import type { PoolMemory } from '../../dist/src/core/index.js';
import { decisions } from '../decide.ts';
import { type RoundsData, serveRounds } from './rounds.ts';

const start = workerData as RoundsData & { readonly pool: PoolMemory; readonly decisions: number };
const decide = decisions(start.pool, start.thread);
await serveRounds(start, () => {
  for (let i = 0; i < start.decisions; i++) decide();
});
