import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { builtinPlugins } from '../../config/builtin-plugins.js';
import { loadConfiguration } from '../../config/load.js';
import type { RunOutcome } from '../fleet/outcome.js';
import type { PickerConfiguration } from '../fleet/picker.js';
import { simulate } from '../fleet/simulation.js';
import type { Workload } from '../fleet/workload.js';
import { fleetOf } from './fleet-of.js';
import { baselines } from './policies.js';
import { type RunSummary, summarise } from './run-summary.js';
import { fleetSchema, type Suite, type SuitePolicy } from './schema.js';
import { workloadOf } from './workload-of.js';

/** One run of a suite. */
export interface Cell {
  readonly workload: string;
  readonly policy: string;
  readonly seed: number;
}

/** Where a suite's files lie. */
export interface SuiteFolders {
  readonly suite: string;
  readonly traces: string;
}

export interface CellResult extends Cell {
  readonly summary: RunSummary;
  /** Requests of the whole run and how long the machine took, for the speed of the simulator. */
  readonly simulated: number;
  readonly tookMs: number;
  readonly learning: RunOutcome['learning'];
  readonly transitions: RunOutcome['transitions'];
}

/** Every pair of workload and policy with every seed, all policies of a pair's traffic next to each other. */
export function cellsOf(suite: Suite): Cell[] {
  const workloads = suite.run ?? suite.workloads.map(({ name }) => name);
  return workloads.flatMap((workload) =>
    Array.from({ length: suite.seeds }, (_, i) => suite.firstSeed + i).flatMap((seed) =>
      suite.policies.map(({ name }) => ({ workload, policy: name, seed })),
    ),
  );
}

/**
 * Run one cell.
 * @throws Error one line: a trace or configuration that cannot be used
 */
export function runCell(suite: Suite, cell: Cell, folders: SuiteFolders): CellResult {
  const policy = suite.policies.find(({ name }) => name === cell.policy)!;
  const own = suite.workloads.find(({ name }) => name === cell.workload)?.fleet ?? {};
  const text = fleetSchema.parse({ ...suite.fleet, ...own });
  const workload = trafficOf(suite, cell, folders);
  const { configuration, kvEvents } = configurationOf(policy, folders.suite);
  const fleet = fleetOf(
    kvEvents ? { ...text, kvEvents: text.kvEvents ?? { delayMs: 0, loss: 0 } } : text,
    suite.blockTokens,
  );
  const begin = performance.now();
  const outcome = simulate(workload, configuration, fleet, cell.seed);
  const tookMs = performance.now() - begin;
  const { learning, transitions } = outcome;
  const summary = summarise(outcome, suite, workload.parts.length);
  return { ...cell, summary, simulated: outcome.requests.length, tookMs, learning, transitions };
}

/** The traffic made last: the cells of one workload and seed follow each other. */
let latest: { readonly key: string; readonly workload: Workload } | undefined;

function trafficOf(suite: Suite, { workload: name, seed }: Cell, folders: SuiteFolders): Workload {
  const key = `${suite.blockTokens} ${JSON.stringify(suite.workloads)} ${name} ${seed} ${folders.traces}`;
  if (latest?.key === key) return latest.workload;
  const workload = workloadOf(suite, name, seed, (path) => readTrace(resolve(folders.traces, path)));
  latest = { key, workload };
  return workload;
}

function readTrace(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`the trace cannot be read: ${(error as Error).message}`);
  }
}

/**
 * The configuration of a policy; a baseline learns nothing unless it says so.
 * @throws ConfigurationError with the place of the mistake, Error for a baseline that there is not
 */
export function configurationOf(
  policy: SuitePolicy,
  folder: string,
): { readonly configuration: PickerConfiguration; readonly kvEvents: boolean } {
  const options = { allowExperimental: true, registry: builtinPlugins };
  if (policy.configuration !== undefined) {
    const configuration = loadConfiguration({ file: resolve(folder, policy.configuration) }, options);
    return { configuration, kvEvents: policy.kvEvents ?? false };
  }
  const baseline = baselines.find(({ name }) => name === policy.name);
  if (baseline === undefined) {
    const known = baselines.map(({ name }) => name).join(', ');
    throw new Error(`there is no baseline "${policy.name}": give a configuration, or one of ${known}`);
  }
  const configuration = loadConfiguration({ text: baseline.configuration }, options);
  return { configuration, kvEvents: policy.kvEvents ?? baseline.kvEvents ?? false };
}
