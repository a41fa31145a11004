import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import type { Chart } from './value-sets.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

/** Release and namespace that are rendered, unless a test says otherwise. */
export const RELEASE = 'rel';
export const NAMESPACE = 'default';
/** Version of Kubernetes that the charts are rendered for. */
export const KUBERNETES_VERSION = '1.36.3';

/** The Helm to test with; undefined = none was found. */
const helmBinary = findHelm();

function findHelm(): string | undefined {
  const candidates = [process.env.HELM_BIN, join(root, '.tools/helm/helm')];
  return candidates.find((path) => path !== undefined && existsSync(path));
}

/** Why tests with Helm are skipped; the empty string when they run. With POINTSMAN_REQUIRE_HELM=1 they never are. */
export const helmSkipReason =
  helmBinary === undefined && process.env.POINTSMAN_REQUIRE_HELM !== '1'
    ? ' (skipped: no Helm found; run scripts/install-helm.sh or set HELM_BIN)'
    : '';

/** A Kubernetes object as a chart renders it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: the tests read fields of every kind
  readonly [field: string]: any;
}

export function chartFolder(chart: Chart): string {
  return join(root, 'deploy/charts', `pointsman-${chart}`);
}

export function helm(...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  if (helmBinary === undefined) throw new Error('POINTSMAN_REQUIRE_HELM=1, but no Helm: run scripts/install-helm.sh');
  return run(helmBinary, args, { maxBuffer: 64 * 1024 * 1024 });
}

/** Values as arguments of Helm. */
export function valueArguments(values: object): string[] {
  return Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
}

/** Objects that a chart renders, ours or one in another folder. @throws what Helm says */
export async function render(
  chart: Chart | { readonly folder: string },
  values: object,
  namespace = NAMESPACE,
): Promise<Manifest[]> {
  const folder = typeof chart === 'string' ? chartFolder(chart) : chart.folder;
  const version = ['--kube-version', KUBERNETES_VERSION, '--namespace', namespace];
  const { stdout } = await helm('template', RELEASE, folder, ...version, ...valueArguments(values));
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest): manifest is Manifest => manifest !== null);
}

/** The line with which Helm refuses these values. @throws when it does not */
export async function refusal(chart: Chart, values: object): Promise<string> {
  const manifests = await render(chart, values).catch((error: { stderr: string }) => error.stderr);
  if (typeof manifests !== 'string') throw new Error('the values were not refused');
  return manifests.replace(/^Error: /, '').split('\n')[0]!;
}

export function find(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.find((one) => one.kind === kind && (name === undefined || one.metadata.name === name));
  if (found === undefined) throw new Error(`no ${kind} ${name ?? ''} among ${manifests.map(({ kind }) => kind)}`);
  return found;
}

/** Pod of the picker: that of the Deployment or StatefulSet. */
// biome-ignore lint/suspicious/noExplicitAny: a pod specification
export function podSpec(manifests: readonly Manifest[], name = `${RELEASE}-epp`): any {
  const workload = manifests.find(
    ({ kind, metadata }) => (kind === 'Deployment' || kind === 'StatefulSet') && metadata.name === name,
  );
  return workload?.spec.template.spec;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  // biome-ignore lint/suspicious/noExplicitAny: the tests read fields of every kind
  readonly [field: string]: any;
}

export function container(manifests: readonly Manifest[], name = 'epp'): Container {
  return podSpec(manifests).containers.find((one: Container) => one.name === name);
}
