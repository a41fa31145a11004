import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../dist/src/config/default-configuration.js';
import { freePorts } from '../../dist/src/serve/port.js';
import { OWN_PICKER, type PickerProcess, startPickerProcess } from '../../dist/tools/demo/picker-process.js';
import { endpointsYaml } from '../../dist/tools/simulator/server/fleet.js';
import { TRANSPORT_FLAGS } from '../picker/serving.ts';
import { type Configuration, type Envoy, startEnvoy } from './envoy.ts';

/** What stands behind Envoy: simulated servers or the test's own backends. */
export interface Server {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  stop(): Promise<void>;
}

export interface HouseOptions {
  readonly configuration?: Configuration;
  /** Starts another Envoy than that of the configuration. */
  readonly startEnvoy?: (pickerPort: number) => Promise<Envoy>;
  /** `plugins` and `schedulingProfiles` as YAML; left out = the default profile. */
  readonly profile?: string;
  /** `objectives` of the endpoints file as YAML. */
  readonly objectives?: string;
  /** Unix domain socket between the two, in the place of the picker's port. */
  readonly socket?: string;
  /** Command of the picker; absent = that of the environment, or this package's. */
  readonly picker?: readonly string[] | undefined;
  /** More flags for the picker. */
  readonly flags?: readonly string[];
}

/** A picker and an Envoy in front of servers. */
export interface TestBed<S extends Server> {
  readonly envoy: Envoy;
  readonly servers: readonly S[];
  picker: PickerProcess;
  /** From now on the pool has these servers and no others. */
  setPool(servers: readonly Server[]): Promise<void>;
  /** Ends the picker at once, as a crash does. */
  killPicker(): Promise<void>;
  /** Starts it again on the same ports. */
  restartPicker(): Promise<void>;
  stop(): Promise<void>;
}

const DEFAULT_PROFILE = `plugins:\n${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`;

/** POINTSMAN_TEST_PICKER starts another picker that takes the same flags, to compare with. */
const COMMAND = process.env.POINTSMAN_TEST_PICKER?.split(' ') ?? OWN_PICKER;

/** Starts a picker and an Envoy in front of `servers`. The bed owns them all. */
export async function startTestBed<S extends Server>(
  servers: readonly S[],
  options: HouseOptions = {},
): Promise<TestBed<S>> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-bed-'));
  const endpointsFile = join(folder, 'endpoints.yaml');
  const setPool = (pool: readonly Server[]) => writePool(endpointsFile, pool, options.objectives ?? '');
  await setPool(servers);
  const configFile = await writeConfiguration(folder, endpointsFile, options.profile ?? DEFAULT_PROFILE);
  const [grpcPort, healthPort, metricsPort] = await freePorts(3);
  const start = () =>
    startPickerProcess({
      command: [...(options.picker ?? [...COMMAND, '--lame-duck=0s']), ...TRANSPORT_FLAGS, ...(options.flags ?? [])],
      configFile,
      grpcPort: grpcPort!,
      healthPort: healthPort!,
      metricsPort: metricsPort!,
      endpoints: servers.length,
    });
  const picker = await start();
  const ports = servers.map((server) => server.port);
  const shipped = (port: number) => startEnvoy(options.configuration ?? 'envoy.yaml', port, ports, options.socket);
  const envoy = await (options.startEnvoy ?? shipped)(grpcPort!);
  const bed: TestBed<S> = {
    envoy,
    servers,
    picker,
    setPool,
    killPicker: () => bed.picker.stop('SIGKILL'),
    restartPicker: async () => {
      bed.picker = await start();
    },
    stop: async () => {
      await envoy.stop();
      await bed.picker.stop('SIGKILL');
      await Promise.all(servers.map((server) => server.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
  return bed;
}

async function writePool(endpointsFile: string, servers: readonly Server[], objectives: string): Promise<void> {
  await writeFile(endpointsFile, `${servers.length === 0 ? 'endpoints: []\n' : endpointsYaml(servers)}${objectives}`);
}

async function writeConfiguration(folder: string, endpointsFile: string, profile: string): Promise<string> {
  const configFile = join(folder, 'configuration.yaml');
  const discovery = `- type: file-discovery\n  parameters: {path: ${JSON.stringify(endpointsFile)}, watchFile: true}\n`;
  const head = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
  const tail = 'dataLayer:\n  discovery: {pluginRef: file-discovery}\n';
  await writeFile(configFile, `${head}${profile.replace('plugins:\n', `plugins:\n${discovery}`)}${tail}`);
  return configFile;
}

/** Sum of a metric's series on the picker's page; 0 when it has none. */
export async function pickerMetric(picker: PickerProcess, name: string): Promise<number> {
  const page = await (await fetch(picker.metricsUrl)).text();
  const series = page.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'));
  return [...series].reduce((sum, [, value]) => sum + Number(value), 0);
}
