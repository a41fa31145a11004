import { isScorer, type Operation, readsOf } from '../core/operations.js';
import type { Path } from './document.js';
import type { IdleContext } from './idle-settings.js';

/**
 * Profiles in which a held prompt outweighs all requests in flight: requests with one beginning go to the endpoint that
 * had it first, while others are idle. Queues and KV caches of engines do not prevent it: an engine queues only once it
 * runs as many requests as it can. One line each.
 */
export function sharedPrefixNotes({ document, config, configuration }: IdleContext): readonly string[] {
  const { mode } = configuration.adaptation;
  if (mode === 'auto' || mode === 'always') return [];
  return configuration.scheduling.profiles.flatMap(({ name, operations }, index) => {
    if (!picksByScore(operations)) return [];
    const prefix = operations.filter(({ code, weight }) => code === 'OP_SCORE_PREFIX' && weight > 0);
    const load = operations.filter((operation) => seesRequestsInFlight(operation) && operation.weight > 0);
    if (sumOfWeights(prefix) <= sumOfWeights(load)) return [];
    const path: Path = config.schedulingProfiles.length === 0 ? ['plugins'] : ['schedulingProfiles', index];
    const names = prefix.map((scorer) => `"${scorer.name}"`).join(' and ');
    const text =
      `${names} of profile "${name}" ${prefix.length === 1 ? 'outweighs' : 'outweigh'} requests in flight: requests ` +
      'that share one system prompt go to one endpoint while others idle; marginal-cost-scorer, in the place of the ' +
      'scorers of load and cache, spreads them (pointsman demo --shared-prompt)';
    return [document.warning(path, text)];
  });
}

function picksByScore(operations: readonly Operation[]): boolean {
  return operations.some(({ code }) => code === 'OP_PICK_MAX_SCORE');
}

/** Whether a scorer yields to an endpoint with fewer requests from this picker. */
function seesRequestsInFlight(operation: Operation): boolean {
  if (!isScorer(operation.code)) return false;
  const reads = readsOf(operation);
  // The prediction of the queue reads them too, and is 0 until an engine queues.
  if (reads.includes('waiting') && operation.code !== 'OP_SCORE_MARGINAL_COST') return false;
  return reads.some((name) => name === 'inflight' || name === 'inflightTokens' || name === 'activeBlocks');
}

function sumOfWeights(operations: readonly Operation[]): number {
  return operations.reduce((sum, { weight }) => sum + weight, 0);
}
