import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';
import { runEnvoy, shippedEnvoyConfiguration } from '../../dist/tools/demo/envoy-process.js';
import { type Envoy, envoyBinary } from './envoy.ts';

export interface RetryingOptions {
  readonly pickerPort: number;
  readonly servers: readonly { readonly address: string; readonly port: number }[];
  /** Whether it tells the picker which server has answered. */
  readonly tellsServed: boolean;
}

/**
 * An Envoy that knows the servers itself: it goes where the picker says, and tries twice more when a server breaks off.
 */
export async function startRetryingEnvoy({ pickerPort, servers, tellsServed }: RetryingOptions): Promise<Envoy> {
  const [port, adminPort] = await freePorts(2);
  const shipped = parse(readFileSync(shippedEnvoyConfiguration('envoy-fail-open.yaml'), 'utf8'), { merge: true });
  const { listeners, clusters } = shipped.static_resources;
  shipped.admin.address.socket_address.port_value = adminPort;
  listeners[0].address.socket_address = { address: '127.0.0.1', port_value: port };
  const manager = listeners[0].filter_chains[0].filters[0].typed_config;
  const routes = manager.route_config.virtual_hosts[0].routes;
  for (const { route } of routes) {
    if (route?.cluster === 'model_servers') {
      route.retry_policy = { retry_on: 'connect-failure,refused-stream,reset,5xx', num_retries: 2 };
    }
  }
  const named = (wanted: string) => clusters.find(({ name }: { name: string }) => name === wanted);
  const members = (list: RetryingOptions['servers']) =>
    list.map(({ address, port: at }) => ({
      endpoint: { address: { socket_address: { address, port_value: at } } },
    }));
  const cluster = named('model_servers');
  cluster.load_assignment.endpoints[0].lb_endpoints = members(servers);
  if (tellsServed) {
    cluster.load_balancing_policy.policies[0].typed_extension_config.typed_config.selected_host_key = {
      key: 'envoy.lb',
      path: [{ key: 'x-gateway-destination-endpoint-served' }],
    };
  }
  named('ext_proc').load_assignment.endpoints[0].lb_endpoints = members([{ address: '127.0.0.1', port: pickerPort }]);
  const text = stringify(shipped, { aliasDuplicateObjects: false });
  return runEnvoy(envoyBinary!, text, { port: port!, adminPort: adminPort! });
}
