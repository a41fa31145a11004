import { ConfigurationDocument } from '../../../src/config/document.js';
import { ConfigurationError } from '../../../src/config/error.js';
import { validate } from '../../../src/config/validation.js';
import { readPlainText, TEXT_BYTES_MAX } from '../../../src/runtime/plain-file.js';
import { readProblem } from '../../../src/runtime/read-problem.js';
import { fleetSchema, type Suite, suiteSchema } from './schema.js';

/**
 * Reads and checks a suite.
 * @throws ConfigurationError one line with place, field, what is wrong and what would be right
 */
export function loadSuite(path: string): Suite {
  let text: string;
  try {
    text = readPlainText(path, TEXT_BYTES_MAX);
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
