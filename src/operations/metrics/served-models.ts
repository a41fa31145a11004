import type { Endpoint } from '../../contract/endpoint.js';
import type { ServedModel } from '../../contract/endpoint-facts.js';
import type { MetricsExposition } from '../telemetry/exposition.js';

/** Bound on the series of the page; further ones are left out. */
const SERIES_MAX = 1_000;

/** Shows the models of the endpoints, when their lists are fetched. */
export function addServedModels(
  exposition: MetricsExposition,
  { models }: { readonly models: ReadonlyMap<string, readonly ServedModel[]> | undefined },
  endpoints: () => readonly Endpoint[],
): void {
  if (models === undefined) return;
  exposition.addGauge({
    name: 'pointsman_endpoint_model',
    help: `1 for every model that an endpoint serves; at most ${SERIES_MAX} series.`,
    labels: ['endpoint_name', 'namespace', 'model', 'parent'],
    read: () =>
      endpoints()
        .flatMap(({ id, name, namespace }) =>
          (models.get(id) ?? []).map((model) => ({
            labels: { endpoint_name: name, namespace, model: model.id, parent: model.parent },
            value: 1,
          })),
        )
        .slice(0, SERIES_MAX),
  });
}
