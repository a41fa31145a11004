import { ignoredParameters } from '../../../scheduling/ignored-parameters.js';
import { definePlugin } from '../../../scheduling/plugin.js';
import type { TagRule } from './tagged.js';

/** Round robin by request: the tag is the round of the flow's next turn. */
export const roundRobin: TagRule = {
  wake({ tag }, flow, reached) {
    tag[flow] = Math.max(tag[flow]!, reached);
  },
  dispatched({ tag }, flow) {
    tag[flow]! += 1;
  },
  used() {},
  unused() {},
};

export const roundRobinFairnessPolicy = definePlugin({
  type: 'round-robin-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: flows in turn, one request each.',
  ...ignoredParameters,
  fairnessSettings: () => ({ kind: 'round-robin' }),
});
