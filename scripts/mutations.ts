// Mutation run of a room: `npm run mutations -- --room scheduling --sample 40 --seed 7 [--skip 10] [--at-least 90]`.
// Changes one place of a compiled module, or of a source of the core (room `assembly`), at a time in a copy of the
// repository, and runs the tests that reach it. A mutant that no test notices has survived. Ends with exit code 1 when
// fewer than `--at-least` percent were noticed.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CORE_ROOM, type MutatedRoom, openRoom } from './mutations/rooms.ts';
import { equivalentReason, type RoomMutant, sample } from './mutations/sample.ts';
import { type Outcome, Trial } from './mutations/trial.ts';

/** Tests of one mutant together. */
const TESTS_SECONDS = 30;
/** Test files of one mutant. */
const TESTS_MAX = 16;
/** A test file takes at most so long on a mutant, and a third of that without one; else it judges no mutant. */
const LIMIT_SECONDS = 45;
const TEST_SECONDS = LIMIT_SECONDS / 3;
/** Rooms whose tests start a proxy, a browser, a cluster or a container, or read documents: they judge no mutant. */
const LEFT_OUT = /^test\/(envoy|kubernetes|charts|image|page|documents|release|project|compatibility|deploy)\//;

const root = fileURLToPath(new URL('..', import.meta.url));

/** Outcome of a mutant; `invalid` = it does not compile. */
type Verdict = Outcome | 'untested' | 'equivalent' | 'invalid';

const WORDS: Readonly<Partial<Record<Verdict, string>>> = {
  passed: 'SURVIVED',
  failed: 'noticed',
  untested: 'UNTESTED',
};

/** Whether test files pass in time without a mutant. Only those are asked that have failed with one. */
class Baseline {
  readonly #passes = new Map<string, boolean>();
  readonly #trial: Trial;

  constructor(trial: Trial) {
    this.#trial = trial;
  }

  /** The file is known to fail, or to take too long. */
  refuses(file: string): boolean {
    return this.#passes.get(file) === false;
  }

  async passes(file: string): Promise<boolean> {
    const known = this.#passes.get(file);
    if (known !== undefined) return known;
    const passes = (await this.#trial.run(file, TEST_SECONDS)).outcome === 'passed';
    this.#passes.set(file, passes);
    return passes;
  }
}

/** Runs the test files that reach a mutant, one after the other, until one notices it. */
async function judge(
  mutant: RoomMutant,
  room: MutatedRoom,
  trial: Trial,
  baseline: Baseline,
): Promise<[Verdict, number]> {
  if (equivalentReason(mutant) !== undefined) return ['equivalent', 0];
  const change = await room.change(mutant);
  if (change === undefined) return ['invalid', 0];
  let seconds = 0;
  let judged = 0;
  for (const file of room.tests(mutant).filter((test) => !LEFT_OUT.test(test))) {
    if (judged === TESTS_MAX || seconds >= TESTS_SECONDS) break;
    if (baseline.refuses(file)) continue;
    const run = await trial.withFile(change.path, change.content, () => trial.run(file, LIMIT_SECONDS));
    seconds += run.seconds;
    if (run.outcome === 'passed') judged++;
    else if (await baseline.passes(file)) return [run.outcome, seconds];
  }
  return [judged === 0 ? 'untested' : 'passed', seconds];
}

function line(verdict: Verdict, seconds: number, { module, line, kind, before, after }: RoomMutant): string {
  const word = WORDS[verdict] ?? verdict;
  const place = `${module}:${line} ${kind}`;
  return `${word.padEnd(10)} ${seconds.toFixed(0).padStart(3)} s  ${place}\n    ${before}\n    ${after}`;
}

/** Runs the sample of one room. @returns share of the mutants that tests noticed [%] */
async function runRoom(name: string, size: number, seed: number, skip: number): Promise<number> {
  const counts: Record<Verdict, number> = { passed: 0, failed: 0, timeout: 0, untested: 0, equivalent: 0, invalid: 0 };
  const trial = new Trial(root);
  const interrupted = () => {
    trial.remove();
    process.exit(130);
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  let all = 0;
  try {
    const room = await openRoom(trial, name, TEST_SECONDS);
    const baseline = new Baseline(trial);
    all = room.mutants.length;
    for (const mutant of sample(room.mutants, size, seed).slice(skip)) {
      const [verdict, seconds] = await judge(mutant, room, trial, baseline);
      counts[verdict]++;
      console.log(line(verdict, seconds, mutant));
    }
  } finally {
    trial.remove();
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
  const noticed = counts.failed + counts.timeout;
  const judged = noticed + counts.passed + counts.untested;
  const share = judged === 0 ? 100 : (100 * noticed) / judged;
  console.log(
    `${name}: ${noticed} of ${judged} noticed (${share.toFixed(0)} %), ${counts.equivalent} equivalent, ` +
      `${counts.invalid} invalid, of ${all} mutants (--room ${name} --sample ${size} --seed ${seed})`,
  );
  return share;
}

const { values } = parseArgs({
  options: {
    room: { type: 'string', default: `core,scheduling,ingress,flow-control,${CORE_ROOM}` },
    sample: { type: 'string', default: '40' },
    seed: { type: 'string', default: '7' },
    // Mutants of the sample that an interrupted run has judged already.
    skip: { type: 'string', default: '0' },
    'at-least': { type: 'string', default: '0' },
  },
});
let least = 100;
for (const room of values.room.split(',')) {
  const [size, seed, skip] = [values.sample, values.seed, values.skip].map(Number) as [number, number, number];
  least = Math.min(least, await runRoom(room, size, seed, skip));
}
if (least < Number(values['at-least'])) process.exitCode = 1;
