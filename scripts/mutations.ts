// Mutation run of a room: `npm run mutations -- --room scheduling --sample 40 --seed 7 [--at-least 90]`. Changes one
// place of a compiled module at a time in a copy of the repository, and runs the tests that import the module, nearest
// first. A mutant that no test notices has survived. Ends with exit code 1 when fewer than `--at-least` percent were
// noticed.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ReachingTest, readGraph, testsReaching } from './mutations/import-graph.ts';
import { applied } from './mutations/mutants.ts';
import { equivalentReason, mutantsOfRoom, type RoomMutant, sample } from './mutations/sample.ts';
import { type Outcome, Trial } from './mutations/trial.ts';

/** Tests of one mutant together, without the mutant. */
const TESTS_SECONDS = 60;
/** A test file that takes longer judges no mutant. */
const TEST_SECONDS = 20;
/** Test files of one mutant. */
const TESTS_MAX = 16;
/** A mutant may take so many times as long as the tests without it, and this much more. */
const SLOWER = 3;
const STARTUP_SECONDS = 15;
/** Rooms whose tests start a proxy, a browser, a cluster or a container, or read documents: they judge no mutant. */
const LEFT_OUT = /^test\/(envoy|kubernetes|charts|image|page|documents|release|project|compatibility|deploy)\//;

const root = fileURLToPath(new URL('..', import.meta.url));

type Verdict = Outcome | 'untested' | 'equivalent';

/** Seconds of each test file without a mutant; undefined = it takes too long, or fails. */
class Baseline {
  readonly #seconds = new Map<string, number | undefined>();
  readonly #trial: Trial;

  constructor(trial: Trial) {
    this.#trial = trial;
  }

  async seconds(file: string): Promise<number | undefined> {
    if (!this.#seconds.has(file)) {
      const { outcome, seconds } = await this.#trial.run([file], TEST_SECONDS);
      this.#seconds.set(file, outcome === 'passed' ? seconds : undefined);
    }
    return this.#seconds.get(file);
  }
}

/** Tests that run against the mutants of a module, within the bounds, and the seconds that they take without one. */
async function judges(tests: readonly ReachingTest[], baseline: Baseline) {
  const files: string[] = [];
  let seconds = 0;
  for (const { file } of tests.filter((test) => !LEFT_OUT.test(test.file))) {
    if (files.length === TESTS_MAX || seconds >= TESTS_SECONDS) break;
    const own = await baseline.seconds(file);
    if (own === undefined) continue;
    files.push(file);
    seconds += own;
  }
  return { files, seconds };
}

function line(verdict: Verdict, seconds: number, { module, line, kind, before, after }: RoomMutant): string {
  const word = verdict === 'passed' ? 'SURVIVED' : verdict === 'failed' ? 'noticed' : verdict;
  return `${word.padEnd(10)} ${seconds.toFixed(0).padStart(3)} s  ${module}:${line} ${kind}\n    ${before}\n    ${after}`;
}

/** Runs the sample of one room. @returns share of the mutants that tests noticed [%] */
async function runRoom(room: string, size: number, seed: number): Promise<number> {
  const all = mutantsOfRoom(root, room);
  const graph = readGraph(root);
  const trial = new Trial(root);
  const counts: Record<Verdict, number> = { passed: 0, failed: 0, timeout: 0, untested: 0, equivalent: 0 };
  try {
    const baseline = new Baseline(trial);
    for (const mutant of sample(all, size, seed)) {
      const [verdict, seconds] = await judge(mutant);
      counts[verdict]++;
      console.log(line(verdict, seconds, mutant));
    }
    async function judge(mutant: RoomMutant): Promise<[Verdict, number]> {
      if (equivalentReason(mutant) !== undefined) return ['equivalent', 0];
      const { files, seconds } = await judges(testsReaching(graph, mutant.module, `test/${room}`), baseline);
      if (files.length === 0) return ['untested', 0];
      const text = applied(readFileSync(join(root, mutant.module), 'utf8'), mutant);
      const run = await trial.withModule(mutant.module, text, files, SLOWER * seconds + STARTUP_SECONDS);
      return [run.outcome, run.seconds];
    }
  } finally {
    trial.remove();
  }
  const noticed = counts.failed + counts.timeout;
  const judged = noticed + counts.passed + counts.untested;
  const share = judged === 0 ? 100 : (100 * noticed) / judged;
  console.log(
    `${room}: ${noticed} of ${judged} noticed (${share.toFixed(0)} %), ${counts.equivalent} equivalent, ` +
      `of ${all.length} mutants (--room ${room} --sample ${size} --seed ${seed})`,
  );
  return share;
}

const { values } = parseArgs({
  options: {
    room: { type: 'string', default: 'core,scheduling,ingress,flow-control' },
    sample: { type: 'string', default: '40' },
    seed: { type: 'string', default: '7' },
    'at-least': { type: 'string', default: '0' },
  },
});
let least = 100;
for (const room of values.room.split(',')) {
  least = Math.min(least, await runRoom(room, Number(values.sample), Number(values.seed)));
}
if (least < Number(values['at-least'])) process.exitCode = 1;
