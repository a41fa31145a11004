// Exports of the scan of responses, nothing else.
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
  SCAN_EVENTS,
  SCAN_USAGE,
} from '../response/layout';
export { RESPONSE_EDIT_LIST, RESPONSE_EDITS, RESPONSE_HELD_FROM, RESPONSE_HOLD_NOTHING } from '../response/rename';
export {
  OUTCOME_ABORTED,
  OUTCOME_COMPLETED,
  OUTCOME_DIVERTED,
  OUTCOME_FAILED,
  OUTCOME_REFUSED,
  SAMPLE_CACHED_TOKENS,
  SAMPLE_DURATION,
  SAMPLE_FEATURES,
  SAMPLE_FIRST_OUTPUT,
  SAMPLE_INFLIGHT_AT_END,
  SAMPLE_OUTCOME,
  SAMPLE_OUTPUT_TOKENS,
  SAMPLE_PER_TOKEN,
  SAMPLE_PRIORITY,
  SAMPLE_PROMPT_AT_END,
  SAMPLE_PROMPT_TOKENS,
  SAMPLE_STAGED,
  sampleWrite,
} from '../response/sample-ring';
export {
  responseFeed,
  responseMessageBegin,
  responseMessageEnd,
  responseMessageFeed,
  responseOpen,
  responseScanAddress,
} from '../response/scan';
