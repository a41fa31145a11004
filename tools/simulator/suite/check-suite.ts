import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { errorMessage } from '../../../src/runtime/error-message.js';
import { refuseUnsimulated } from '../fleet/refusals.js';
import { requestsOf, type Workload } from '../fleet/workload.js';
import { workloadKinds } from '../workloads/kinds.js';
import { fleetOf } from './fleet-of.js';
import { policyOf } from './policy-of.js';
import { fleetSchema, type Suite } from './schema.js';
import { readTrace, type SuiteFolders } from './suite-run.js';
import { workloadOf } from './workload-of.js';

/**
 * Checks everything that a suite names before its first run: traces, the traffic that they make, policies and fleets.
 * @throws Error one line that names the workload, policy or file, and the remedy
 */
export function checkSuite(suite: Suite, folders: SuiteFolders): void {
  checkTraces(suite, folders.traces);
  const names = suite.run ?? suite.workloads.map(({ name }) => name);
  for (const name of names) {
    for (const policy of suite.policies) checkPolicy(suite, policy, name, folders.suite);
    const read = (path: string) => readTrace(resolve(folders.traces, path));
    checkLength(suite, name, workloadOf(suite, name, suite.firstSeed, read));
  }
}

/** @throws Error when results cannot be written to a path: its folder is missing, or it is a folder itself */
export function checkOutput(path: string, flag: string): void {
  const folder = dirname(resolve(path));
  if (existsSync(path) && statSync(path).isDirectory()) throw new Error(`--${flag}: ${path} is a folder: name a file`);
  if (!existsSync(folder)) throw new Error(`--${flag}: there is no folder ${folder}: make it first`);
  try {
    accessSync(existsSync(path) ? path : folder, constants.W_OK);
  } catch (error) {
    throw new Error(`--${flag}: ${path} cannot be written: ${errorMessage(error)}; choose another place`);
  }
}

function checkTraces(suite: Suite, folder: string): void {
  const used = usedWorkloads(suite);
  for (const { name, kind, path } of used) {
    if (path === undefined || existsSync(resolve(folder, path))) continue;
    const source = workloadKinds.find((each) => each.kind === kind)?.source;
    const remedy = source === undefined ? 'put it there' : `get it from ${source}`;
    throw new Error(
      `workload "${name}": the trace ${resolve(folder, path)} is missing: ${remedy}, or name its folder with --traces`,
    );
  }
}

/** The workloads that run, and those whose traffic sequences and variants use. */
function usedWorkloads(
  suite: Suite,
): readonly { readonly name: string; readonly kind: string; readonly path?: string }[] {
  const byName = new Map(suite.workloads.map((workload) => [workload.name, workload] as const));
  const used = new Set<string>();
  const visit = (name: string): void => {
    const workload = byName.get(name);
    if (workload === undefined || used.has(name)) return;
    used.add(name);
    if ('of' in workload) visit(workload.of as string);
    const { parts = [] } = workload as { readonly parts?: readonly (string | { readonly workload: string })[] };
    for (const part of parts) visit(typeof part === 'string' ? part : part.workload);
  };
  for (const name of suite.run ?? byName.keys()) visit(name);
  return [...used].map((name) => byName.get(name)! as { name: string; kind: string; path?: string });
}

function checkPolicy(suite: Suite, policy: Suite['policies'][number], workload: string, folder: string): void {
  const own = suite.workloads.find(({ name }) => name === workload)?.fleet ?? {};
  const text = fleetSchema.parse({ ...suite.fleet, ...own });
  const { configuration, seen } = inContext(`policy "${policy.name}"`, () => policyOf(policy, workload, folder));
  const fleet = seen(text);
  inContext(`policy "${policy.name}"`, () =>
    refuseUnsimulated(configuration, suite.blockTokens, fleet.kvEvents !== undefined),
  );
  inContext(`workload "${workload}"`, () => fleetOf(fleet, suite.blockTokens));
}

/** Names the part of the suite in front of an error's text. */
function inContext<Result>(what: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw new Error(`${what}: ${errorMessage(error)}`);
  }
}

/** Refuses traffic of which nothing is left behind the warm-up. */
function checkLength({ warmup }: Suite, name: string, workload: Workload): void {
  if (workload.clients !== undefined) {
    checkHorizon(warmup.seconds, name, workload.endMs! / 1e3);
    return;
  }
  const requests = requestsOf(workload);
  const lastMs = workload.sessions.at(-1)!.startMs;
  const turns = Math.max(...workload.sessions.map((session) => session.turns.length));
  // Later turns of a session come when the ones before have been answered, so only single requests are known to be too
  // early.
  if (requests > warmup.requests || turns > 1 || lastMs >= warmup.seconds * 1e3) return;
  const seconds = (lastMs / 1e3).toFixed(1);
  throw new Error(
    `workload "${name}": all of its ${requests} requests lie in the warm-up, the first ${warmup.seconds} s or ` +
      `${warmup.requests} requests: they end after ${seconds} s; take a longer trace, or set warmup of the suite lower`,
  );
}

function checkHorizon(warmupSeconds: number, name: string, seconds: number): void {
  if (seconds > warmupSeconds) return;
  throw new Error(
    `workload "${name}": its ${seconds} s lie in the warm-up of ${warmupSeconds} s: raise its seconds, or set warmup ` +
      'of the suite lower',
  );
}
