// Exports, nothing else.

export {
  VALUE_ACTIVE_REQUESTS,
  VALUE_ACTIVE_TOKENS,
  VALUE_ATTRIBUTE,
  VALUE_KV_USAGE,
  VALUE_NONE,
  VALUE_RUNNING,
  VALUE_WAITING,
} from './columns/values';
export * from './endpoints';
export {
  evictedGeneration,
  evictedPriority,
  evictedThread,
  evictionLost,
  evictRequest,
  isHeld,
} from './gate/eviction';
export {
  gateBand,
  gateBandsForget,
  gateCeiling,
  gateCheck,
  gateConfigure,
  gateDrains,
  gateDrainsIn,
  gateLook,
  gateNextUnseen,
  gateRanks,
  gateRemote,
  gateSaturation,
  gateStep,
  gateUnseen,
  gateWaiting,
} from './gate/gate';
export * from './gate/layout';
export {
  bellAddress,
  controlDozes,
  controlWakes,
  GRANT_BUSY,
  GRANT_CLOSED,
  GRANT_DONE,
  GRANT_GONE,
  GRANT_NOWHERE,
  GRANT_STICKS,
  shardDozes,
  shardWakes,
  waitSlotCancel,
  waitSlotDispatch,
  waitSlotEnqueue,
  waitSlotEnqueued,
  waitSlotForget,
  waitSlotFree,
  waitSlotReject,
  waitSlotReturned,
} from './gate/wait-slots';
export * from './load/blocks';
export { predictionLearned, predictionPrior } from './load/coefficients';
export { EJECTION_BASE_MS, EJECTION_FAILURES, EJECTION_LONGEST_MS } from './load/ejection';
export {
  FEATURE_ACTIVE_BLOCKS,
  FEATURE_BEST_CACHED,
  FEATURE_INFLIGHT,
  FEATURE_KNOWN,
  FEATURE_KV_USAGE,
  FEATURE_MODEL,
  FEATURE_PREFILL_AHEAD,
  FEATURE_PREFILL_RATE,
  FEATURE_PROMPT,
  FEATURE_PROMPT_AHEAD,
  FEATURE_RUNNING,
  FEATURE_TAG,
  FEATURE_UNCACHED,
  FEATURE_WAITING,
  PREFILL_RATE_MS,
} from './load/features';
export { ledgerCheck, ledgerFull, ledgerUsed } from './load/ledger';
export { lockAcquire, lockOwner, lockRelease, lockSeize } from './lock';
export * from './memory';
export * from './pool-words';
export * from './prefix/index';
export { attach, plan } from './regions';
export {
  SCAN_REASON_BARE,
  SCAN_REASON_BYTE,
  SCAN_REASON_CLOSED,
  SCAN_REASON_CONTROL,
  SCAN_REASON_DEPTH,
  SCAN_REASON_EMPTY,
  SCAN_REASON_ENDED,
  SCAN_REASON_ESCAPE,
  SCAN_REASON_LENGTH,
  SCAN_REASON_LITERAL,
  SCAN_REASON_MESSAGE,
  SCAN_REASON_NUMBER,
  SCAN_REASON_TRAILING,
  SCAN_REASON_UNICODE,
} from './request/grammar';
export { hashBlocks, hashBytesTo } from './request/hash';
export {
  PROMPT_CHAT,
  PROMPT_COMPLETIONS,
  PROMPT_CONVERSATIONS,
  PROMPT_EMBEDDINGS,
  PROMPT_IMAGES,
  PROMPT_MESSAGES,
  PROMPT_RESPONSES,
  PROMPT_SGLANG,
  PROMPT_TOKENS,
} from './request/kinds';
export * from './request/layout';
export { SCAN_IMAGE_TOKENS } from './request/messages';
export * from './request/scan';
export * from './request/tokens';
export * from './request-area';
export {
  FORM_ENGINE,
  FORM_ENGINE_EMBED,
  FORM_MESSAGES,
  FORM_RESPONSES,
  FORM_SGLANG,
  FORM_USAGE,
  FORM_VERTEX,
  MODE_BODY,
  MODE_EVENTS,
  NAME_BYTES_MAX,
  RESPONSE_SCAN_BYTES,
  SCAN_EVENTS,
  SCAN_USAGE,
} from './response/layout';
export { RESPONSE_EDIT_LIST, RESPONSE_EDITS, RESPONSE_HELD_FROM, RESPONSE_HOLD_NOTHING } from './response/rename';
export * from './response/sample-ring';
export {
  responseFeed,
  responseMessageBegin,
  responseMessageEnd,
  responseMessageFeed,
  responseOpen,
  responseScanAddress,
} from './response/scan';
export {
  complete,
  decide,
  grow,
  isCandidate,
  matchAhead,
  noteOutcome,
  prefillDone,
  prefillElsewhere,
  release,
  releaseThread,
  scoreOf,
  storePick,
  threadCharges,
} from './scheduling/decide';
export {
  COMPARE_EQUAL,
  COMPARE_GREATER,
  COMPARE_GREATER_OR_EQUAL,
  COMPARE_LESS,
  COMPARE_LESS_OR_EQUAL,
  COMPARE_NOT_EQUAL,
} from './scheduling/filters';
export { hashKeyTo, labelAddress } from './scheduling/labels';
export {
  COEFFICIENT_BASE,
  COEFFICIENT_FIRST_OUTPUT_TARGET,
  COEFFICIENT_GROWTH,
  COEFFICIENT_MISS_PRICE,
  COEFFICIENT_OUTPUT,
  COEFFICIENT_PER_TOKEN_TARGET,
  COEFFICIENT_PREFILL,
  COEFFICIENT_SLOTS,
  COEFFICIENT_STEP,
  COEFFICIENT_WAITING,
  coefficientsAddress,
  coefficientsWrite,
  endpointCost,
  SHARE_TERMS,
  sharesAddress,
} from './scheduling/marginal-cost';
export { HEADROOM_TPOT, HEADROOM_TTFT, PREDICTED_TPOT, PREDICTED_TTFT } from './scheduling/predictions';
export * from './scheduling/program';
export { PROJECTION_COSTS, PROJECTION_PRODUCTS } from './scheduling/projection';
export {
  endpointAdapters,
  endpointAttribute,
  endpointForget,
  endpointOpen,
  endpointSignals,
  endpointStale,
  endpointState,
  initialise,
  reclaimThread,
} from './scheduling/publish';
export * from './scrape/layout';
export { scrapeAddress, scrapeBegin, scrapeEnd, scrapeFeed } from './scrape/scan';
