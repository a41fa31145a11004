import type { PluginDefinition } from '../../scheduling/plugin.js';
import { globalStrictFairnessPolicy } from './fairness/best-head.js';
import { deficitRoundRobinFairnessPolicy } from './fairness/deficit-round-robin.js';
import { programAwareFairness } from './fairness/program-aware.js';
import { roundRobinFairnessPolicy } from './fairness/round-robin.js';
import { startTimeFairnessPolicy } from './fairness/start-time.js';
import {
  edfOrderingPolicy,
  fcfsOrderingPolicy,
  shortestFirstOrderingPolicy,
  sloDeadlineOrderingPolicy,
} from './ordering.js';
import { thunderAgent } from './thunder-agent.js';
import { priorityHoldbackPolicy, softReflectiveCeilingPolicy, staticUsageLimitPolicy } from './usage-limits.js';

/** The policies of flow control: ordering, fairness, usage limits. */
export const flowControlPlugins: readonly PluginDefinition[] = [
  fcfsOrderingPolicy,
  edfOrderingPolicy,
  sloDeadlineOrderingPolicy,
  shortestFirstOrderingPolicy,
  globalStrictFairnessPolicy,
  roundRobinFairnessPolicy,
  programAwareFairness,
  startTimeFairnessPolicy,
  deficitRoundRobinFairnessPolicy,
  staticUsageLimitPolicy,
  priorityHoldbackPolicy,
  softReflectiveCeilingPolicy,
  thunderAgent,
];
