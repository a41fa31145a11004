import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readPlainFileSync, readPlainText } from '../../../src/runtime/plain-file.js';
import { readProblem } from '../../../src/runtime/read-problem.js';
import { policyText } from './policy-of.js';
import type { Suite, SuiteWorkload } from './schema.js';
import { type RunResult, type SuiteFolders, type SuiteRun, TRACE_BYTES_MAX } from './suite-run.js';

/** Rooms of the program that a result depends on. */
const ROOMS = [
  'src/adaptation',
  'src/config',
  'src/contract',
  'src/core',
  'src/flow-control',
  'src/runtime',
  'src/scheduling',
  'tools/simulator/fleet',
  'tools/simulator/suite',
  'tools/simulator/workloads',
];

/**
 * Results of runs in a file, a line each, so that a stopped sweep continues, and an extended one runs only the new
 * ones. A result is found again when everything that it depends on is the same: program, traffic, fleet, policy, seed.
 */
export class SavedRuns {
  readonly #path: string;
  readonly #results = new Map<string, RunResult>();
  readonly #code = codeHash();
  readonly #traces = new Map<string, string>();

  /** @throws Error when the file is there and is not one of results */
  constructor(path: string) {
    this.#path = path;
    if (!existsSync(path)) return;
    const lines = resultsText(path).split('\n');
    for (const [number, line] of lines.entries()) {
      // The last line of a sweep that was stopped may be cut off.
      if (line === '' || (number === lines.length - 1 && !line.endsWith('}'))) continue;
      const { key, result } = parsed(line, `${path}:${number + 1}`);
      this.#results.set(key, result);
    }
  }

  find(suite: Suite, cell: SuiteRun, folders: SuiteFolders): RunResult | undefined {
    const found = this.#results.get(this.keyOf(suite, cell, folders));
    // Names are not part of what a result depends on.
    return found === undefined ? undefined : { ...found, ...cell };
  }

  add(suite: Suite, result: RunResult, folders: SuiteFolders): void {
    const key = this.keyOf(suite, result, folders);
    this.#results.set(key, result);
    appendFileSync(this.#path, `${JSON.stringify({ key, result })}\n`);
  }

  /** Hash of all that the result of a run depends on. */
  keyOf(suite: Suite, { workload, policy: name, seed }: SuiteRun, folders: SuiteFolders): string {
    const { blockTokens, fleet, slo, warmup, capacity, firstSeed } = suite;
    const policy = suite.policies.find((candidate) => candidate.name === name)!;
    const involved = workloadsOf(suite, workload);
    const traces = involved.flatMap((each) =>
      'path' in each ? [this.#trace(resolve(folders.traces, String(each.path)))] : [],
    );
    const sampled = seed === firstSeed;
    const parts = [this.#code, blockTokens, fleet, slo, warmup, capacity, seed, sampled, involved, traces];
    // Saved runs do not depend on the choice of an oracle: its result is a policy like any other.
    const relevant = (key: string, value: unknown) => (key === 'tuning' ? undefined : value);
    return hash(JSON.stringify([...parts, policyText(policy, workload, folders.suite)], relevant));
  }

  #trace(path: string): string {
    let known = this.#traces.get(path);
    if (known === undefined) {
      known = existsSync(path) ? hash(readPlainFileSync(path, TRACE_BYTES_MAX)) : 'none';
      this.#traces.set(path, known);
    }
    return known;
  }
}

function resultsText(path: string): string {
  try {
    return readPlainText(path, TRACE_BYTES_MAX);
  } catch (error) {
    throw new Error(`${path} ${readProblem(error)}`);
  }
}

/** A workload, and its parts. */
function workloadsOf(suite: Suite, name: string): SuiteWorkload[] {
  const wanted = [name];
  const found = new Set<SuiteWorkload>();
  for (const next of wanted) {
    const workload = suite.workloads.find((candidate) => candidate.name === next);
    if (workload === undefined || found.has(workload)) continue;
    found.add(workload);
    if (workload.kind === 'variant') wanted.push((workload as Extract<SuiteWorkload, { kind: 'variant' }>).of);
    if (workload.kind === 'together') {
      wanted.push(...(workload as Extract<SuiteWorkload, { kind: 'together' }>).parts);
    }
    if (workload.kind !== 'sequence') continue;
    const { parts } = workload as Extract<SuiteWorkload, { kind: 'sequence' }>;
    wanted.push(...parts.map((part) => part.workload));
  }
  return [...found];
}

function parsed(line: string, place: string): { readonly key: string; readonly result: RunResult } {
  try {
    const data = JSON.parse(line) as { readonly key: string; readonly result: RunResult };
    if (typeof data.key === 'string' && typeof data.result === 'object') return data;
  } catch {
    // The same message as for a document of another kind.
  }
  throw new Error(`${place}: this is no result of a run: name another file to resume from, or remove this line`);
}

function codeHash(): string {
  const dist = fileURLToPath(new URL('../../../', import.meta.url));
  const files = ROOMS.flatMap((room) =>
    readdirSync(join(dist, room), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.js') || name.endsWith('.wasm'))
      .map((name) => join(dist, room, name)),
  );
  return hash(
    files
      .sort()
      .map((file) => hash(readFileSync(file)))
      .join(' '),
  );
}

function hash(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
