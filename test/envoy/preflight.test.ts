import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';
import { runEnvoy } from '../../dist/tools/demo/envoy-process.js';
import type { Verdict } from '../../dist/tools/preflight/verdict.js';
import { PROGRAM, Setting, startPicker } from '../picker/serving.ts';
import { envoyBinary, skipReason } from './envoy.ts';

// biome-ignore lint/suspicious/noExplicitAny: a configuration of Envoy is changed at any place
type Tree = any;

const SHIPPED = fileURLToPath(new URL('../../deploy/envoy/envoy.yaml', import.meta.url));

interface Report {
  readonly probes: readonly Verdict[];
  readonly envoy: readonly { readonly severity: string; readonly setting: string }[];
}

/** The shipped configuration on other ports, with one change. */
async function configuration(ports: { port: number; admin: number; picker: number }, change: (parts: Tree) => void) {
  const root: Tree = JSON.parse(JSON.stringify(parse(await readFile(SHIPPED, 'utf8'), { merge: true })));
  const { listeners, clusters } = root.static_resources;
  root.admin.address.socket_address.port_value = ports.admin;
  listeners[0].address.socket_address = { address: '127.0.0.1', port_value: ports.port };
  clusters[1].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value = ports.picker;
  const manager = listeners[0].filter_chains[0].filters[0].typed_config;
  const processor = manager.http_filters[1].typed_config;
  const { route } = manager.route_config.virtual_hosts[0].routes[0];
  change({ listener: listeners[0], processor, route, engines: clusters[0], picker: clusters[1] });
  return stringify(root, { aliasDuplicateObjects: false });
}

describe.skipIf(skipReason !== '')(`pointsman preflight --gateway with a real Envoy${skipReason}`, () => {
  let setting: Setting;
  let picker: Awaited<ReturnType<typeof startPicker>>;

  beforeAll(async () => {
    setting = await Setting.create([], 'plugins:\n- {type: queue-scorer}\n');
    picker = await startPicker(setting.flags);
  });
  afterAll(async () => {
    await picker?.picker.stop(0);
    await setting?.remove();
  });

  /** Runs the preflight through an Envoy whose configuration is changed. */
  async function preflight(
    change: (parts: Tree) => void,
    ...flags: string[]
  ): Promise<{ code: number; report: Report }> {
    if (envoyBinary === undefined)
      throw new Error('POINTSMAN_REQUIRE_ENVOY=1, but no Envoy: run scripts/install-envoy.sh');
    const [port, adminPort] = await freePorts(2);
    const { grpcPort, metricsPort } = picker.ports;
    const text = await configuration({ port: port!, admin: adminPort!, picker: grpcPort }, change);
    const envoy = await runEnvoy(envoyBinary, text, { port: port!, adminPort: adminPort! });
    try {
      const at = (other: number) => `http://127.0.0.1:${other}`;
      const argv = ['preflight', '--json', '--seconds=3', '--concurrency=40', `--gateway=${at(port!)}`];
      const more = [`--admin=${at(adminPort!)}`, `--picker=${at(metricsPort)}`];
      const file = `--endpoints-file=${join(setting.folder, 'endpoints.yaml')}`;
      return await new Promise((resolve) => {
        execFile(process.execPath, [PROGRAM, ...argv, ...more, file, ...flags], (error, stdout, stderr) => {
          if (stdout === '') throw new Error(stderr);
          resolve({ code: error === null ? 0 : Number(error.code), report: JSON.parse(stdout) });
        });
      });
    } finally {
      await envoy.stop();
    }
  }

  /** Failed probes with the settings that limit them. */
  const limits = ({ probes }: Report) =>
    Object.fromEntries(probes.filter(({ ok }) => !ok).map(({ probe, settings }) => [probe, settings]));
  const read = ({ envoy }: Report) =>
    envoy.filter(({ severity }) => severity !== 'note').map(({ severity, setting }) => `${severity} ${setting}`);

  test('the shipped configuration passes every probe, and the endpoints file is put back', async () => {
    const before = await readFile(join(setting.folder, 'endpoints.yaml'), 'utf8');
    const { code, report } = await preflight(() => {});
    expect({ code, limits: limits(report), read: read(report) }).toEqual({ code: 0, limits: {}, read: [] });
    expect(report.probes.map(({ probe }) => probe)).toContain('40 at once');
    expect(await readFile(join(setting.folder, 'endpoints.yaml'), 'utf8')).toBe(before);
  });

  test('a list of destinations over ORIGINAL_DST by header is an error of the configuration that names it', async () => {
    const file = join(setting.folder, 'lists.yaml');
    await writeFile(file, 'plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}]\n');
    const { code, report } = await preflight(() => {}, `--config-file=${file}`);
    expect([code, read(report)]).toEqual([1, ['error use_http_header']]);
  });

  test('a tiny max_requests of the picker is named by the requests at once', async () => {
    const { code, report } = await preflight(({ picker: cluster }) => {
      cluster.circuit_breakers.thresholds[0].max_requests = 4;
    });
    expect(code).toBe(1);
    expect(limits(report)['40 at once']).toEqual(['max_requests']);
  });

  test('a short timeout of the route is named by silence and by a long answer', async () => {
    const { code, report } = await preflight(({ route }) => {
      route.timeout = '2s';
    });
    expect(code).toBe(1);
    expect(limits(report)).toEqual({ silence: ['timeout'], 'long answer': ['timeout'] });
  });

  test('a buffer filter is named by a large body', async () => {
    const { code, report } = await preflight(({ listener }) => {
      const buffer = 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer';
      listener.filter_chains[0].filters[0].typed_config.http_filters.unshift({
        name: 'envoy.filters.http.buffer',
        typed_config: { '@type': buffer, max_request_bytes: 65_536 },
      });
    });
    expect(code).toBe(1);
    expect(limits(report).bodies).toEqual(['max_request_bytes']);
  });

  test('a small buffer of the listener and failing open are found by reading, because no request fails', async () => {
    const { code, report } = await preflight(({ listener, processor }) => {
      listener.per_connection_buffer_limit_bytes = 1_024;
      processor.failure_mode_allow = true;
    });
    expect(read(report)).toEqual(['warning failure_mode_allow', 'warning per_connection_buffer_limit_bytes']);
    expect({ code, limits: limits(report) }).toEqual({ code: 0, limits: {} });
  });

  test('a wrong processing mode is named by the probe that it breaks', async () => {
    const { code, report } = await preflight(({ processor }) => {
      processor.processing_mode.response_body_mode = 'BUFFERED';
    });
    expect(code).toBe(1);
    expect(limits(report).stream).toContain('response_body_mode');
  });

  test('retries are named by a failing model server', async () => {
    const { code, report } = await preflight(({ route }) => {
      route.retry_policy = { retry_on: '5xx', num_retries: 2 };
    });
    expect(code).toBe(1);
    expect(limits(report)).toEqual({ failures: ['retry_policy'] });
  });
});
