// Replicas under faults for as long as is wanted: `npm run faults -- [--minutes 60] [--replicas 4] [--seed 1]` (needs a
// nats-server, see scripts/install-nats.sh). Real pickers, a real nats-server, a proxy in between; the checker says
// what did not hold, and the exit code is then 1. The short version is among the tests
// (test/picker/replica-faults.test.ts).
import { parseArgs } from 'node:util';
import { FaultRun } from '../test/replication/faults/fault-run.ts';

/** Interval between two lines of progress. */
const REPORT_MS = 60_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    replicas: { type: 'string', default: '4' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});

const say = (line: string) => console.log(`${new Date().toISOString()} ${line}`);
const began = performance.now();
let reportedMs = began;
const run = new FaultRun({
  replicas: Number(values.replicas),
  seed: Number(values.seed),
  more: (cycles) => {
    const now = performance.now();
    if (now - reportedMs > REPORT_MS) {
      say(`${cycles} cycles in ${Math.round((now - began) / 60_000)} minutes`);
      reportedMs = now;
    }
    return now - began < 60_000 * Number(values.minutes);
  },
  report: say,
});
say(`seed ${values.seed}`);
const { violations, ...counts } = await run.run();
say(JSON.stringify(counts));
say(`${violations.length} violations`);
process.exit(violations.length === 0 ? 0 : 1);
