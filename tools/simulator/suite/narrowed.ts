import type { Suite } from './schema.js';

/** A part of a suite to run. */
export interface Part {
  /** Names of policies, the oracle's among them; the reference is always run. Undefined = all. */
  readonly policies: readonly string[] | undefined;
  /** Names of workloads; undefined = those that the suite runs. */
  readonly workloads: readonly string[] | undefined;
  readonly seeds: number | undefined;
}

/**
 * The suite with only a part of its policies, workloads or seeds; the runs are the same as in the whole.
 * @throws Error for a name that the suite does not have
 */
export function narrowed(suite: Suite, { policies, workloads, seeds }: Part): Suite {
  const { oracle } = suite;
  const known = [...suite.policies.map(({ name }) => name), ...(oracle === undefined ? [] : [oracle.name])];
  refuseUnknown('policy', policies, known);
  refuseUnknown(
    'workload',
    workloads,
    suite.workloads.map(({ name }) => name),
  );
  const runs = (name: string) => policies === undefined || name === suite.reference || policies.includes(name);
  return {
    ...suite,
    policies: suite.policies.filter(({ name }) => runs(name)),
    oracle: oracle !== undefined && runs(oracle.name) ? oracle : undefined,
    run: workloads === undefined ? suite.run : [...workloads],
    seeds: seeds ?? suite.seeds,
  };
}

function refuseUnknown(what: string, wanted: readonly string[] | undefined, known: readonly string[]): void {
  const unknown = wanted?.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new Error(`the suite has no ${what} "${unknown}": it has ${known.join(', ')}`);
}
