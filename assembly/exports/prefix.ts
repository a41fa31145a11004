// Exports of the prefix index, nothing else.
export { prefixCheck } from '../prefix/check';
export {
  HEAD_SEGMENT_TOP,
  PREFIX_COUNTER_ACTIVE_ENTRIES,
  PREFIX_COUNTER_ACTIVE_REFUSED,
  PREFIX_COUNTER_BLOCKS,
  PREFIX_COUNTER_CLEARED,
  PREFIX_COUNTER_CONFLICTS,
  PREFIX_COUNTER_DROPPED,
  PREFIX_COUNTER_EVICTED,
  PREFIX_COUNTER_GIVE_UPS,
  PREFIX_COUNTER_MEMBERSHIPS,
  PREFIX_COUNTER_ORPHANS,
  PREFIX_COUNTER_REFUSED,
  PREFIX_COUNTER_REMOVED,
  PREFIX_COUNTER_REPAIRS,
  PREFIX_COUNTER_RETRIES,
  PREFIX_COUNTER_SEGMENTS,
  PREFIX_COUNTER_SETS,
  PREFIX_COUNTER_STORED,
  PREFIX_COUNTER_TAILS,
  prefixCounter,
  prefixVerify,
} from '../prefix/counters';
export { prefixOldestAge, prefixTick } from '../prefix/evict';
export {
  EXPORT_AGE,
  EXPORT_BYTES,
  EXPORT_DEPTH,
  EXPORT_EXTENT_HOLDERS,
  EXPORT_EXTENTS,
  EXPORT_HEAD_BYTES,
  EXPORT_LENGTH,
  EXPORT_NEXT,
  EXPORT_PARENT,
  EXPORT_PARENT_HASH,
  EXPORT_SEGMENT_BYTES,
  EXPORT_TIERED,
  prefixExport,
} from '../prefix/export';
export { prefixHeadAddress } from '../prefix/index';
export {
  EVENT_BLOCKS,
  EVENT_HEAD_BYTES,
  EVENT_PARENT,
  EVENT_PARENT_HASH,
  EVENT_PLACE_SHIFT,
  EVENT_REMOVE,
  EVENT_SLOT,
  EVENT_TAIL,
  PREFIX_BUSY,
  prefixApply,
  prefixClear,
  prefixInsert,
  prefixMove,
  prefixRemove,
  prefixRemoveEndpoint,
  prefixSetCapacity,
  prefixStore,
} from '../prefix/locked';
export {
  LOSS_CAPACITY,
  LOSS_CLEARED,
  LOSS_EVENTS,
  LOSS_FRONT,
  LOSS_GONE,
  LOSS_INDEX_FULL,
  LOSS_RESTARTED,
  LOSS_ROOT,
  LOSS_TOLD,
  LOSS_UNCONFIRMED,
} from '../prefix/losses';
export { matchedBelow, prefixMatch, prefixMatchAt, prefixSetPrices, weighMatches } from '../prefix/match';
export { prefixRepairRest } from '../prefix/repair';
export { PLACE_DISK, PLACE_GPU, PLACE_HOST, PLACE_REMOTE } from '../prefix/sets';
export {
  prefixHeld,
  prefixInsertLocked,
  prefixMoveLocked,
  prefixRemoveEndpointLocked,
  prefixRemoveLocked,
} from '../prefix/store';
export { tailInsertLocked, tailMatch } from '../prefix/tails';
