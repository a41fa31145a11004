import { engineClusterFindings, honours, pickerClusterFindings, takesAnyAddress } from './cluster-rules.js';
import type { EnvoyConfiguration } from './configuration.js';
import { type EnvoyFinding, NEEDS_UNKNOWN, type PickerNeeds, type Severity } from './finding.js';
import { type EnvoyGateway, gatewaysOf, nameOf } from './gateway.js';
import { listenerFindings } from './listener-rules.js';
import { otherFinding, processorsOf } from './picker-filter.js';
import { processorFindings } from './processor-rules.js';
import { requestBufferFindings, routeFindings } from './route-rules.js';
import { child, isOn, pathText, type Setting, textOf } from './setting.js';

const ORDER: readonly Severity[] = ['error', 'warning', 'note'];

/**
 * Settings of an Envoy configuration that limit a picker, the worst first. Clusters that the configuration does not
 * hold (CDS) are named as notes, and so are external processors that are no pickers.
 * @param pickerClusters clusters of pickers; empty = they are found by their marks (picker-filter.ts)
 * @throws {Error} one line, when no listener asks an external processor, or none of several can be told to be the
 * picker
 */
export function envoyFindings(
  configuration: EnvoyConfiguration,
  needs: PickerNeeds = NEEDS_UNKNOWN,
  pickerClusters: readonly string[] = [],
): readonly EnvoyFinding[] {
  const gateways = gatewaysOf(configuration);
  if (gateways.length === 0) {
    throw new Error(
      'no listener has an ext_proc filter: add one, or give a /config_dump where a control plane adds it',
    );
  }
  const { pickers, others } = processorsOf(gateways, configuration, pickerClusters);
  const found = pickers.flatMap((gateway) => [
    ...processorFindings(gateway, needs),
    ...listenerFindings(gateway, needs, isBounded(gateway, configuration)),
    ...routeFindings(gateway, needs),
    ...requestBufferFindings(gateway),
    ...clusterFindings(gateway, configuration, needs),
  ]);
  const all = [...found, ...others.map(otherFinding)];
  const once = new Map(all.map((one) => [`${one.setting} ${pathText(one.path)} ${one.limits}`, one]));
  return [...once.values()].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}

/** Whether all clusters of model servers are known and send requests to hosts of their own only. */
function isBounded({ routes }: EnvoyGateway, { clusters }: EnvoyConfiguration): boolean {
  const byName = new Map(clusters.map((cluster) => [textOf(nameOf(cluster)), cluster]));
  const engines = routes.flatMap(({ clusters: names }) => names.map((name) => byName.get(name)));
  return engines.length > 0 && engines.every((cluster) => cluster !== undefined && !takesAnyAddress(cluster));
}

function clusterFindings(
  gateway: EnvoyGateway,
  { clusters }: EnvoyConfiguration,
  needs: PickerNeeds,
): readonly EnvoyFinding[] {
  const byName = new Map(clusters.map((cluster) => [textOf(nameOf(cluster)), cluster]));
  const services = [gateway.processor, ...gateway.routes.flatMap(({ overrides }) => overrides ?? [])]
    .map((place) => child(place, 'grpc_service', 'envoy_grpc', 'cluster_name'))
    .filter((setting) => textOf(setting) !== undefined);
  const engines = new Map(
    gateway.routes.flatMap(({ clusters: names, action }) => names.map((name) => [name, action] as const)),
  );
  const anyHonours = [...engines.keys()].some((name) => byName.has(name) && honours(byName.get(name)!));
  const spare = isOn(child(gateway.processor, 'failure_mode_allow')) && anyHonours;
  return [
    ...services.flatMap((setting) => {
      const cluster = byName.get(textOf(setting));
      return cluster === undefined ? [unknownCluster(setting, textOf(setting)!)] : pickerClusterFindings(cluster);
    }),
    ...[...engines].flatMap(([name, action]) => {
      const cluster = byName.get(name);
      return cluster === undefined ? [unknownCluster(action, name)] : engineClusterFindings(cluster, spare, needs);
    }),
  ];
}

function unknownCluster({ path }: Setting, name: string): EnvoyFinding {
  const remedy = 'give the /config_dump of a running Envoy to have it checked';
  return { severity: 'note', setting: 'cluster', path, limits: `the cluster ${name} is not in the file`, remedy };
}
