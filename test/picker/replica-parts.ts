/** What a `PoolReplica` asks of the pool's control, without anything that other parts would tell. */

const none = () => undefined;

/** A state that tells nothing and takes nothing. */
export const SILENT_STATE = {
  spendings: () => [],
  learned: none,
  applySpent: none,
  applyLearned: none,
  peersChanged: none,
};

/** Endpoints in the slots from 0 on. */
export function replicaAssignments(endpoints: number) {
  return Array.from({ length: endpoints }, (_, slot) => ({
    slot,
    generation: 1,
    endpoint: { id: `${slot}`, name: `${slot}`, namespace: '', address: '10.0.0.1', port: slot + 1, labels: {} },
  }));
}
