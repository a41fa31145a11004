import type { LoadedConfiguration } from '../../src/config/load.js';
import type { PoolState } from '../../src/contract/endpoint.js';
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import { explain } from '../explain/explanation.js';
import { readSignals } from '../explain/signals-file.js';

/** Request of the trial: what the least of clients sends. */
const PATH = '/v1/chat/completions';
const BODY = '{"model":"lint","messages":[{"role":"user","content":"Hello"}]}';

/** Observations on a configuration together with the endpoints that it would serve. One line each. */
export interface RoutingFindings {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Looks for filters that match none of the endpoints, and decides one chat request over them, idle and with unknown
 * signals, by the same core as the picker.
 */
export function routingFindings(
  configuration: LoadedConfiguration,
  registry: readonly PluginDefinition[],
  pool: PoolState,
  endpointsFile: string,
): RoutingFindings {
  if (pool.endpoints.length === 0) {
    return { errors: [], warnings: [`${endpointsFile} has no endpoints: every request waits for one or is refused`] };
  }
  return {
    errors: refusal(configuration, registry, pool).map((why) => `cannot route a chat request: ${why}`),
    warnings: emptyFilters(configuration, pool).map(
      ([filter, profile]) => `filter "${filter}" of profile "${profile}" matches no endpoint of ${endpointsFile}`,
    ),
  };
}

function emptyFilters({ scheduling }: LoadedConfiguration, { endpoints }: PoolState): [string, string][] {
  const empty = scheduling.masks.map(({ accepts }) => !endpoints.some(({ labels }) => accepts(labels)));
  return scheduling.profiles.flatMap((profile) =>
    profile.operations
      .filter(({ code, parameters }) => code === 'OP_FILTER_MASK' && empty[parameters[0]!])
      .map(({ name }): [string, string] => [name, profile.name]),
  );
}

/** Reason why the request is refused; empty when it is placed. */
function refusal(
  configuration: LoadedConfiguration,
  registry: readonly PluginDefinition[],
  pool: PoolState,
): readonly string[] {
  const explanation = explain({
    configuration,
    registry,
    pool,
    states: readSignals('', '', pool.endpoints),
    headers: new Map([[':path', PATH]]),
    body: Buffer.from(BODY),
    subset: undefined,
    seed: 0n,
  });
  if (explanation.kind === 'rejected') return [explanation.message];
  if (explanation.outcome.kind === 'placed') return [];
  const filters = new Set(
    explanation.profiles
      .filter(({ status }) => status === 'filtered')
      .flatMap(({ endpoints }) => endpoints.flatMap(({ removedBy }) => (removedBy === undefined ? [] : [removedBy]))),
  );
  const by = filters.size === 0 ? '' : ` (${[...filters].map((name) => `"${name}"`).join(', ')} left none)`;
  return [`${explanation.outcome.message}${by}`];
}
