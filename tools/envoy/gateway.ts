import type { EnvoyConfiguration } from './configuration.js';
import { child, entries, isOn, isSet, items, type Setting, textOf, typeOf } from './setting.js';

/** A listener whose requests an external processor sees. */
export interface EnvoyGateway {
  readonly listener: Setting;
  /** The HTTP connection manager. */
  readonly manager: Setting;
  /** HTTP filters before the processor, in their order. */
  readonly before: readonly Setting[];
  /** HTTP filters behind it. */
  readonly behind: readonly Setting[];
  readonly processor: Setting;
  readonly routes: readonly EnvoyRoute[];
}

/** A route to clusters, with the virtual host and the table that it stands in. */
export interface EnvoyRoute {
  readonly route: Setting;
  /** `route.route`: cluster, timeouts, retries. */
  readonly action: Setting;
  readonly host: Setting;
  readonly table: Setting;
  readonly clusters: readonly string[];
  /** Whether the processor is turned off here. */
  readonly disabled: boolean;
  /** Differences from the processor's own settings. */
  readonly overrides: Setting | undefined;
}

/** Every place where Envoy asks an external processor. */
export function gatewaysOf(configuration: EnvoyConfiguration): readonly EnvoyGateway[] {
  return configuration.listeners.flatMap((listener) =>
    managersOf(listener).flatMap((manager) => {
      const filters = items(child(manager, 'http_filters'));
      return filters.flatMap((filter, index): EnvoyGateway[] => {
        const processor = configOf(filter);
        if (typeOf(processor) !== 'ExternalProcessor') return [];
        const routes = routesOf(manager, configuration, textOf(child(filter, 'name')) ?? '');
        return [
          { listener, manager, processor, routes, before: filters.slice(0, index), behind: filters.slice(index + 1) },
        ];
      });
    }),
  );
}

/** Configuration of an HTTP filter. */
export function configOf(filter: Setting): Setting {
  return child(filter, 'typed_config');
}

function managersOf(listener: Setting): readonly Setting[] {
  const chains = [...items(child(listener, 'filter_chains')), child(listener, 'default_filter_chain')];
  return chains
    .flatMap((chain) => items(child(chain, 'filters')))
    .map(configOf)
    .filter((config) => typeOf(config) === 'HttpConnectionManager');
}

function routesOf(manager: Setting, { routeTables }: EnvoyConfiguration, filter: string): readonly EnvoyRoute[] {
  const own = child(manager, 'route_config');
  const name = textOf(child(manager, 'rds', 'route_config_name'));
  const tables = isSet(own) ? [own] : routeTables.filter((table) => textOf(child(table, 'name')) === name);
  return tables.flatMap((table) =>
    items(child(table, 'virtual_hosts')).flatMap((host) =>
      items(child(host, 'routes')).flatMap((route): EnvoyRoute[] => {
        const action = child(route, 'route');
        if (!isSet(action)) return [];
        const perRoute = [route, host, table].map((level) => perFilter(level, filter)).find(isSet);
        return [
          {
            ...{ route, action, host, table, clusters: clustersOf(action) },
            disabled: perRoute !== undefined && (isOn(child(perRoute, 'disabled')) || wraps(perRoute, 'disabled')),
            overrides: perRoute === undefined ? undefined : present(child(unwrapped(perRoute), 'overrides')),
          },
        ];
      }),
    ),
  );
}

/** Settings of a filter at a route, virtual host or table; the most specific one counts. */
function perFilter(level: Setting, filter: string): Setting {
  const found = entries(child(level, 'typed_per_filter_config')).find(([name]) => name === filter);
  return found?.[1] ?? { path: [...level.path, 'typed_per_filter_config'], value: undefined };
}

/** A `FilterConfig` around the settings of a filter. */
function unwrapped(perRoute: Setting): Setting {
  return typeOf(perRoute) === 'FilterConfig' ? child(perRoute, 'config') : perRoute;
}

function wraps(perRoute: Setting, name: string): boolean {
  return isOn(child(unwrapped(perRoute), name));
}

function present(setting: Setting): Setting | undefined {
  return isSet(setting) ? setting : undefined;
}

function clustersOf(action: Setting): readonly string[] {
  const names = [child(action, 'cluster'), ...items(child(action, 'weighted_clusters', 'clusters')).map(nameOf)];
  return names.map(textOf).filter((name) => name !== undefined);
}

/** The name of a cluster or of a weighted cluster. */
export function nameOf(setting: Setting): Setting {
  return child(setting, 'name');
}
