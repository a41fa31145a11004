import type { AdaptationControl } from './adaptation-control.js';
import type { FlowControl } from './flow-control.js';
import type { OutlivingState } from './kept-state.js';
import type { SharedState } from './pool-replica.js';

/** Interval between two reports of the learned state. */
const LEARNED_MS = 10_000;
/** Bound on the tenants of one update; further ones follow in the next. */
const TENANTS_MAX = 1_000;
/** Bound on a tenant's name in bytes; tenants with longer ones are not told of. */
const NAME_BYTES_MAX = 255;

/**
 * State that replicas of this pool share beside load and prompts: tokens of tenants, shares of the gate, learned
 * coefficients, state of the guard.
 * @param isSigned whether messages of strangers are refused
 */
export function sharedState(
  adaptation: AdaptationControl,
  flow: () => FlowControl | undefined,
  isSigned: boolean,
): SharedState {
  let toldMs = performance.now();
  return {
    spendings: (all) => {
      const spendings = flow()?.takeSpent(TENANTS_MAX, all) ?? [];
      return spendings.filter(({ tenant }) => Buffer.byteLength(tenant) <= NAME_BYTES_MAX);
    },
    applySpent: (spent) => flow()?.spentElsewhere(spent, isSigned),
    peersChanged: (peers) => flow()?.setPeers(peers),
    learned: () => {
      const now = performance.now();
      const isDue = now - toldMs >= LEARNED_MS;
      if (isDue) toldMs = now;
      return adaptation.tell(isDue);
    },
    applyLearned: (bytes) => adaptation.hear(bytes),
  };
}

/** State of this pool that outlives all replicas: learned coefficients, levels of the buckets of tenants. */
export function outlivingState(adaptation: AdaptationControl, flow: () => FlowControl | undefined): OutlivingState {
  return {
    learned: () => adaptation.kept(),
    restoreLearned: (learned) => adaptation.restoreLearned(learned),
    missing: (tenantsMax) => flow()?.missingTokens(tenantsMax) ?? [],
    restore: (missing, ageMs) => flow()?.restoreMissing(missing, ageMs),
  };
}
