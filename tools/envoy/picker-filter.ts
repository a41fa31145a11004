import type { EnvoyConfiguration } from './configuration.js';
import { type EnvoyFinding, finding } from './finding.js';
import { type EnvoyGateway, nameOf } from './gateway.js';
import { child, isSet, items, numberOf, type Setting, textOf } from './setting.js';

/**
 * Marks of a picker in the name of a cluster, in an authority and in a host name: Pointsman, the EPP of llm-d, endpoint
 * pickers of others.
 */
const PICKER_NAME = /pointsman|endpoint[-_]?picker|(?:^|[^a-z])(?:epp|picker)(?:[^a-z]|$)/i;
/** Port of a picker without a flag, here and in llm-d-router. */
const PICKER_PORT = 9002;
/** Namespace of the metadata in which a picker names the destination. */
const DESTINATION_NAMESPACE = 'envoy.lb';

/** The external processors of a configuration: pickers, and others such as a guard or a router by model. */
export interface Processors {
  readonly pickers: readonly EnvoyGateway[];
  readonly others: readonly EnvoyGateway[];
}

/**
 * Tells pickers from other external processors. A single one is the picker. Of several those are, whose cluster is
 * named; without names those that have a mark of a picker: name, port or metadata.
 * @param named clusters of pickers; empty = look for marks
 * @throws {Error} one line, when a name is not found, or when none of several has a mark
 */
export function processorsOf(
  gateways: readonly EnvoyGateway[],
  { clusters }: EnvoyConfiguration,
  named: readonly string[],
): Processors {
  const known = new Set(gateways.flatMap(servicesOf));
  const unknown = named.find((name) => !known.has(name));
  if (unknown !== undefined) {
    throw new Error(`--picker-cluster: no ext_proc filter asks ${unknown}; asked are ${[...known].join(', ')}`);
  }
  if (known.size <= 1) return { pickers: gateways, others: [] };
  const marked = (gateway: EnvoyGateway) => hasMark(gateway, clusters);
  const isPicker =
    named.length === 0 ? marked : (gateway: EnvoyGateway) => servicesOf(gateway).some((name) => named.includes(name));
  const { pickers = [], others = [] } = Object.groupBy(gateways, (one) => (isPicker(one) ? 'pickers' : 'others'));
  if (pickers.length === 0) {
    throw new Error(
      `which external processor is the picker? Name its cluster with --picker-cluster: ${[...known].join(', ')}`,
    );
  }
  return { pickers, others };
}

/** A note about an external processor that is not looked at. */
export function otherFinding(gateway: EnvoyGateway): EnvoyFinding {
  const asked = servicesOf(gateway).join(', ');
  const limits =
    `another external processor (${asked}), which is not looked at; every request takes its time and meets its ` +
    'failures';
  return finding(
    'note',
    'ext_proc',
    gateway.processor,
    limits,
    'name its cluster with --picker-cluster if it is a picker',
  );
}

/** Clusters, or addresses, that a processor asks: its own and those of routes. */
function servicesOf({ processor, routes }: EnvoyGateway): readonly string[] {
  const places = [processor, ...routes.flatMap(({ overrides }) => overrides ?? [])];
  const names = places.flatMap((place) => [
    child(place, 'grpc_service', 'envoy_grpc', 'cluster_name'),
    child(place, 'grpc_service', 'google_grpc', 'target_uri'),
    child(place, 'http_service', 'http_service', 'http_uri', 'cluster'),
  ]);
  return [...new Set(names.map(textOf).filter((name) => name !== undefined))];
}

function hasMark(gateway: EnvoyGateway, clusters: readonly Setting[]): boolean {
  const { processor } = gateway;
  const services = servicesOf(gateway);
  const authority = textOf(child(processor, 'grpc_service', 'envoy_grpc', 'authority')) ?? '';
  const received = items(child(processor, 'metadata_options', 'receiving_namespaces', 'untyped')).map(textOf);
  const asked = clusters.filter((cluster) => services.includes(textOf(nameOf(cluster)) ?? ''));
  const addresses = asked.flatMap(addressesOf);
  return (
    [...services, authority, ...addresses.map(({ host }) => host)].some((name) => PICKER_NAME.test(name)) ||
    addresses.some(({ port }) => port === PICKER_PORT) ||
    received.includes(DESTINATION_NAMESPACE)
  );
}

function addressesOf(cluster: Setting): readonly { readonly host: string; readonly port: number | undefined }[] {
  return items(child(cluster, 'load_assignment', 'endpoints'))
    .flatMap((locality) => items(child(locality, 'lb_endpoints')))
    .map((endpoint) => child(endpoint, 'endpoint', 'address', 'socket_address'))
    .filter(isSet)
    .map((address) => ({
      host: textOf(child(address, 'address')) ?? '',
      port: numberOf(child(address, 'port_value')),
    }));
}
