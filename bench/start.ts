// A whole picker from exec to its first answer: `npm run bench -- start`.
import type { Bench } from './bench.ts';
import { measureStart, OWN_COMMAND } from './process/load.ts';

export const benches: readonly Bench[] = [
  {
    name: 'start/first-answer',
    runsMin: 5,
    setup: async () => ({ run: async () => void (await measureStart(OWN_COMMAND, { idleMs: 0 })) }),
  },
];
