import { z } from 'zod';
import { definePlugin } from '../../../scheduling/plugin.js';
import type { FlowTable } from '../../flow-table.js';
import { flowWeights } from './flow-weights.js';
import type { TagRule } from './tagged.js';

/**
 * Deficit round robin (Shreedhar, Varghese 1995) in tokens, in the form that may overdraw: a flow is served until its
 * quantum is used up, and the excess is taken off the quanta of coming rounds. The tag is the round of its next turn,
 * so that rounds without service cost nothing. `credit` is the rest of its quantum, always above 0.
 */
export function deficitRoundRobin(quantumTokens: number): TagRule {
  const pay = ({ tag, credit, weight }: FlowTable, flow: number, tokens: number) => {
    const quantum = quantumTokens * weight[flow]!;
    const left = credit[flow]! - tokens;
    const rounds = left > 0 ? 0 : Math.floor(-left / quantum) + 1;
    tag[flow]! += rounds;
    credit[flow] = left + rounds * quantum;
  };
  return {
    wake({ tag, credit, weight }, flow, reached) {
      // A flow that returns within the round keeps its rest. Otherwise a flow with one request at a time would get a
      // full quantum for each.
      if (tag[flow]! >= reached && credit[flow]! > 0) return;
      tag[flow] = Math.max(tag[flow]!, reached);
      credit[flow] = quantumTokens * weight[flow]!;
    },
    dispatched: pay,
    used: pay,
    unused({ credit }, flow, tokens) {
      credit[flow]! += tokens;
    },
  };
}

const deficitRoundRobinParameters = () =>
  z.strictObject({
    weights: flowWeights(),
    quantumTokens: z.int().min(1).default(2048).describe('Tokens that a flow of weight 1 gets in a round.'),
  });

export const deficitRoundRobinFairnessPolicy = definePlugin({
  type: 'deficit-round-robin-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: flows in turn, each until a quantum of tokens is used up; what was used beyond it is ' +
    'paid back in ' +
    'the next rounds. Tokens as in start-time-fairness-policy.',
  source: 'Pointsman: deficit round robin (Shreedhar, Varghese 1995) in tokens',
  parameters: deficitRoundRobinParameters,
  fairnessSettings: ({ weights, quantumTokens }) => ({ kind: 'deficit-round-robin', weights, quantumTokens }),
});
