import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';
import { runEnvoy, shippedEnvoyConfiguration } from '../../dist/tools/demo/envoy-process.js';
import { type Envoy, envoyBinary } from './envoy.ts';

/** Starts Envoy with the shipped configuration and other processing modes. @param modes fields of `processing_mode` */
export async function startEnvoyWithModes(modes: Readonly<Record<string, string>>, pickerPort: number): Promise<Envoy> {
  const [port, adminPort] = await freePorts(2);
  const shipped = parse(readFileSync(shippedEnvoyConfiguration('envoy.yaml'), 'utf8'), { merge: true });
  const { listeners, clusters } = shipped.static_resources;
  shipped.admin.address.socket_address.port_value = adminPort;
  listeners[0].address.socket_address = { address: '127.0.0.1', port_value: port };
  const filters = listeners[0].filter_chains[0].filters[0].typed_config.http_filters;
  const processor = filters.find(({ name }: { name: string }) => name.includes('ext_proc')).typed_config;
  processor.processing_mode = { ...processor.processing_mode, ...modes };
  const picker = clusters.find(({ name }: { name: string }) => name === 'ext_proc');
  picker.load_assignment.endpoints[0].lb_endpoints = [
    { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: pickerPort } } } },
  ];
  const text = stringify(shipped, { aliasDuplicateObjects: false });
  return runEnvoy(envoyBinary!, text, { port: port!, adminPort: adminPort! });
}
