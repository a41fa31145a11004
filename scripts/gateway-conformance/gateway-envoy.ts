// Configuration of a plain Envoy in the place of Istio's proxy: istiod gives it everything but its readiness.
import { HOST_ADDRESS } from './isolation.ts';

const ADMIN_PORT = 15000;
const READINESS_PORT = 15021;

/** What istiod asks of a proxy about its pod. */
export interface GatewayPod {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  readonly serviceAccount: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** @param istiodPort of istiod's discovery without TLS */
export function gatewayEnvoy(pod: GatewayPod, istiodPort: number): object {
  const ads = { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' };
  return {
    node: nodeOf(pod),
    admin: { address: socket('127.0.0.1', ADMIN_PORT) },
    dynamic_resources: {
      ads_config: {
        api_type: 'GRPC',
        transport_api_version: 'V3',
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: 'istiod' } }],
      },
      cds_config: ads,
      lds_config: ads,
    },
    static_resources: {
      clusters: [
        { ...cluster('istiod', HOST_ADDRESS, istiodPort), typed_extension_protocol_options: HTTP2 },
        cluster('admin', '127.0.0.1', ADMIN_PORT),
      ],
      listeners: [readinessListener()],
    },
  };
}

function nodeOf({ name, namespace, address, serviceAccount, labels }: GatewayPod): object {
  return {
    id: `router~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    cluster: name,
    metadata: {
      NAME: name,
      NAMESPACE: namespace,
      LABELS: labels,
      INSTANCE_IPS: address,
      SERVICE_ACCOUNT: serviceAccount,
      CLUSTER_ID: 'Kubernetes',
      MESH_ID: 'cluster.local',
      ISTIO_VERSION: '1.31.0',
    },
  };
}

const socket = (address: string, port: number) => ({ socket_address: { address, port_value: port } });

const HTTP2 = {
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    explicit_http_config: { http2_protocol_options: {} },
  },
};

function cluster(name: string, address: string, port: number): object {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: socket(address, port) } }] }];
  return { name, type: 'STATIC', connect_timeout: '5s', load_assignment: { cluster_name: name, endpoints } };
}

/** `/healthz/ready`, where the pod's probe asks: ready once istiod's listeners are there. */
function readinessListener(): object {
  const route = { match: { path: '/healthz/ready' }, route: { cluster: 'admin', prefix_rewrite: '/ready' } };
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'readiness',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [
      {
        name: 'router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  const filters = [{ name: 'http', typed_config: manager }];
  return { name: 'readiness', address: socket('0.0.0.0', READINESS_PORT), filter_chains: [{ filters }] };
}
