import type { PluginDefinition } from '../../scheduling/plugin.js';
import { withoutEffect } from './without-effect.js';

const OWN = 'Pointsman replicates by itself, through NATS (`replication`, `--replication-url`)';

function syncer(type: string, where: string): PluginDefinition {
  const does = `Shares what replicas of llm-d-router count ${where}.`;
  return withoutEffect({ type, kind: 'replica-syncer', stability: 'Alpha', does, why: OWN });
}

/** How replicas of llm-d-router find each other and share state. */
export const replicaPlugins: readonly PluginDefinition[] = [
  syncer('redis-syncer', 'in Redis'),
  syncer('redis-state-store', 'in Redis (the older name of `redis-syncer`)'),
  syncer('local-syncer', 'within one process, for tests'),
  withoutEffect({
    type: 'k8s-peer-discovery',
    kind: 'peer-discovery',
    stability: 'Alpha',
    does: 'Finds the other replicas of llm-d-router by the labels of their pods.',
    why: OWN,
  }),
];
