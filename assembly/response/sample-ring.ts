// The sample ring: one record for each request that has ended, with what was known when it was decided and what came of it.
//
// Owns: REGION_SAMPLE_RING, one ring per thread, written by its thread only and read by anybody without a lock: the record
// is whole before the count moves, and a reader that finds the count a round further throws its copy away.
//
//   ring    +0 u32 records ever written (atomic) · +64 LABEL_COUNT records of SAMPLE_BYTES
//   record  +0 f64 time of the decision · +8 slot · +12 slot generation · +16 64 bytes of features (load/features.ts)
//           +80 outcome · +84 f32 ms to the first output · +88 f32 ms per output token · +92 f32 ms to the end
//           +96 output tokens · +100 prompt tokens and +104 cached tokens as the engine reported them
//           +108 requests and +112 prompt tokens in flight on the endpoint at the end · +116 i32 priority
//           +120 1 = other endpoints worked for the request before this one answered it
//   Unknown times are NaN, unknown counts u32.MAX_VALUE.
import { COLUMN_INFLIGHT, COLUMN_PROMPT_TOKENS, cell } from '../endpoints';
import { FEATURES_BYTES } from '../load/features';
import { entryOf, featuresOf } from '../load/ledger';
import { LABEL_COUNT, SAMPLE_BYTES, SAMPLE_RING } from '../memory';

export const SAMPLE_FEATURES: usize = 16;
export const SAMPLE_OUTCOME: usize = 80;
export const SAMPLE_FIRST_OUTPUT: usize = 84;
export const SAMPLE_PER_TOKEN: usize = 88;
export const SAMPLE_DURATION: usize = 92;
export const SAMPLE_OUTPUT_TOKENS: usize = 96;
export const SAMPLE_PROMPT_TOKENS: usize = 100;
export const SAMPLE_CACHED_TOKENS: usize = 104;
export const SAMPLE_INFLIGHT_AT_END: usize = 108;
export const SAMPLE_PROMPT_AT_END: usize = 112;
export const SAMPLE_PRIORITY: usize = 116;
export const SAMPLE_STAGED: usize = 120;

export const OUTCOME_COMPLETED: u32 = 0; // a good answer, to its end
export const OUTCOME_FAILED: u32 = 1; // the endpoint answered 5xx
export const OUTCOME_REFUSED: u32 = 2; // any other answer that is no success
export const OUTCOME_ABORTED: u32 = 3; // the stream ended before the answer did
export const OUTCOME_DIVERTED: u32 = 4; // another endpoint than the one that is charged answered

/**
 * Write the sample of a request that holds a ticket; its charge is still to be released. The caller asks once per ticket.
 * @returns 0 written, 1 the ticket is not held (any more): nothing to say
 */
export function sampleWrite(
  ticket: u32,
  generation: u32,
  outcome: u32,
  firstOutput: f32,
  perToken: f32,
  duration: f32,
  outputTokens: u32,
  promptTokens: u32,
  cachedTokens: u32,
  staged: bool,
): u32 {
  const entry = entryOf(ticket, generation);
  if (entry == null) return 1;
  const number = load<u32>(SAMPLE_RING);
  const at = SAMPLE_RING + 64 + <usize>(number % LABEL_COUNT) * SAMPLE_BYTES;
  const slot = entry.slot;
  store<f64>(at, entry.time);
  store<u32>(at, slot, 8);
  store<u32>(at, entry.slotGeneration, 12);
  memory.copy(at + SAMPLE_FEATURES, changetype<usize>(featuresOf(entry)), FEATURES_BYTES);
  store<u32>(at, outcome, SAMPLE_OUTCOME);
  store<f32>(at, firstOutput, SAMPLE_FIRST_OUTPUT);
  store<f32>(at, perToken, SAMPLE_PER_TOKEN);
  store<f32>(at, duration, SAMPLE_DURATION);
  store<u32>(at, outputTokens, SAMPLE_OUTPUT_TOKENS);
  store<u32>(at, promptTokens, SAMPLE_PROMPT_TOKENS);
  store<u32>(at, cachedTokens, SAMPLE_CACHED_TOKENS);
  store<u32>(at, load<u32>(cell(COLUMN_INFLIGHT, slot)), SAMPLE_INFLIGHT_AT_END);
  store<u32>(at, load<u32>(cell(COLUMN_PROMPT_TOKENS, slot)), SAMPLE_PROMPT_AT_END);
  store<i32>(at, entry.priority, SAMPLE_PRIORITY);
  store<u32>(at, <u32>staged, SAMPLE_STAGED);
  atomic.store<u32>(SAMPLE_RING, number + 1);
  return 0;
}
