import { ConfigurationDocument } from '../../../src/config/document.js';
import { ConfigurationError } from '../../../src/config/error.js';
import { validate } from '../../../src/config/validation.js';
import { readUtf8Text, TEXT_BYTES_MAX } from '../../../src/runtime/plain-file.js';
import { readProblem } from '../../../src/runtime/read-problem.js';
import { fleetSchema, type Suite, suiteSchema } from './schema.js';

/**
 * Reads and checks a suite.
 * @throws ConfigurationError one line with place, field, fault and remedy
 */
export function loadSuite(path: string): Suite {
  let text: string;
  try {
    text = readUtf8Text(path, TEXT_BYTES_MAX);
  } catch (error) {
    throw new ConfigurationError(`${path}: the suite ${readProblem(error)}`);
  }
  const document = new ConfigurationDocument(text, path);
  const suite = validate(suiteSchema, document.data, document);
  checkNames(suite, document);
  for (const [i, { fleet }] of suite.workloads.entries()) {
    if (fleet !== undefined) validate(fleetSchema, fleet, document, ['workloads', i, 'fleet']);
  }
  return suite;
}

function checkNames(suite: Suite, document: ConfigurationDocument): void {
  for (const field of ['workloads', 'policies'] as const) {
    const names = suite[field].map(({ name }) => name);
    const twice = names.findIndex((name, i) => names.indexOf(name) < i);
    if (twice >= 0)
      throw document.error([field, twice, 'name'], `"${names[twice]}" is there already: names must differ`);
  }
  const workloads = new Set(suite.workloads.map(({ name }) => name));
  for (const [i, name] of (suite.run ?? []).entries()) {
    if (!workloads.has(name)) throw document.error(['run', i], `there is no workload "${name}"`);
  }
  if (!suite.policies.some(({ name }) => name === suite.reference)) {
    const names = suite.policies.map(({ name }) => name).join(', ');
    throw document.error(['reference'], `"${suite.reference}" is not among the policies: use one of ${names}`);
  }
}

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
