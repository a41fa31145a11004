// Exports of the prefix index to the rest of the core.
import { HEAD } from './layout';

export { prefixCheck } from './check';
export * from './counters';
export {
  EVENT_PARENT,
  EVENT_REMOVE,
  PREFIX_BUSY,
  prefixApply,
  prefixClear,
  prefixInsert,
  prefixRemove,
  prefixRemoveEndpoint,
  prefixSetCapacity,
  prefixStore,
} from './locked';
export {
  beginningLoss,
  LOSS_CAPACITY,
  LOSS_CLEARED,
  LOSS_EVENTS,
  LOSS_FRONT,
  LOSS_GONE,
  LOSS_INDEX_FULL,
  LOSS_NONE,
  LOSS_RESTARTED,
  LOSS_ROOT,
  LOSS_TOLD,
  LOSS_UNCONFIRMED,
  lossOf,
  noteBeginning,
} from './losses';
export { prefixMatch, prefixMatchAt } from './match';
export { prefixRepair, prefixRepairRest } from './repair';
export {
  prefixClearLocked,
  prefixHeld,
  prefixInsertLocked,
  prefixRemoveEndpointLocked,
  prefixRemoveLocked,
  prefixSetCapacityLocked,
  prefixStoreLocked,
} from './store';
export { tailInsertLocked, tailMatch } from './tails';

/** Address of the index's head: free lists, tick, counters. */
export function prefixHeadAddress(): usize {
  return HEAD;
}

/** Prepares a fresh memory, which is all zero: an empty index is all zero too. */
export function prefixInitialise(): void {}
