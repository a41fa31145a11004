import { resolve } from 'node:path';
import { builtinPlugins } from '../../../src/config/builtin-plugins.js';
import { loadConfiguration } from '../../../src/config/load.js';
import { readPlainText, TEXT_BYTES_MAX } from '../../../src/runtime/plain-file.js';
import type { PickerConfiguration } from '../fleet/picker-configuration.js';
import { type Baseline, baselines, weightedProfile } from './policies.js';
import type { FleetText, SuitePolicy } from './schema.js';

/** A policy ready to run. */
export interface RunnablePolicy {
  readonly configuration: PickerConfiguration;
  /** The fleet as described to this policy. */
  readonly seen: (fleet: FleetText) => FleetText;
}

/** Scrape interval (ms) of policies with current signals. */
const AT_ONCE_MS = 10;

/**
 * Configuration of a policy of a suite for a workload; a baseline learns nothing unless it says so.
 * @param folder where configurations lie
 * @throws ConfigurationError with the place of the mistake, Error for a baseline that there is not
 */
export function policyOf(policy: SuitePolicy, workload: string, folder: string): RunnablePolicy {
  const options = { allowExperimental: true, registry: builtinPlugins };
  if (policy.configuration !== undefined) {
    const configuration = loadConfiguration({ file: resolve(folder, policy.configuration) }, options);
    return { configuration, seen: policy.kvEvents === true ? withEvents : unchanged };
  }
  const { configuration: text, kvEvents, omniscient, ablation, admission } = ownBaseline(policy, workload);
  const { scheduling, adaptation, flowControl, saturationDetector } = loadConfiguration({ text }, options);
  const configuration = { scheduling, adaptation, flowControl, saturationDetector, omniscient, ablation, admission };
  if (omniscient === true) return { configuration, seen: atOnce };
  return { configuration, seen: (policy.kvEvents ?? kvEvents) === true ? withEvents : unchanged };
}

/** Text of all that decides a policy's picks on a workload: equal texts, equal decisions. */
export function policyText(policy: SuitePolicy, workload: string, folder: string): string {
  if (policy.configuration !== undefined) {
    return `${readPlainText(resolve(folder, policy.configuration), TEXT_BYTES_MAX)} ${policy.kvEvents}`;
  }
  const { name, configuration } = ownBaseline(policy, workload);
  return `${name} ${configuration} ${policy.kvEvents}`;
}

function ownBaseline(policy: SuitePolicy, workload: string): Baseline {
  const weights = policy.weightsByWorkload?.[workload] ?? policy.weights;
  if (weights !== undefined) return { name: 'weights', doc: '', configuration: weightedProfile(weights) };
  const baseline = baselines.find(({ name }) => name === policy.name);
  if (baseline !== undefined) return baseline;
  const known = baselines.map(({ name }) => name).join(', ');
  throw new Error(`there is no baseline "${policy.name}": give a configuration, weights, or one of ${known}`);
}

function unchanged(fleet: FleetText): FleetText {
  return fleet;
}

function withEvents(fleet: FleetText): FleetText {
  return { ...fleet, kvEvents: fleet.kvEvents ?? { delayMs: 0, loss: 0 } };
}

function atOnce(fleet: FleetText): FleetText {
  return {
    ...fleet,
    kvEvents: { delayMs: 0, loss: 0 },
    metrics: { scrapeMs: AT_ONCE_MS, jitter: 0, lagMs: 0, failures: 0 },
    pickers: { replicas: 1, sharing: 'none', sharingDelayMs: 0, clockSkewMs: 0 },
  };
}
