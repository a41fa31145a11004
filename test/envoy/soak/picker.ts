import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../../dist/src/config/default-configuration.js';
import type { TransportName } from '../../../dist/src/contract/listen-settings.js';
import { freePorts } from '../../../dist/src/serve/port.js';
import { OWN_PICKER, type PickerProcess, startPickerProcess } from '../../../dist/tools/demo/picker-process.js';
import { endpointsYaml } from '../../../dist/tools/simulator/server/fleet.js';
import { meanBytes, type Traffic } from './clients.ts';
import type { SoakServer } from './model-server.ts';

/** More than twice as many as a soak opens: a connection beside others has half of them. */
const STREAMS_MAX = 24_000;
/** `--max-buffered-bytes` without traffic that needs more. */
const BUFFERED_BYTES_MIN = 512 * 1024 * 1024;
/** Memory that a body takes at most, as a multiple of its bytes: the last of its slots of 64 KB is partly filled. */
const SLOT_SHARE = 1.5;
/** One connection, and Envoy with one thread has no other, may hold half of the bytes. */
const CONNECTION_SHARE = 0.5;
/** For the picker to be ready, on a machine that has much else to do. */
const READY_MS_MAX = 60_000;

/**
 * Bytes that the picker has to be allowed to hold for this traffic: proxies and model servers that stand still leave
 * all bodies with it. Its default is for a few hundred long prompts at a time, and refuses more with a 503.
 */
export function bufferedBytesFor({ sizes, streams }: Pick<Traffic, 'sizes' | 'streams'>): number {
  return Math.max(BUFFERED_BYTES_MIN, Math.ceil((SLOT_SHARE * streams * meanBytes(sizes)) / CONNECTION_SHARE));
}

/** Starts a picker with the default profile. @param stops gets what ends it and removes its files */
export async function startPicker(
  servers: readonly SoakServer[],
  transport: TransportName,
  stops: (() => Promise<unknown>)[],
  bufferedBytesMax = BUFFERED_BYTES_MIN,
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
    command: [
      ...OWN_PICKER,
      '--lame-duck=0s',
      `--transport=${transport}`,
      `--max-streams=${STREAMS_MAX}`,
      `--max-buffered-bytes=${bufferedBytesMax}`,
    ],
    ...{ configFile, grpcPort, healthPort, metricsPort, endpoints: servers.length, readyTimeoutMs: READY_MS_MAX },
  });
  stops.push(() => picker.stop('SIGKILL'));
  return picker;
}
