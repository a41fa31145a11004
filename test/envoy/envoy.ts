import { spawnSync } from 'node:child_process';
import {
  type EnvoyConfiguration,
  type EnvoyProcess,
  findEnvoy,
  shippedEnvoyConfiguration,
  startEnvoyProcess,
} from '../../dist/tools/demo/envoy-process.js';

/** The Envoy to test with; undefined = none was found. */
export const envoyBinary = findEnvoy();

/** Why the Envoy tests are skipped; the empty string when they run. With POINTSMAN_REQUIRE_ENVOY=1 they never are. */
export const skipReason =
  envoyBinary === undefined && process.env.POINTSMAN_REQUIRE_ENVOY !== '1'
    ? ' (skipped: no Envoy found; run scripts/install-envoy.sh or set ENVOY_BIN)'
    : '';

export type Configuration = EnvoyConfiguration;
export type Envoy = EnvoyProcess;

/** What `envoy --mode validate` says. */
export function validate(configuration: Configuration): { status: number | null; output: string } {
  const file = shippedEnvoyConfiguration(configuration);
  const { status, stdout, stderr } = spawnSync(envoy(), ['--mode', 'validate', '-c', file], { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

/** Starts the shipped configuration on free ports, in front of this picker and (failing open) these servers. */
export function startEnvoy(
  configuration: Configuration,
  pickerPort: number,
  serverPorts: readonly number[] = [],
  pickerSocket?: string | undefined,
): Promise<Envoy> {
  return startEnvoyProcess({ binary: envoy(), configuration, port: 0, pickerPort, pickerSocket, serverPorts });
}

function envoy(): string {
  if (envoyBinary === undefined)
    throw new Error('POINTSMAN_REQUIRE_ENVOY=1, but no Envoy: run scripts/install-envoy.sh');
  return envoyBinary;
}
