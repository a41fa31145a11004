import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../src/config/default-configuration.js';
import { freePorts } from '../../src/serve/port.js';
import { startGateway } from '../gateway/gateway.js';
import type { EngineOptions } from '../simulator/server/engine.js';
import { type Fleet, startFleet } from '../simulator/server/fleet.js';
import { startEnvoyProcess } from './envoy-process.js';
import { type PickerProcess, startPickerProcess } from './picker-process.js';

/** The one model that the simulated servers serve. */
export const MODEL = 'demo-model';

export interface HouseOptions {
  readonly servers: number;
  readonly engine: Partial<EngineOptions>;
  /** Ports; 0 = a free one. */
  readonly port: number;
  readonly grpcPort: number;
  readonly metricsPort: number;
  /** Program and leading arguments of the picker; undefined = this package's. */
  readonly picker: readonly string[] | undefined;
  /** Path of an Envoy that stands in front; undefined = the embedded gateway does. */
  readonly envoy?: string | undefined;
  /** Sections of the configuration besides the default profile, and entries of `plugins`. YAML. */
  readonly settings?: string;
  readonly plugins?: string;
  /** Entries of `plugins` that take the place of the default profile and its plugins. YAML. */
  readonly scorers?: string;
  /** `objectives` of the endpoints file. YAML. */
  readonly objectives?: string;
}

/** Simulated model servers, a picker and a proxy. */
export interface DemoStack {
  readonly fleet: Fleet;
  readonly picker: PickerProcess;
  /** Address of the proxy. */
  readonly url: string;
  /** Ends everything, the last started first. */
  stop(): Promise<void>;
}

/** Starts servers, picker and proxy. Rejects when a part does not start, after it has stopped all others. */
export async function startDemoStack(options: HouseOptions): Promise<DemoStack> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const fleet = await startFleet(options.servers, { model: MODEL, engine: options.engine });
    stops.push(() => fleet.stop());
    const picker = await startPicker(options, fleet, stops);
    const url = await startProxy(options, picker, stops);
    return { fleet, picker, url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startPicker(
  options: HouseOptions,
  fleet: Fleet,
  stops: (() => Promise<unknown>)[],
): Promise<PickerProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-demo-'));
  stops.push(() => rm(folder, { recursive: true, force: true }));
  const configFile = await writeConfiguration(folder, fleet, options);
  const [grpcPort, healthPort, metricsPort] = await freePorts(3);
  const picker = await startPickerProcess({
    command: options.picker,
    configFile,
    grpcPort: options.grpcPort || grpcPort!,
    healthPort: healthPort!,
    metricsPort: options.metricsPort || metricsPort!,
    endpoints: options.servers,
  });
  stops.push(() => picker.stop());
  return picker;
}

/** Envoy or the embedded gateway; resolves to its URL. */
async function startProxy(
  { envoy, port }: HouseOptions,
  picker: PickerProcess,
  stops: (() => Promise<unknown>)[],
): Promise<string> {
  const proxy =
    envoy === undefined
      ? await startGateway({ port, picker: { host: '127.0.0.1', port: picker.grpcPort } })
      : await startEnvoyProcess({ binary: envoy, configuration: 'envoy.yaml', port, pickerPort: picker.grpcPort });
  stops.push(() => proxy.stop());
  return `http://127.0.0.1:${proxy.port}`;
}

/** The default profile with discovery from a file; returns the path of the configuration. */
async function writeConfiguration(
  folder: string,
  fleet: Fleet,
  { settings = '', plugins = '', scorers, objectives = '' }: HouseOptions,
): Promise<string> {
  const endpointsFile = join(folder, 'endpoints.yaml');
  const configFile = join(folder, 'configuration.yaml');
  await writeFile(endpointsFile, `${fleet.endpointsYaml()}${objectives}`);
  await writeFile(
    configFile,
    `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
${settings}plugins:
${plugins}- type: file-discovery
  parameters: {path: ${JSON.stringify(endpointsFile)}, watchFile: true}
${scorers ?? `${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`}dataLayer:
  discovery: {pluginRef: file-discovery}
`,
  );
  return configFile;
}
