import type { FairnessSettings, OrderingSettings, UsageLimitSettings } from '../flow-control/settings.js';
import { durationMilliseconds } from '../scheduling/duration.js';
import type { LoadedPlugin } from './plugin-set.js';
import {
  deficitRoundRobinFairnessPolicy,
  deficitRoundRobinParameters,
} from './plugins/deficit-round-robin-fairness-policy.js';
import { edfOrderingPolicy } from './plugins/edf-ordering-policy.js';
import { fcfsOrderingPolicy } from './plugins/fcfs-ordering-policy.js';
import { globalStrictFairnessPolicy } from './plugins/global-strict-fairness-policy.js';
import { priorityHoldbackParameters, priorityHoldbackPolicy } from './plugins/priority-holdback-policy.js';
import { programAwareFairness, programAwareParameters } from './plugins/program-aware-fairness.js';
import { roundRobinFairnessPolicy } from './plugins/round-robin-fairness-policy.js';
import { shortestFirstOrderingPolicy, shortestFirstParameters } from './plugins/shortest-first-ordering-policy.js';
import { sloDeadlineOrderingPolicy } from './plugins/slo-deadline-ordering-policy.js';
import { softReflectiveCeilingPolicy } from './plugins/soft-reflective-ceiling-policy.js';
import { startTimeFairnessParameters, startTimeFairnessPolicy } from './plugins/start-time-fairness-policy.js';
import { staticUsageLimitParameters, staticUsageLimitPolicy } from './plugins/static-usage-limit-policy.js';

/** What the queues are told about a configured ordering policy. */
export function orderingSettings({ definition, parameters }: LoadedPlugin): OrderingSettings {
  switch (definition) {
    case fcfsOrderingPolicy:
      return { kind: 'arrival' };
    case edfOrderingPolicy:
      return { kind: 'deadline' };
    case sloDeadlineOrderingPolicy:
      return { kind: 'first-token-objective' };
    case shortestFirstOrderingPolicy: {
      const { msPerToken, ageBound } = shortestFirstParameters.parse(parameters);
      return { kind: 'shortest-first', msPerToken, ageBoundMs: durationMilliseconds(ageBound) };
    }
    default:
      throw new TypeError(`"${definition.type}" is no ordering policy that the queues know`);
  }
}

/** What the queues are told about a configured fairness policy. */
export function fairnessSettings({ definition, parameters }: LoadedPlugin): FairnessSettings {
  switch (definition) {
    case globalStrictFairnessPolicy:
      return { kind: 'global-strict' };
    case roundRobinFairnessPolicy:
      return { kind: 'round-robin' };
    case programAwareFairness: {
      const given = programAwareParameters.parse(parameters);
      const { lasWeightService: serviceWeight, lasWeightHeadWait: headWaitWeight, lasHalfLifeSeconds } = given;
      const halfLifeMs = lasHalfLifeSeconds === 0 ? Number.POSITIVE_INFINITY : lasHalfLifeSeconds * 1000;
      return { kind: 'program-aware', serviceWeight, headWaitWeight, halfLifeMs };
    }
    case startTimeFairnessPolicy:
      return { kind: 'start-time', ...startTimeFairnessParameters.parse(parameters) };
    case deficitRoundRobinFairnessPolicy:
      return { kind: 'deficit-round-robin', ...deficitRoundRobinParameters.parse(parameters) };
    default:
      throw new TypeError(`"${definition.type}" is no fairness policy that the queues know`);
  }
}

/** What the gate is told about a configured usage limit policy. */
export function usageLimitSettings({ definition, parameters }: LoadedPlugin): UsageLimitSettings {
  switch (definition) {
    case staticUsageLimitPolicy:
      return { kind: 'static', ...staticUsageLimitParameters.parse(parameters) };
    case priorityHoldbackPolicy: {
      const { domain, minCeiling, maxCeiling } = priorityHoldbackParameters.parse(parameters);
      return { kind: 'holdback', domain, minCeiling, maxCeiling };
    }
    case softReflectiveCeilingPolicy:
      return { kind: 'soft-reflective' };
    default:
      throw new TypeError(`"${definition.type}" is no usage limit policy that the gate knows`);
  }
}
