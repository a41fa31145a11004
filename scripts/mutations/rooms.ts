// The two kinds of rooms that mutants are made of: compiled modules, and the sources of the core.
import { globSync } from 'node:fs';
import { compileCore } from '../core-compiler.ts';
import { type CoveredCore, coveredCore } from './core-coverage.ts';
import { coreMutantsOf, functionsOf } from './core-mutants.ts';
import { readGraph, testsReaching } from './import-graph.ts';
import { applied } from './mutants.ts';
import { mutantsOfRoom, type RoomMutant } from './sample.ts';
import type { Trial } from './trial.ts';

/** A room whose mutants are tried. */
export interface MutatedRoom {
  readonly mutants: readonly RoomMutant[];
  /** Test files that reach a mutant, in the order in which they judge it. */
  tests(mutant: RoomMutant): readonly string[];
  /** The file of the copy that differs with a mutant; undefined = the mutant does not compile. */
  change(mutant: RoomMutant): Promise<FileChange | undefined>;
}

export interface FileChange {
  readonly path: string;
  readonly content: string | Uint8Array;
}

/** Room of `assembly/`. */
export const CORE_ROOM = 'assembly';
const DEBUG_CORE = 'dist/src/core/core-debug.wasm';
/** Where a test file writes the functions that it has run, in the copy. */
const NOTED = 'functions.json';

/** @param testSeconds bound of a test file */
export async function openRoom(trial: Trial, room: string, testSeconds: number): Promise<MutatedRoom> {
  return room === CORE_ROOM ? coreRoom(trial, testSeconds) : compiledRoom(trial, room);
}

/** A folder of src/: a mutant is another text of a compiled module, judged by tests that import it, nearest first. */
function compiledRoom(trial: Trial, room: string): MutatedRoom {
  const graph = readGraph(trial.root);
  return {
    mutants: mutantsOfRoom(trial.root, room),
    tests: ({ module }) => testsReaching(graph, module, `test/${room}`).map(({ file }) => file),
    change: async (mutant) => ({ path: mutant.module, content: applied(trial.text(mutant.module), mutant) }),
  };
}

/** `assembly/`: a mutant is another debug core, judged by tests of test/core that run its function, quickest first. */
async function coreRoom(trial: Trial, testSeconds: number): Promise<MutatedRoom> {
  const files = globSync('assembly/**/*.ts', { cwd: trial.root }).sort();
  const sources = new Map(files.map((file) => [file, trial.text(file)]));
  const numberOf = functionNumbers(sources);
  const runs = await runsOfTests(trial, coveredCore(sources), testSeconds);
  return {
    mutants: files.flatMap((module) =>
      coreMutantsOf(sources.get(module)!, module).map((mutant) => ({ ...mutant, module })),
    ),
    tests: (mutant) => {
      const number = numberOf(mutant);
      return runs.filter(({ functions }) => functions.has(number)).map(({ file }) => file);
    },
    change: async (mutant) => {
      const text = applied(sources.get(mutant.module)!, mutant);
      return trial.withFile(mutant.module, text, async () => {
        const core = await compileCore(trial.root, 'debug').catch(() => undefined);
        return core && { path: DEBUG_CORE, content: core.wasm };
      });
    },
  };
}

/** Number of the function that a mutant is in. */
function functionNumbers(sources: ReadonlyMap<string, string>): (mutant: RoomMutant) => number {
  const functions = [...sources].flatMap(([file, text]) => functionsOf(text, file).map((own) => ({ file, ...own })));
  return ({ module, start }) =>
    functions.findLastIndex((own) => own.file === module && own.start < start && start < own.end);
}

/** Tests of the core that pass in time, quickest first, with the numbers of the functions that each runs. */
async function runsOfTests(trial: Trial, { sources }: CoveredCore, testSeconds: number) {
  const before = new Map([...sources.keys()].map((file) => [file, trial.text(file)]));
  trial.write(sources);
  const { wasm } = await compileCore(trial.root, 'debug');
  trial.write(before);
  const runs: { file: string; seconds: number; functions: ReadonlySet<number> }[] = [];
  for (const file of globSync('test/core/**/*.test.ts', { cwd: trial.root }).sort()) {
    const run = await trial.withFile(DEBUG_CORE, wasm, () => trial.run(file, testSeconds, { CORE_COVERAGE: NOTED }));
    if (run.outcome !== 'passed') continue;
    runs.push({ file, seconds: run.seconds, functions: new Set(JSON.parse(trial.text(NOTED)) as number[]) });
  }
  return runs.sort((a, b) => a.seconds - b.seconds);
}
