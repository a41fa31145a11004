import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OWN_PICKER, type PickerProcess, startPickerProcess } from '../../../dist/cli/demo/picker-process.js';
import { freePorts } from '../../../dist/cli/port.js';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../../dist/config/default-configuration.js';
import type { TransportName } from '../../../dist/ingress/transport.js';
import { endpointsYaml } from '../../../dist/simulator/server/fleet.js';
import type { SoakServer } from './model-server.ts';

/** More than twice as many as a soak opens: a connection beside others has half of them. */
const STREAMS_MAX = 24_000;
/** For the picker to be ready, on a machine that has much else to do. */
const READY_MS_MAX = 60_000;

/** Starts a picker with the default profile. @param stops gets what ends it and removes its files */
export async function startPicker(
  servers: readonly SoakServer[],
  transport: TransportName,
  stops: (() => Promise<unknown>)[],
): Promise<PickerProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-soak-'));
  stops.push(() => rm(folder, { recursive: true, force: true }));
  const endpointsFile = join(folder, 'endpoints.yaml');
  await writeFile(endpointsFile, endpointsYaml(servers));
  const configFile = join(folder, 'configuration.yaml');
  const discovery = `- type: file-discovery\n  parameters: {path: ${JSON.stringify(endpointsFile)}}\n`;
  const head = `apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n${discovery}`;
  const tail = `${DEFAULT_PLUGINS}${DEFAULT_PROFILES}dataLayer:\n  discovery: {pluginRef: file-discovery}\n`;
  await writeFile(configFile, head + tail);
  const [grpcPort, healthPort, metricsPort] = (await freePorts(3)) as [number, number, number];
  const picker = await startPickerProcess({
    command: [...OWN_PICKER, `--transport=${transport}`, `--max-streams=${STREAMS_MAX}`],
    ...{ configFile, grpcPort, healthPort, metricsPort, endpoints: servers.length, readyTimeoutMs: READY_MS_MAX },
  });
  stops.push(() => picker.stop('SIGKILL'));
  return picker;
}
