import { type ModelServer, type ModelServerOptions, startModelServer } from './model-server.js';

export interface FleetOptions extends Omit<ModelServerOptions, 'name' | 'host' | 'port'> {
  /**
   * `ports`: 127.0.0.1 and a free port each. `addresses`: 127.0.1.1, 127.0.1.2, … on one port, for a picker that
   * distinguishes endpoints by address alone.
   */
  readonly spread?: 'ports' | 'addresses';
  /** Port of all servers with `addresses`; 0 = a free one. */
  readonly port?: number;
}

export interface Fleet {
  readonly servers: readonly ModelServer[];
  /** The servers as the YAML of the picker's file discovery. */
  endpointsYaml(): string;
  stop(): Promise<void>;
}

/** Starts `count` simulated servers, named `server-0` and on, each with its own seed. */
export async function startFleet(count: number, options: FleetOptions = {}): Promise<Fleet> {
  const { spread = 'ports', port = 0, ...common } = options;
  const servers: ModelServer[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (let index = 0; index < count; index++) {
      const place =
        spread === 'ports'
          ? { host: '127.0.0.1', port: 0 }
          : { host: `127.0.1.${index + 1}`, port: servers[0]?.port ?? port };
      const engine = { ...common.engine, seed: (common.engine?.seed ?? 1) + index };
      servers.push(await startModelServer({ ...common, ...place, engine, name: `server-${index}` }));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, endpointsYaml: () => endpointsYaml(servers), stop };
}

/** The file that `file-discovery` reads. */
export function endpointsYaml(servers: readonly { name: string; address: string; port: number }[]): string {
  const lines = servers.map(({ name, address, port }) => `- {name: ${name}, address: "${address}", port: "${port}"}\n`);
  return `endpoints:\n${lines.join('')}`;
}
