import { z } from 'zod';
import { definePlugin } from '../../../scheduling/plugin.js';
import type { FlowTable } from '../../flow-table.js';
import { flowWeights } from './flow-weights.js';
import type { TagRule } from './tagged.js';

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996) of attained service in tokens. The tag is the flow's payment
 * divided by its weight. Tokens that were paid for and not used become credit, which is spent before the tag grows
 * again.
 */
export const startTime: TagRule = {
  wake(flows, flow, reached) {
    const { tag, credit, weight } = flows;
    tag[flow] = Math.max(tag[flow]!, reached);
    // Credit from before the pause must not put the flow ahead of flows that waited meanwhile.
    credit[flow] = Math.min(credit[flow]!, (tag[flow]! - reached) * weight[flow]!);
  },
  dispatched: pay,
  used: pay,
  unused(flows, flow, tokens) {
    flows.credit[flow]! += tokens;
  },
};

function pay({ tag, credit, weight }: FlowTable, flow: number, tokens: number): void {
  const spent = Math.min(credit[flow]!, tokens);
  credit[flow]! -= spent;
  tag[flow]! += (tokens - spent) / weight[flow]!;
}

const startTimeFairnessParameters = () => z.strictObject({ weights: flowWeights() });

export const startTimeFairnessPolicy = definePlugin({
  type: 'start-time-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control: every flow gets the same tokens, or its share of them: prompt that is not cached, and ' +
    'output, ' +
    ('paid as it is estimated and corrected while it streams. The policy of pools whose configuration has no ' +
      'flowControl section.'),
  source: 'Pointsman: start-time fair queueing (Goyal, Vin, Cheng 1996) of attained service',
  parameters: startTimeFairnessParameters,
  fairnessSettings: ({ weights }) => ({ kind: 'start-time', weights }),
});
