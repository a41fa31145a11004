import { z } from 'zod';
import { definePlugin, type TopologyLabels } from '../plugin.js';

/** Labels of Kubernetes nodes that deployments copy to their pods. */
const LABELS: TopologyLabels = {
  hostname: 'kubernetes.io/hostname',
  rack: 'topology.kubernetes.io/rack',
  zone: 'topology.kubernetes.io/zone',
  region: 'topology.kubernetes.io/region',
};

const label = (name: string, what: string) =>
  z.string().default(name).describe(`Endpoint label that names ${what}; empty means the default.`);

export const topologyExtractor = definePlugin({
  type: 'topology-extractor',
  kinds: ['extractor'],
  stability: 'Alpha',
  doc: 'Says by which labels the topology plugins know where an endpoint is. It acts by being in plugins.',
  parameters: () =>
    z.strictObject({
      hostname: label(LABELS.hostname, 'the host'),
      rack: label(LABELS.rack, 'the rack'),
      zone: label(LABELS.zone, 'the zone'),
      region: label(LABELS.region, 'the region'),
    }),
  topologyLabels: ({ hostname, rack, zone, region }) => ({
    hostname: hostname || LABELS.hostname,
    rack: rack || LABELS.rack,
    zone: zone || LABELS.zone,
    region: region || LABELS.region,
  }),
});
