import type { Endpoint } from './endpoint.js';

/**
 * Names of the endpoints of a pool as labels of metrics: with the namespace in front where another endpoint of the pool
 * has the same name, so that no two share a series.
 */
export function endpointLabels(
  endpoints: Iterable<Pick<Endpoint, 'id' | 'name'>>,
): (endpoint: Pick<Endpoint, 'id' | 'name'>) => string {
  const ids = new Map<string, string>();
  const shared = new Set<string>();
  for (const { id, name } of endpoints) {
    if ((ids.get(name) ?? id) !== id) shared.add(name);
    ids.set(name, id);
  }
  return ({ id, name }) => (shared.has(name) ? id : name);
}
