// Renews llm-d-router.json: what llm-d-router's charts render for the value sets, reduced to facts that the tests
// check.
//
//   node test/charts/peer-facts.ts FOLDER
//
// FOLDER holds llm-d-router-gateway and llm-d-router-standalone with their dependencies. Not part of a test run.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Container, container, find, helm, type Manifest, podSpec, render } from './helm.ts';
import { VALUE_SETS, type ValueSet } from './value-sets.ts';

const folder = process.argv[2]!;

/** Fields that cannot change in an upgrade, or that others hold on to. */
function identity({ apiVersion, kind, metadata, spec, roleRef, subjects, rules }: Manifest) {
  return {
    apiVersion,
    kind,
    name: metadata.name,
    ...(spec?.selector === undefined ? {} : { selector: spec.selector.matchLabels ?? spec.selector }),
    ...(rules === undefined ? {} : { rules }),
    ...(spec?.appProtocol === undefined ? {} : { appProtocol: spec.appProtocol }),
    ...(roleRef === undefined ? {} : { roleRef: roleRef.name, subject: subjects[0].name }),
    ...(kind === 'Service' ? { ports: spec.ports } : {}),
    ...(kind === 'Deployment'
      ? { strategy: spec.strategy?.type, containers: names(spec.template.spec.containers) }
      : {}),
  };
}

function names(containers: readonly Container[]): string[] {
  return containers.map(({ name }) => name);
}

async function facts({ chart, values }: ValueSet) {
  const manifests = await render({ folder: join(folder, `llm-d-router-${chart}`) }, values);
  const picker = container(manifests);
  const configuration = picker.args[picker.args.indexOf('--config-file') + 1]!.replace('/config/', '');
  return {
    chart,
    values,
    objects: manifests.map(identity),
    picker: {
      args: picker.args,
      env: picker.env,
      ports: picker.ports,
      livenessProbe: picker.livenessProbe,
      readinessProbe: picker.readinessProbe,
      volumeMounts: picker.volumeMounts,
    },
    grace: podSpec(manifests).terminationGracePeriodSeconds,
    configuration: parse(find(manifests, 'ConfigMap', 'rel-epp').data[configuration]),
  };
}

/** Default values of a chart and its library, without the text of Envoy's configuration. */
async function defaults(chart: string): Promise<unknown> {
  const own = parse((await helm('show', 'values', join(folder, chart))).stdout);
  const library = parse((await helm('show', 'values', join(folder, 'routerlib'))).stdout);
  delete own.router?.proxy?.presets?.envoy?.configMap?.data;
  return { ...own, router: merged(library, own.router) };
}

function merged(below: Record<string, unknown>, above: Record<string, unknown>): Record<string, unknown> {
  const result = { ...below };
  for (const [key, value] of Object.entries(above ?? {})) {
    if (value === null) continue;
    const both = isMap(value) && isMap(result[key]);
    result[key] = both ? merged(result[key] as Record<string, unknown>, value as Record<string, unknown>) : value;
  }
  return result;
}

function isMap(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const sets: Record<string, unknown> = {};
for (const [name, set] of Object.entries(VALUE_SETS)) sets[name] = await facts(set);
const values = {
  gateway: await defaults('llm-d-router-gateway'),
  standalone: await defaults('llm-d-router-standalone'),
};
const file = new URL('llm-d-router.json', import.meta.url);
writeFileSync(file, `${JSON.stringify({ sets, defaults: values }, null, 1)}\n`);
