import { readFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../../dist/src/serve/port.js';
import { type EnvoyProcess, runEnvoy, shippedEnvoyConfiguration } from '../../../dist/tools/demo/envoy-process.js';

/** Receive windows of Envoy towards the picker. */
export interface Windows {
  readonly streamBytes: number;
  readonly connectionBytes: number;
}

/** The smallest that Envoy takes. */
export const SMALLEST_WINDOWS: Windows = { streamBytes: 65_535, connectionBytes: 65_535 };
/** What Envoy's best practices for edge proxies say; an answer that is read late leaves room for other streams. */
export const EDGE_WINDOWS: Windows = { streamBytes: 65_536, connectionBytes: 1_048_576 };
/**
 * Write buffer of the connection to the picker: above its 8 MiB of window. Whenever the buffer is full and whenever it
 * is empty again, Envoy tells every stream of the connection: with 1 MiB, Envoy's own, and 8,000 streams that was 250
 * times for each request, and all of its time.
 */
const PICKER_BUFFER_BYTES = 32 * 1024 * 1024;
const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

interface Cluster {
  readonly name: string;
  typed_extension_protocol_options?: Record<string, object>;
  per_connection_buffer_limit_bytes?: number;
  load_assignment?: { endpoints: [{ lb_endpoints: object[] }] };
}

interface Document {
  readonly admin: { readonly address: { socket_address: { port_value: number } } };
  readonly static_resources: {
    readonly listeners: [{ address: object }];
    readonly clusters: readonly Cluster[];
  };
}

/**
 * The shipped configuration with other windows towards the picker, and trailers of HTTP/1 model servers passed on.
 * @param windows undefined = Envoy's own
 */
export async function startProxy(
  binary: string,
  pickerPort: number,
  windows: Windows | undefined,
): Promise<EnvoyProcess> {
  const [port, adminPort] = (await freePorts(2)) as [number, number];
  const text = await readFile(shippedEnvoyConfiguration('envoy.yaml'), 'utf8');
  const document = parse(text, { merge: true }) as Document;
  document.admin.address.socket_address.port_value = adminPort;
  document.static_resources.listeners[0].address = address(port);
  for (const cluster of document.static_resources.clusters) {
    if (cluster.name === 'ext_proc') {
      cluster.per_connection_buffer_limit_bytes = PICKER_BUFFER_BYTES;
      cluster.load_assignment!.endpoints[0].lb_endpoints = [{ endpoint: { address: address(pickerPort) } }];
      cluster.typed_extension_protocol_options = options({
        http2_protocol_options: { max_concurrent_streams: 40_000, ...windowSettings(windows) },
      });
    } else {
      cluster.typed_extension_protocol_options = options({ http_protocol_options: { enable_trailers: true } });
    }
  }
  return runEnvoy(binary, stringify(document, { aliasDuplicateObjects: false }), { port, adminPort });
}

function windowSettings(windows: Windows | undefined): object {
  if (windows === undefined) return {};
  return {
    initial_stream_window_size: windows.streamBytes,
    initial_connection_window_size: windows.connectionBytes,
  };
}

function address(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}

function options(config: object): Record<string, object> {
  return { [HTTP_OPTIONS]: { '@type': `type.googleapis.com/${HTTP_OPTIONS}`, explicit_http_config: config } };
}
