import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';
import { runEnvoy, shippedEnvoyConfiguration } from '../../dist/tools/demo/envoy-process.js';
import { type Envoy, envoyBinary } from '../envoy/envoy.ts';

export interface PickersEnvoy extends Envoy {
  /** Port of the route that tries another server when one breaks off before its answer. */
  readonly retryingPort: number;
}

const endpointOf = (address: string, port: number) => ({
  endpoint: { address: { socket_address: { address, port_value: port } } },
});

/**
 * Tries again on another server, as a gateway does that knows the servers itself. This one knows addresses at which
 * nothing listens for most of the time, too, so it tries more often than there are such addresses.
 */
const RETRIES = {
  retry_on: 'connect-failure,refused-stream,reset',
  num_retries: 30,
  retry_host_predicate: [
    {
      name: 'envoy.retry_host_predicates.previous_hosts',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
      },
    },
  ],
  host_selection_retry_max_attempts: 8,
};

/**
 * An Envoy with the shipped configuration in front of two pickers, of which the ready ones are asked (a Service with
 * readiness probes), and with a second route by `override_host` to servers that it knows.
 */
export async function startEnvoyOfPickers(
  pickerPorts: readonly number[],
  servers: readonly { readonly address: string; readonly port: number }[],
): Promise<PickersEnvoy> {
  const [port, retryingPort, adminPort] = await freePorts(3);
  const shipped = shippedDocument('envoy.yaml');
  const overriding = shippedDocument('envoy-fail-open.yaml').static_resources.clusters.find(
    ({ name }: { name: string }) => name === 'model_servers',
  );
  const { listeners, clusters } = shipped.static_resources;
  shipped.admin.address.socket_address.port_value = adminPort;
  const retrying = structuredClone(listeners[0]);
  retrying.name = 'retrying';
  for (const [listener, at] of [
    [listeners[0], port],
    [retrying, retryingPort],
  ]) {
    listener.address.socket_address = { address: '127.0.0.1', port_value: at };
  }
  const manager = retrying.filter_chains[0].filters[0].typed_config;
  Object.assign(manager.route_config.virtual_hosts[0].routes[0].route, { cluster: 'known', retry_policy: RETRIES });
  listeners.push(retrying);
  overriding.name = 'known';
  overriding.load_assignment = {
    cluster_name: 'known',
    endpoints: [{ lb_endpoints: servers.map(({ address, port: at }) => endpointOf(address, at)) }],
  };
  clusters.push(overriding);
  const pickers = clusters.find(({ name }: { name: string }) => name === 'ext_proc');
  pickers.load_assignment.endpoints[0].lb_endpoints = pickerPorts.map((at) => endpointOf('127.0.0.1', at));
  const [check] = pickers.health_checks;
  Object.assign(check, { timeout: '1s', interval: '0.5s', no_traffic_interval: '0.5s' });
  Object.assign(check, { unhealthy_threshold: 1, healthy_threshold: 1 });
  const text = stringify(shipped, { aliasDuplicateObjects: false });
  const envoy = await runEnvoy(envoyBinary!, text, { port: port!, adminPort: adminPort! });
  return { ...envoy, retryingPort: retryingPort! };
}

function shippedDocument(name: 'envoy.yaml' | 'envoy-fail-open.yaml') {
  return parse(readFileSync(shippedEnvoyConfiguration(name), 'utf8'), { merge: true });
}
