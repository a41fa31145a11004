import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { envoyConfiguration, readEnvoyText } from '../../dist/tools/envoy/configuration.js';
import type { EnvoyFinding, PickerNeeds } from '../../dist/tools/envoy/finding.js';
import { envoyFindings } from '../../dist/tools/envoy/findings.js';
import { needsOf } from '../../dist/tools/envoy/picker-needs.js';
import { pathText } from '../../dist/tools/envoy/setting.js';
import { load } from '../config/configuration-text.ts';
import { pointsman } from '../serve/program.ts';

// biome-ignore lint/suspicious/noExplicitAny: a configuration of Envoy is changed at any place
type Tree = any;

const shipped = (name: string) => fileURLToPath(new URL(`../../deploy/envoy/${name}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'pointsman-envoy-lint-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function tree(name = 'envoy.yaml'): Tree {
  return JSON.parse(JSON.stringify(parse(readFileSync(shipped(name), 'utf8'), { merge: true })));
}

/** The parts of the shipped configuration that the tests change. */
function partsOf(root: Tree) {
  const { listeners, clusters } = root.static_resources;
  const manager = listeners[0].filter_chains[0].filters[0].typed_config;
  return {
    listener: listeners[0],
    manager,
    processor: manager.http_filters[1].typed_config,
    route: manager.route_config.virtual_hosts[0].routes[0],
    engines: clusters[0],
    picker: clusters[1],
  };
}

function changed(change: (parts: ReturnType<typeof partsOf>) => void): Tree {
  const root = tree();
  change(partsOf(root));
  return root;
}

function found(root: Tree, needs?: PickerNeeds): readonly EnvoyFinding[] {
  return envoyFindings(envoyConfiguration(root), needs);
}

/** A guard in front of the picker, which is asked for headers only. */
function withGuard(change: (parts: ReturnType<typeof partsOf>) => void = () => {}): Tree {
  return changed((parts) => {
    change(parts);
    parts.manager.http_filters.splice(1, 0, {
      name: 'guard',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor',
        grpc_service: { envoy_grpc: { cluster_name: 'guard' } },
        processing_mode: { request_header_mode: 'SEND', request_body_mode: 'NONE', response_header_mode: 'SKIP' },
      },
    });
  });
}

/** Settings that are no notes, with their severity. */
function named(root: Tree, needs?: PickerNeeds): readonly string[] {
  return found(root, needs)
    .filter(({ severity }) => severity !== 'note')
    .map(({ severity, setting }) => `${severity} ${setting}`);
}

function written(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

describe('the shipped configurations of Envoy', () => {
  it.each(['envoy.yaml', 'envoy-socket.yaml', 'envoy-answer-heads.yaml'])('%s has no error and no warning', (name) => {
    expect(named(tree(name))).toEqual([]);
  });

  it('envoy-fail-open.yaml is warned of for failing open, and for nothing else', () => {
    expect(named(tree('envoy-fail-open.yaml'))).toEqual(['warning failure_mode_allow']);
  });

  it('envoy-headers-only.yaml is warned of, unless the picker reads no prompt', () => {
    expect(named(tree('envoy-headers-only.yaml'))).toEqual(['warning request_body_mode']);
    const needs = { queueWaitMs: 0, requestBody: false, answerBody: false };
    expect(named(tree('envoy-headers-only.yaml'), needs)).toEqual([]);
  });
});

describe('a list of destinations', () => {
  const needs = { queueWaitMs: 0, requestBody: true, answerBody: true };

  it('a list of destinations is an error over ORIGINAL_DST by header, which takes one address', () => {
    expect(named(tree(), { ...needs, destinations: 2 })).toEqual(['error use_http_header']);
    expect(named(tree(), { ...needs, destinations: 1 })).toEqual([]);
  });

  it('a list of destinations is no error over override_host', () => {
    expect(named(tree('envoy-fail-open.yaml'), { ...needs, destinations: 2 })).toEqual(['warning failure_mode_allow']);
  });

  it('a list of destinations follows from the largest picker of the configuration', () => {
    const config = written(
      'two.yaml',
      'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- type: ' +
        'queue-scorer\n- type: max-score-picker\n' +
        '  parameters: {maxNumOfEndpoints: 2}\nschedulingProfiles:\n- name: default\n  plugins:\n  - ' +
        'pluginRef: queue-scorer\n' +
        '  - pluginRef: max-score-picker\n',
    );
    const { stdout, status } = pointsman('lint', config, '--envoy', shipped('envoy.yaml'));
    expect(stdout).toContain('the picker names up to 2 destinations, and ORIGINAL_DST takes one address');
    expect(status).toBe(1);
  });
});

/** Clusters as a control plane gives them: hosts by EDS, the destination by override_host. */
function ofControlPlane(change: (parts: ReturnType<typeof partsOf>) => void = () => {}): Tree {
  return changed((parts) => {
    const { manager, engines, picker } = parts;
    manager.http_filters.shift();
    delete engines.original_dst_lb_config;
    Object.assign(engines, { type: 'EDS', eds_cluster_config: { eds_config: { ads: {} } } });
    engines.lb_policy = 'ROUND_ROBIN';
    const source = { header: 'x-gateway-destination-endpoint' };
    const typed = {
      '@type': 'type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost',
      override_host_sources: [source],
    };
    engines.load_balancing_policy = { policies: [{ typed_extension_config: { name: 'o', typed_config: typed } }] };
    delete picker.health_checks;
    delete picker.load_assignment;
    picker.type = 'EDS';
    change(parts);
    // The processor is the first filter now.
    parts.manager.http_filters[0].typed_config = parts.processor;
  });
}

describe('a configuration of a control plane', () => {
  it("a configuration of a control plane has no error about a client's own header and no warning about health checks", () => {
    expect(named(ofControlPlane())).toEqual([]);
  });

  it("a configuration of a control plane that fails open has a note about a client's own header", () => {
    const open = ofControlPlane(({ processor }) => {
      processor.failure_mode_allow = true;
    });
    expect(named(open)).toEqual(['warning failure_mode_allow']);
    expect(found(open).filter(({ setting }) => setting === 'header_mutation')).toMatchObject([{ severity: 'note' }]);
  });

  it('a configuration of a control plane keeps the warning where a cluster is not in the file', () => {
    const unknown = ofControlPlane(({ route }) => {
      route.route.cluster = 'elsewhere';
    });
    expect(named(unknown)).toContain('warning header_mutation');
  });
});

type Change = (parts: ReturnType<typeof partsOf>) => void;

const CASES: readonly (readonly [string, string, Change])[] = [
  [
    'a message timeout that is left out',
    'warning message_timeout',
    ({ processor }) => delete processor.message_timeout,
  ],
  [
    'a message timeout that is left out with no bodies of requests',
    'error message_timeout',
    ({ processor }) => {
      delete processor.message_timeout;
      processor.processing_mode.request_body_mode = 'NONE';
    },
  ],
  [
    'a message timeout below the default wait',
    'warning message_timeout',
    ({ processor }) => {
      processor.message_timeout = '30s';
    },
  ],
  [
    'request headers that are skipped',
    'error request_header_mode',
    ({ processor }) => {
      processor.processing_mode.request_header_mode = 'SKIP';
    },
  ],
  [
    'no request bodies',
    'warning request_body_mode',
    ({ processor }) => {
      processor.processing_mode.request_body_mode = 'NONE';
    },
  ],
  [
    'streamed request bodies',
    'error request_body_mode',
    ({ processor }) => {
      processor.processing_mode.request_body_mode = 'STREAMED';
    },
  ],
  [
    'buffered request bodies',
    'warning request_body_mode',
    ({ processor }) => {
      processor.processing_mode.request_body_mode = 'BUFFERED';
    },
  ],
  [
    'buffered answers',
    'error response_body_mode',
    ({ processor }) => {
      processor.processing_mode.response_body_mode = 'BUFFERED';
    },
  ],
  [
    'request trailers that are skipped',
    'error request_trailer_mode',
    ({ processor }) => {
      processor.processing_mode.request_trailer_mode = 'SKIP';
    },
  ],
  [
    'answer trailers that are left out',
    'error response_trailer_mode',
    ({ processor }) => delete processor.processing_mode.response_trailer_mode,
  ],
  [
    'failing open',
    'warning failure_mode_allow',
    ({ processor }) => {
      processor.failure_mode_allow = true;
    },
  ],
  [
    'header mutations that are refused',
    'error mutation_rules',
    ({ processor }) => {
      processor.mutation_rules = { disallow_all: true };
    },
  ],
  [
    'header mutations that match a pattern',
    'error mutation_rules',
    ({ processor }) => {
      processor.mutation_rules = { disallow_expression: { regex: 'x-gateway-.*' } };
    },
  ],
  [
    'header mutations that other names may have',
    'error mutation_rules',
    ({ processor }) => {
      processor.mutation_rules = { allow_expression: { regex: 'x-own-.*' } };
    },
  ],
  [
    'an observing processor',
    'error observability_mode',
    ({ processor }) => {
      processor.observability_mode = true;
    },
  ],
  [
    'refusals that are ignored',
    'error disable_immediate_response',
    ({ processor }) => {
      processor.disable_immediate_response = true;
    },
  ],
  [
    'a small bound on messages',
    'error max_receive_message_length',
    ({ processor }) => {
      processor.grpc_service.envoy_grpc.max_receive_message_length = 4096;
    },
  ],
  [
    'a small buffer',
    'warning per_connection_buffer_limit_bytes',
    ({ listener }) => {
      listener.per_connection_buffer_limit_bytes = 1024;
    },
  ],
  [
    'a buffer above the messages of the picker',
    'warning per_connection_buffer_limit_bytes',
    ({ listener }) => {
      listener.per_connection_buffer_limit_bytes = 8 << 20;
    },
  ],
  [
    'a short request timeout',
    'warning request_timeout',
    ({ manager }) => {
      manager.request_timeout = '5s';
    },
  ],
  [
    'a bound on the life of a request',
    'error max_stream_duration',
    ({ manager }) => {
      manager.common_http_protocol_options.max_stream_duration = '60s';
    },
  ],
  [
    'few streams of a client',
    'warning max_concurrent_streams',
    ({ manager }) => {
      manager.http2_protocol_options.max_concurrent_streams = 10;
    },
  ],
  [
    'a small window',
    'warning initial_stream_window_size',
    ({ manager }) => {
      manager.http2_protocol_options.initial_stream_window_size = 65535;
    },
  ],
  [
    'a destination of the client',
    'warning header_mutation',
    ({ manager }) => {
      manager.http_filters.shift();
    },
  ],
  [
    'a buffer filter',
    'error max_request_bytes',
    ({ manager }) => {
      manager.http_filters.unshift({
        name: 'buffer',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
          max_request_bytes: 65536,
        },
      });
    },
  ],
  ['a route timeout that is left out', 'error timeout', ({ route }) => delete route.route.timeout],
  [
    'a route timeout of two minutes',
    'warning timeout',
    ({ route }) => {
      route.route.timeout = '120s';
    },
  ],
  [
    'a short idle timeout',
    'error idle_timeout',
    ({ route }) => {
      route.route.idle_timeout = '10s';
    },
  ],
  ['the default idle timeout', 'warning stream_idle_timeout', ({ route }) => delete route.route.idle_timeout],
  [
    'retries',
    'warning retry_policy',
    ({ route }) => {
      route.route.retry_policy = { retry_on: 'connect-failure,reset,5xx' };
    },
  ],
  [
    'a short try',
    'error per_try_timeout',
    ({ route }) => {
      route.route.retry_policy = { retry_on: 'connect-failure', per_try_timeout: '5s' };
    },
  ],
  [
    'a destination that the route removes',
    'error request_headers_to_remove',
    ({ route }) => {
      route.request_headers_to_remove = ['X-Gateway-Destination-Endpoint'];
    },
  ],
  [
    'a route without the processor',
    'warning disabled',
    ({ route }) => {
      route.typed_per_filter_config = {
        'envoy.filters.http.ext_proc': {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute',
          disabled: true,
        },
      };
    },
  ],
  [
    'a picker over HTTP/1',
    'error http2_protocol_options',
    ({ picker }) => delete picker.typed_extension_protocol_options,
  ],
  ['a picker without health checks', 'warning health_checks', ({ picker }) => delete picker.health_checks],
  [
    'engines that are balanced',
    'error lb_policy',
    ({ engines }) => {
      engines.type = 'STRICT_DNS';
      engines.lb_policy = 'ROUND_ROBIN';
    },
  ],
  [
    'a destination of another header',
    'error original_dst_lb_config',
    ({ engines }) => {
      delete engines.original_dst_lb_config.http_header_name;
    },
  ],
];

describe('lint --envoy', () => {
  it.each(CASES)('lint --envoy names %s: %s', (_what, expected, change) => {
    const alone = named(changed(change));
    expect(alone).toContain(expected);
    expect(
      alone.filter(
        (one) => one !== expected && !/_trailer_mode|buffer_limit_bytes$|^warning request_body_mode/.test(one),
      ),
    ).toEqual([]);
  });

  it.each(['engines', 'picker'] as const)('lint --envoy names the default circuit breakers of the %s', (which) => {
    const root = changed((parts) => delete parts[which].circuit_breakers);
    const bounds = ['warning max_connections', 'warning max_pending_requests', 'warning max_requests'];
    expect(named(root)).toEqual(which === 'picker' ? bounds.slice(1) : bounds);
  });

  it('lint --envoy calls a tiny max_requests an error, with path, value and cluster', () => {
    const root = changed(({ picker }) => {
      picker.circuit_breakers.thresholds[0].max_requests = 2;
    });
    const [first] = found(root);
    expect(first).toMatchObject({ severity: 'error', setting: 'max_requests' });
    expect(first!.limits).toMatch(/^2 of the picker/);
    expect(pathText(first!.path)).toBe('static_resources.clusters[1].circuit_breakers.thresholds[0].max_requests');
  });

  it('lint --envoy says where the picker knows the proxy by its address alone, which has a share beside others', () => {
    const shares = (root: Tree) => found(root).filter(({ setting }) => setting === 'transport_socket');
    const [note] = shares(tree());
    expect(note).toMatchObject({ severity: 'note', remedy: expect.stringContaining('--trusted-proxies') });
    expect(pathText(note!.path)).toBe('static_resources.clusters[1].transport_socket');
    expect(shares(tree('envoy-socket.yaml'))).toEqual([]);
    const withCertificate = changed(({ picker }) => {
      const certificate = { certificate_chain: { filename: 'proxy.crt' }, private_key: { filename: 'proxy.key' } };
      const common = { tls_certificates: [certificate] };
      picker.transport_socket = { name: 'tls', typed_config: { common_tls_context: common } };
    });
    expect(shares(withCertificate)).toEqual([]);
  });

  it('lint --envoy reads the override of a route in the place of the processor', () => {
    const root = changed(({ processor, route }) => {
      const right = processor.processing_mode;
      processor.processing_mode = { request_header_mode: 'SKIP' };
      route.typed_per_filter_config = {
        'envoy.filters.http.ext_proc': {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute',
          overrides: { processing_mode: right },
        },
      };
    });
    expect(named(root)).toEqual([]);
  });

  it('lint --envoy reads camel case as Envoy does', () => {
    const root = changed(({ processor }) => {
      processor.messageTimeout = '0.2s';
      delete processor.message_timeout;
    });
    expect(found(root)[0]).toMatchObject({ setting: 'message_timeout', severity: 'warning' });
  });

  it('lint --envoy measures timeouts by the waits of the picker when its configuration is given', () => {
    const root = changed(({ processor }) => {
      processor.message_timeout = '100s';
    });
    expect(named(root, { queueWaitMs: 300_000, requestBody: true, answerBody: true })).toContain(
      'warning message_timeout',
    );
    expect(named(root, { queueWaitMs: 0, requestBody: true, answerBody: true })).toEqual([]);
  });

  it('lint --envoy reads a configuration dump with its routes by name', () => {
    const root = changed(({ picker }) => {
      picker.circuit_breakers.thresholds[0].max_requests = 5;
    });
    const { listeners, clusters } = root.static_resources;
    const manager = listeners[0].filter_chains[0].filters[0].typed_config;
    const table = { ...manager.route_config, name: 'table' };
    delete manager.route_config;
    manager.rds = { route_config_name: 'table' };
    table.virtual_hosts[0].routes[0].route.timeout = '15s';
    const type = (name: string) => ({ '@type': `type.googleapis.com/envoy.admin.v3.${name}` });
    const dump = {
      configs: [
        { ...type('BootstrapConfigDump'), bootstrap: { static_resources: { listeners: [], clusters: [] } } },
        {
          ...type('ClustersConfigDump'),
          static_clusters: [{ cluster: clusters[0] }],
          dynamic_active_clusters: [{ cluster: clusters[1] }],
        },
        {
          ...type('ListenersConfigDump'),
          dynamic_listeners: [{ name: 'gateway', active_state: { listener: listeners[0] } }],
        },
        { ...type('RoutesConfigDump'), dynamic_route_configs: [{ route_config: table }] },
      ],
    };
    expect(named(dump)).toEqual(['error timeout', 'error max_requests']);
    expect(pathText(found(dump)[0]!.path)).toMatch(
      /^configs\[3\]\.dynamic_route_configs\[0\]\.route_config\.virtual_hosts/,
    );
  });

  it('lint --envoy looks at the filter of the picker, and names another external processor as such', () => {
    expect(named(withGuard())).toEqual([]);
    expect(found(withGuard()).filter(({ setting }) => setting === 'ext_proc')).toEqual([
      expect.objectContaining({ severity: 'note', limits: expect.stringContaining('(guard)') }),
    ]);
  });

  it('lint --envoy looks at the clusters that --picker-cluster names, and at no others', () => {
    const root = withGuard();
    const settings = (...names: string[]) =>
      envoyFindings(envoyConfiguration(root), undefined, names).map(({ setting, path }) => [setting, path.at(-2)]);
    expect(settings('guard')).toContainEqual(['ext_proc', 2]);
    expect(settings('guard').map(([setting]) => setting)).toContain('request_body_mode');
    expect(settings('ext_proc', 'guard').map(([setting]) => setting)).not.toContain('ext_proc');
    expect(() => settings('none')).toThrow('--picker-cluster: no ext_proc filter asks none; asked are guard, ext_proc');
  });

  it('lint --envoy asks for the cluster of the picker where no external processor has a mark of one', () => {
    const root = withGuard(({ processor, picker }) => {
      delete processor.metadata_options;
      delete processor.grpc_service.envoy_grpc.authority;
      picker.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value = 7000;
    });
    expect(() => found(root)).toThrow('Name its cluster with --picker-cluster: guard, ext_proc');
    const { status, stderr } = pointsman('lint', '--envoy', written('two.yaml', stringify(root)));
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^pointsman: --envoy: .*two\.yaml: which external/)]);
    const told = pointsman('lint', '--envoy', join(folder, 'two.yaml'), '--picker-cluster', 'ext_proc');
    expect(told.stdout).toContain('another external processor (guard)');
  });

  it('lint --envoy says which clusters are not in the file', () => {
    const root = tree();
    root.static_resources.clusters.shift();
    expect(found(root)).toContainEqual(
      expect.objectContaining({ severity: 'note', limits: 'the cluster model_servers is not in the file' }),
    );
  });

  it.each([
    ['a list', '[1, 2]', 'neither static_resources nor configs at its top'],
    ['no filter', 'static_resources: {listeners: []}', 'no listener has an ext_proc filter'],
    ['no YAML', 'a: [', 'not valid YAML or JSON'],
  ])('lint --envoy refuses a file with %s in one line', (_what, text, message) => {
    const file = written('bad.yaml', text);
    const { status, stderr } = pointsman('lint', '--envoy', file);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^pointsman: --envoy: [^\n]+\n$/);
    expect(stderr).toContain(message);
  });

  it('lint --envoy refuses a file that does not exist', () => {
    expect(pointsman('lint', '--envoy=/nowhere.yaml').stderr).toMatch(
      /^pointsman: --envoy: \/nowhere\.yaml: [^\n]+\n$/,
    );
  });

  it('the line and column of a finding are those of the setting in the file, through aliases', () => {
    const text = readFileSync(shipped('envoy.yaml'), 'utf8').replaceAll('max_requests: 40000', 'max_requests: 4');
    const configuration = readEnvoyText(text);
    const places = envoyFindings(configuration)
      .filter(({ setting }) => setting === 'max_requests')
      .map(({ path }) => configuration.placeOf(path)!.line);
    const line = text.split('\n').findIndex((one) => one.includes('max_requests: 4')) + 1;
    expect(places).toEqual([line, line]);
  });

  it('the command prints lines for editors and counts, and fails for errors alone', () => {
    const good = pointsman('lint', '--envoy', shipped('envoy.yaml'));
    expect(good.status).toBe(0);
    expect(good.stdout).toMatch(/envoy\.yaml: 0 errors, 0 warnings, 2 notes\n$/);
    const root = changed(({ route }) => {
      route.route.timeout = '5s';
    });
    const bad = written('short.yaml', stringify(root, { aliasDuplicateObjects: false }));
    const { status, stdout } = pointsman('lint', '--envoy', bad);
    expect(status).toBe(1);
    expect(stdout).toMatch(/short\.yaml:\d+:\d+: error: timeout: 5 s: longer answers/);
  });

  it('the command takes warnings for errors with --strict', () => {
    expect(pointsman('lint', '--strict', '--envoy', shipped('envoy-fail-open.yaml')).status).toBe(1);
  });

  it('the command checks the configuration of the picker beside that of Envoy', () => {
    const own = fileURLToPath(new URL('../../examples/headers-only.yaml', import.meta.url));
    const { status, stdout } = pointsman('lint', own, '--envoy', shipped('envoy-headers-only.yaml'), '--json');
    expect(status).toBe(0);
    const report = JSON.parse(stdout);
    expect(report.profiles.length).toBeGreaterThan(0);
    expect(report.envoy.filter(({ severity }: EnvoyFinding) => severity !== 'note')).toEqual([]);
  });
});

describe('what a configuration asks of the proxy', () => {
  it.each([
    ['{}', 60_000],
    ['{priorityBands: [{priority: -1, defaultRequestTTL: 30m}]}', 1_800_000],
    ['{defaultNegativePriorityBand: {defaultRequestTTL: 0s}}', Infinity],
  ])('the longest wait of a configuration is that of its most patient band: %s', (section, expected) => {
    const loaded = load(`featureGates: [flowControl]\nflowControl: ${section}`);
    expect(needsOf(loaded).queueWaitMs).toBe(expected);
  });
});
