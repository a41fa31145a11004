// Suites of the chapters of docs/adaptation-results.md, in the whole form and in the short one.
import { join } from 'node:path';
import { loadSuite, narrowed } from '../../dist/tools/simulator/suite/load-suite.js';
import type { Suite, SuiteWorkload } from '../../dist/tools/simulator/suite/schema.js';
import type { SuiteFolders } from '../../dist/tools/simulator/suite/suite-run.js';
import type { Chapter } from './chapters.ts';

export interface Form {
  readonly seeds: number;
  /** Factor on the length of the traffic. */
  readonly length: number;
}

export const FORMS: Readonly<Record<'whole' | 'short', Form>> = {
  whole: { seeds: 5, length: 1 },
  short: { seeds: 2, length: 0.5 },
};

/** What of its suite a chapter runs. @param hasTraces whether the public traces are there */
export function suiteOf(chapter: Chapter, form: Form, folders: SuiteFolders, hasTraces: boolean): Suite {
  const { file, policies, workloads = () => true, suite: shaped = (suite) => suite } = chapter;
  const loaded = loadSuite(join(folders.suite, file));
  const usable = (loaded.run ?? loaded.workloads.map(({ name }) => name)).filter(
    (name) => workloads(name) && (hasTraces || !needsTrace(loaded, name)),
  );
  const part = narrowed(loaded, { policies, workloads: usable, seeds: form.seeds });
  return shaped({ ...part, oracle: undefined, workloads: part.workloads.map((each) => shortened(each, form.length)) });
}

function needsTrace({ workloads }: Suite, name: string): boolean {
  const found = workloads.find((workload) => workload.name === name)!;
  return (
    'path' in found || (found.kind === 'variant' && needsTrace({ workloads } as Suite, (found as { of: string }).of))
  );
}

function shortened(workload: SuiteWorkload, factor: number): SuiteWorkload {
  if (factor === 1 || workload.kind === 'variant') return workload;
  const own = workload as SuiteWorkload & { seconds?: number; parts?: readonly { seconds: number }[] };
  const shorter = (seconds: number) => Math.round(seconds * factor);
  return {
    ...own,
    ...(own.seconds !== undefined && { seconds: shorter(own.seconds) }),
    ...(own.kind === 'sequence' && {
      parts: own.parts!.map((part) => ({ ...part, seconds: shorter(part.seconds) })),
    }),
  } as SuiteWorkload;
}
