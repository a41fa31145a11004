import type { TagRule } from './tagged.js';

/** Round robin by request: the tag is the number of the round in which the flow goes next. */
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
