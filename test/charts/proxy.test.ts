import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';
import { envoyBinary, skipReason as envoySkipReason } from '../envoy/envoy.ts';
import { type Backend, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody, eventually } from '../tools/gateway/client.ts';
import { ContainerProcess, pickerOf } from './container-process.ts';
import { find, helmSkipReason, type Manifest, podSpec, render } from './helm.ts';

const reason = helmSkipReason || envoySkipReason;
const modelServers = { matchLabels: { app: 'vllm' } };

/** Configuration of Envoy among the objects of a release. */
function envoyText(manifests: readonly Manifest[]): string {
  return find(manifests, 'ConfigMap', 'rel-proxy').data['envoy.yaml'];
}

describe.skipIf(reason !== '')(`the proxy of the standalone chart${reason}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-proxy-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function write(text: string): string {
    const file = join(folder, 'envoy.yaml');
    writeFileSync(file, text);
    return file;
  }

  test.each([
    ['as a sidecar', {}],
    ['as a sidecar that fails closed', { proxy: { failOpen: false } }],
    ['as a service', { proxy: { mode: 'service' } }],
    ['in front of a picker without TLS', { epp: { flags: { 'secure-serving': false } } }],
    ['without a pool', { inferencePool: { create: false } }],
  ])('the proxy of the standalone chart has a configuration that Envoy takes: %s', async (_, values) => {
    const manifests = await render('standalone', { router: { modelServers, ...values } });
    const { status, stderr } = spawnSync(envoyBinary!, ['--mode', 'validate', '-c', write(envoyText(manifests))], {
      encoding: 'utf8',
    });
    expect(`${status} ${stderr}`).toMatch(/^0 /);
    expect(stderr).not.toContain('Deprecated');
  });

  test('the proxy of the standalone chart listens on the target port of the Service port named http', async () => {
    const extraServicePorts = [{ name: 'http', port: 80, targetPort: 8088 }];
    const manifests = await render('standalone', { router: { modelServers, extraServicePorts } });
    const { listeners } = parse(envoyText(manifests), { merge: true }).static_resources;
    expect(listeners[1].address.socket_address.port_value).toBe(8088);
    expect(podSpec(manifests).containers[1].ports[0]).toEqual({ name: 'http', containerPort: 8088 });
  });

  test('the proxy of the standalone chart reaches the picker by its Service, on its port, when it runs as a service', async () => {
    const values = {
      modelServers,
      clusterDomain: 'corp.local',
      epp: { extProcPort: 9876 },
      proxy: { mode: 'service' },
    };
    const { clusters } = parse(envoyText(await render('standalone', { router: values })), {
      merge: true,
    }).static_resources;
    const picker = clusters.find(({ name }: { name: string }) => name === 'ext_proc');
    expect(picker.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address).toEqual({
      address: 'rel-epp.default.svc.corp.local',
      port_value: 9876,
    });
  });

  test('the proxy of the standalone chart takes fields of its own over those of its preset', async () => {
    const proxy = { image: 'example.org/envoy:1', env: { A: 'b' }, resources: { requests: { cpu: '2' } } };
    const manifests = await render('standalone', { router: { modelServers, proxy } });
    const [, envoy] = podSpec(manifests).containers;
    expect(envoy).toMatchObject({
      image: 'example.org/envoy:1',
      env: [{ name: 'A', value: 'b' }],
      name: 'envoy-proxy',
    });
    expect(envoy.resources.requests).toEqual({ cpu: '2', memory: '512Mi' });
  });

  test('the proxy of the standalone chart as agentgateway asks the picker in plain text and routes by the app label', async () => {
    const values = { modelServers, inferencePool: { create: false }, proxy: { proxyType: 'agentgateway' } };
    const manifests = await render('standalone', { router: values });
    const configuration = parse(find(manifests, 'ConfigMap', 'rel-proxy').data['config.yaml']);
    const [route] = configuration.binds[0].listeners[0].routes;
    expect(configuration.binds[0].port).toBe(8081);
    expect(route.backends[0].service).toEqual({ name: 'default/vllm', port: 8000 });
    expect(route.backends[0].policies.inferenceRouting.endpointPicker.host).toBe('127.0.0.1:9002');
    expect(podSpec(manifests).containers[0].args).toContain('--secure-serving=false');
  });

  describe('in front of the container of the picker, over TLS', () => {
    let backends: Backend[];
    let manifests: Manifest[];
    let picker: ContainerProcess;
    let envoy: ChildProcess;
    let listener: number;
    let readyPort: number;

    beforeAll(async () => {
      backends = await Promise.all(['s0', 's1'].map((name) => startBackend(name)));
      const endpoints = join(folder, 'endpoints.yaml');
      const list = backends.map(({ name, address, port }) => ({ name, address, port: String(port) }));
      writeFileSync(endpoints, stringify({ endpoints: list }));
      const [http, grpc, health, metrics, admin, ready] = await freePorts(6);
      listener = http!;
      readyPort = ready!;
      manifests = await render(
        'standalone',
        values(endpoints, { http: http!, grpc: grpc!, health: health!, metrics: metrics! }),
      );
      picker = new ContainerProcess(pickerOf(manifests));
      // What the cluster gives: the name of the headless Service, and network namespaces with all ports free.
      const text = envoyText(manifests)
        .replaceAll('19000', String(admin))
        .replaceAll('19001', String(ready))
        .replaceAll('rel-model-servers.default.svc.cluster.local', '127.0.0.1');
      const flags = ['-c', write(text), '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warn'];
      envoy = spawn(envoyBinary!, flags, { stdio: 'ignore' });
      await picker.succeeds('readinessProbe');
      await eventually(
        'the proxy is ready',
        async () => (await fetchStatus(`http://127.0.0.1:${ready}/ready`)) === 200,
      );
    }, 60_000);

    /** A release with endpoints from a file, on ports that are free here. */
    function values(endpoints: string, port: { http: number; grpc: number; health: number; metrics: number }) {
      const configuration = stringify({
        apiVersion: 'llm-d.ai/v1alpha1',
        kind: 'EndpointPickerConfig',
        plugins: [{ type: 'file-discovery', parameters: { path: endpoints } }, { type: 'queue-scorer' }],
        schedulingProfiles: [{ name: 'default', plugins: [{ pluginRef: 'queue-scorer' }] }],
        dataLayer: { discovery: { pluginRef: 'file-discovery' } },
      });
      return {
        router: {
          // Without the picker, Envoy goes to the second server.
          modelServers: { ...modelServers, targetPorts: [{ number: backends[1]!.port }] },
          extraServicePorts: [{ name: 'http', port: port.http }],
          epp: {
            flags: { 'grpc-port': port.grpc, 'metrics-port': port.metrics, 'metrics-endpoint-auth': false },
            grpcHealthPort: port.health,
            pluginsConfigFile: 'mine.yaml',
            pluginsCustomConfig: { 'mine.yaml': configuration },
          },
        },
      };
    }

    afterAll(async () => {
      envoy?.kill('SIGKILL');
      await picker?.stop();
      await Promise.all((backends ?? []).map((backend) => backend.stop()));
    });
    afterEach(() => {
      for (const backend of backends) backend.received.splice(0);
    });

    const serve = () => ask(listener, { body: chatBody('hi') });
    const fetchStatus = (url: string) =>
      fetch(url).then(
        ({ status }) => status,
        () => 0,
      );

    test('the proxy in front of the picker’s container sends requests where the picker says', async () => {
      await eventually('the picker has been asked', async () => {
        await serve();
        return backends.some(
          ({ received }) => received.at(-1)?.headers['x-gateway-destination-endpoint'] !== undefined,
        );
      });
      const answer = await serve();
      expect(answer.status).toBe(200);
      const { received } = backends.find(({ name }) => name === answer.headers['x-inference-pod'])!;
      const { address, port } = backends.find(({ name }) => name === answer.headers['x-inference-pod'])!;
      expect(received.at(-1)!.headers['x-gateway-destination-endpoint']).toBe(`${address}:${port}`);
    });

    test('the proxy in front of the picker’s container offers Envoy’s own statistics beside its readiness', async () => {
      expect(await fetchStatus(`http://127.0.0.1:${readyPort}/stats/prometheus`)).toBe(200);
    });

    test('the proxy in front of the picker’s container sends requests to any model server once the picker is gone', async () => {
      await picker.stop('SIGKILL');
      await eventually('requests pass without a picker', async () => (await serve()).status === 200);
      const answer = await serve();
      expect(answer.headers['x-inference-pod']).toBe('s1');
      expect(backends[1]!.received.at(-1)!.headers['x-gateway-destination-endpoint']).toBeUndefined();
    });
  });
});
