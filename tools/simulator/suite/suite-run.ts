import { resolve } from 'node:path';
import { readPlainText } from '../../../src/runtime/plain-file.js';
import { readProblem } from '../../../src/runtime/read-problem.js';
import type { RunOutcome } from '../fleet/outcome.js';
import { simulate } from '../fleet/simulation.js';
import type { Workload } from '../fleet/workload.js';
import { fleetOf } from './fleet-of.js';
import { policyOf } from './policy-of.js';
import { type RunSummary, summarise } from './run-summary.js';
import { fleetSchema, type Suite } from './schema.js';
import { workloadOf } from './workload-of.js';

/** One run of a suite. */
export interface SuiteRun {
  readonly workload: string;
  readonly policy: string;
  readonly seed: number;
}

/** Paths of a suite's files. */
export interface SuiteFolders {
  readonly suite: string;
  readonly traces: string;
}

export interface RunResult extends SuiteRun {
  readonly summary: RunSummary;
  /** Requests of the whole run and how long the machine took, for the speed of the simulator. */
  readonly simulated: number;
  readonly tookMs: number;
  /** Of the first seed. */
  readonly learning: RunOutcome['learning'];
  readonly transitions: RunOutcome['transitions'];
  /** Training samples until the learned coefficients were where they stayed; undefined when nothing was learned. */
  readonly settledAfter?: number | undefined;
  /** Undefined when the configuration counts none. */
  readonly sessions?: RunOutcome['sessions'];
  /** Of a suite that looks for it; the summary is that of the run at this load. */
  readonly capacity?: Capacity | undefined;
}

/** Every pair of workload and policy with every seed, all policies of a pair's traffic next to each other. */
export function runsOf(suite: Suite): SuiteRun[] {
  const workloads = suite.run ?? suite.workloads.map(({ name }) => name);
  return workloads.flatMap((workload) =>
    Array.from({ length: suite.seeds }, (_, i) => suite.firstSeed + i).flatMap((seed) =>
      suite.policies.map(({ name }) => ({ workload, policy: name, seed })),
    ),
  );
}

/**
 * Runs one cell.
 * @throws Error one line: a trace or configuration that cannot be used
 */
export function runOne(suite: Suite, cell: SuiteRun, folders: SuiteFolders): RunResult {
  if (suite.capacity === undefined) return runAt(suite, cell, folders, 1);
  const begin = performance.now();
  let simulated = 0;
  const { run, capacity } = highestLoad(suite.capacity, (load) => {
    const tried = runAt(suite, cell, folders, load);
    simulated += tried.simulated;
    return tried;
  });
  return { ...run, capacity, simulated, tookMs: performance.now() - begin };
}

/** @param load factor on the rate of the workload */
function runAt(suite: Suite, cell: SuiteRun, folders: SuiteFolders, load: number): RunResult {
  const policy = suite.policies.find(({ name }) => name === cell.policy)!;
  const own = suite.workloads.find(({ name }) => name === cell.workload)?.fleet ?? {};
  const text = fleetSchema.parse({ ...suite.fleet, ...own });
  const workload = trafficOf(suite, cell, folders, load);
  const { configuration, seen } = policyOf(policy, cell.workload, folders.suite);
  const fleet = fleetOf(seen(text), suite.blockTokens);
  const begin = performance.now();
  const outcome = simulate(workload, configuration, fleet, cell.seed);
  const tookMs = performance.now() - begin;
  const { learning, transitions, sessions } = outcome;
  const summary = summarise(outcome, suite, workload.parts.length);
  return {
    ...cell,
    summary,
    simulated: outcome.requests.length,
    tookMs,
    learning: cell.seed === suite.firstSeed ? learning : undefined,
    transitions,
    sessions,
    settledAfter: learning === undefined ? undefined : settledAfter(learning),
  };
}

/** Coefficients within this of their last values stay there. */
const SETTLED = 0.1;

/**
 * Training samples that had been learned from at the first sample after which prefill and step stayed within a tenth of
 * their end.
 */
export function settledAfter(samples: NonNullable<RunOutcome['learning']>): number | undefined {
  const last = samples.at(-1);
  if (last === undefined) return undefined;
  const near = (a: number, b: number) => Math.abs(a / b - 1) <= SETTLED;
  const far = samples.findLastIndex(
    ({ coefficients: { prefillMsPerKiloToken, stepMs } }) =>
      !near(prefillMsPerKiloToken, last.coefficients.prefillMsPerKiloToken) || !near(stepMs, last.coefficients.stepMs),
  );
  return samples[far + 1]?.samples;
}

/** The traffic made last: the cells of one workload and seed follow each other. */
let latest: { readonly key: string; readonly workload: Workload } | undefined;

function trafficOf(suite: Suite, { workload: name, seed }: SuiteRun, folders: SuiteFolders, load: number): Workload {
  const key = `${load} ${suite.blockTokens} ${JSON.stringify(suite.workloads)} ${name} ${seed} ${folders.traces}`;
  if (latest?.key === key) return latest.workload;
  const workload = workloadOf(suite, name, seed, (path) => readTrace(resolve(folders.traces, path)), load);
  latest = { key, workload };
  return workload;
}

/** Bytes of a trace, and of the results of a sweep: what one text can hold. */
export const TRACE_BYTES_MAX = 512 * 1024 * 1024 - 1024;

/** @throws Error when there is no such file, or when it is none of plausible size */
export function readTrace(path: string): string {
  try {
    return readPlainText(path, TRACE_BYTES_MAX);
  } catch (error) {
    throw new Error(`the trace ${path} ${readProblem(error)}`);
  }
}

/** Highest load that a policy was found to carry. */
export interface Capacity {
  /** Factor on the rate of the workload; 0 = not even the lowest that was tried. */
  readonly load: number;
  /** Requests per second at that load. */
  readonly requestsPerSecond: number;
}

/** Result of a run at one load. */
interface LoadedRun {
  readonly summary: { readonly goodput: number; readonly requestsPerSecond: number };
}

/**
 * Bisection over the logarithm of the load. Goodput falls with the load but for noise, of which equal seeds have the
 * same.
 * @returns the run at the highest load that was carried, or at the lowest when none was
 */
export function highestLoad<Run extends LoadedRun>(
  { goodput, from, to, steps }: NonNullable<Suite['capacity']>,
  runAt: (load: number) => Run,
): { readonly run: Run; readonly capacity: Capacity } {
  let [low, high] = [from, to];
  let run = runAt(low);
  if (run.summary.goodput < goodput) return { run, capacity: { load: 0, requestsPerSecond: 0 } };
  for (let step = 0; step < steps; step++) {
    const middle = Math.sqrt(low * high);
    const tried = runAt(middle);
    if (tried.summary.goodput >= goodput) {
      low = middle;
      run = tried;
    } else high = middle;
  }
  return { run, capacity: { load: low, requestsPerSecond: run.summary.requestsPerSecond } };
}
