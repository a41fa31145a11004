// Exports of the ledger and the load, nothing else.
export { waitingRenew } from '../columns/waiting';
export { activeRequests } from '../load/active-entries';
export {
  activeAdd,
  activeAddLocked,
  activeCheck,
  activeOf,
  activeOverlap,
  activeRemove,
  activeRemoveLocked,
  activeRepairAdd,
  activeRepairBegin,
} from '../load/blocks';
export {
  CHANGE_BLOCKS,
  CHANGE_GENERATION_SHIFT,
  CHANGE_LOST,
  CHANGE_PARENT,
  CHANGE_PARENT_HASH,
  CHANGE_READ,
  CHANGE_RECORD_BYTES,
  CHANGE_SKIP,
  CHANGE_SLOT,
  CHANGE_TAIL,
  CHANGE_WRITTEN,
} from '../load/changes';
export { predictionLearned, predictionPrior } from '../load/coefficients';
export { deadEndpoints, endpointAlive, endpointDead } from '../load/dead';
export { endpointReachable, peerEjection } from '../load/ejection';
export {
  FEATURE_ACTIVE_BLOCKS,
  FEATURE_BEST_CACHED,
  FEATURE_INFLIGHT,
  FEATURE_KNOWN,
  FEATURE_KV_USAGE,
  FEATURE_MODEL,
  FEATURE_MODEL_HIGH,
  FEATURE_PREFILL_AHEAD,
  FEATURE_PREFILL_RATE,
  FEATURE_PROMPT,
  FEATURE_PROMPT_AHEAD,
  FEATURE_RUNNING,
  FEATURE_TAG,
  FEATURE_TAG_SHIFT,
  FEATURE_UNCACHED,
  FEATURE_WAITING,
  FEATURE_WOULD_PICK_SHIFT,
} from '../load/features';
export {
  EXPECTS_END,
  EXPECTS_LATER,
  EXPECTS_NOTHING,
  EXPECTS_STREAM,
  HEARING_EXPECTS,
  HEARING_LIMIT,
  hearingAddress,
} from '../load/hearing';
export { ledgerCheck, ledgerFull, ledgerUsed } from '../load/ledger';
export { BELOW_BITS, BELOW_PARTS } from '../load/ledger-entries';
export {
  NOTED_DOUBTED,
  NOTED_EJECTED,
  noteOutcome,
  RESULT_ANSWERED,
  RESULT_ANSWERED_ITSELF,
  RESULT_FAILED,
  RESULT_UNANSWERED,
} from '../load/outcomes';
export { adapterShown } from '../load/shown-adapters';
export {
  endpointHeard,
  endpointSilent,
  HEARD_REQUEST_AHEAD,
  HEARD_REQUEST_EXPECTS,
  HEARD_REQUEST_HEARD,
  HEARD_REQUEST_LIMIT,
  HEARD_REQUEST_PROBE,
  HEARD_REQUEST_PROMPT,
  HEARD_REQUEST_SLOT,
  HEARD_REQUEST_UNCACHED,
  hearingNext,
  SILENCE_BUSY,
  SILENCE_IN,
  SILENCE_OUT,
  silenceProbed,
} from '../load/silence';
