// The sample ring: one record for each request that has ended, with its features at the decision and its outcome.
//
// Owns: REGION_SAMPLE_RING, one ring per thread, written by its thread only and read by any thread without a lock: the
// record is complete before the count moves, and a reader that finds the count a round further drops its copy.
//
// A ring begins with the number of records ever written (u32, atomic); from byte 64 on SAMPLE_COUNT records follow.
// Unknown times are NaN, unknown counts u32.MAX_VALUE.
import { ASSERTIONS } from '../assertions';
import { COLUMN_INFLIGHT, COLUMN_PROMPT_TOKENS, cell } from '../endpoints';
import { FEATURES_BYTES } from '../load/features';
import { hearingAt } from '../load/hearing';
import { entryOf, featuresOf } from '../load/ledger-entries';
import { SAMPLE_BYTES, SAMPLE_COUNT, SAMPLE_RING } from '../memory';
import { isSlot, isTicket } from '../preconditions';

/** Training sample of one request. */
@unmanaged
class SampleRecord {
  /** Time of the decision, ms · its thread · none. */
  time: f64;
  /** Endpoint slot · its thread · none. */
  slot: u32;
  /** Generation of the slot · its thread · none. */
  slotGeneration: u32;
  /** Features at the decision (load/features.ts) · its thread · none. */
  features: u64;
  private features1: u64;
  private features2: u64;
  private features3: u64;
  private features4: u64;
  private features5: u64;
  private features6: u64;
  private features7: u64;
  /** Outcome, OUTCOME_* · its thread · none. */
  outcome: u32;
  /** Time to the first output, ms · its thread · none. */
  firstOutput: f32;
  /** Time per output token, ms · its thread · none. */
  perToken: f32;
  /** Time to the end, ms · its thread · none. */
  duration: f32;
  /** Output tokens · its thread · none. */
  outputTokens: u32;
  /** Prompt tokens as the engine reported them · its thread · none. */
  promptTokens: u32;
  /** Cached prompt tokens as the engine reported them · its thread · none. */
  cachedTokens: u32;
  /** Requests in flight on the endpoint at the end · its thread · none. */
  inflightAtEnd: u32;
  /** Prompt tokens in flight on the endpoint at the end · its thread · none. */
  promptAtEnd: u32;
  /** Priority of the request · its thread · none. */
  priority: i32;
  /**
   * 1 = other endpoints worked for the request first, as in a prefill; from bit SAMPLE_BELOW_SHIFT on the shares of the
   * prompt below the GPU (load/ledger-entries.ts) · its thread · none.
   */
  staged: u32;
  /**
   * EXPECTS_* of the answer; UNHEARD is added when no output came, TARGETS_* when the request had targets of its own ·
   * its thread · none.
   */
  sign: u32;
}

export const SAMPLE_SLOT: usize = offsetof<SampleRecord>('slot');
export const SAMPLE_SLOT_GENERATION: usize = offsetof<SampleRecord>('slotGeneration');
export const SAMPLE_FEATURES: usize = offsetof<SampleRecord>('features');
export const SAMPLE_OUTCOME: usize = offsetof<SampleRecord>('outcome');
export const SAMPLE_FIRST_OUTPUT: usize = offsetof<SampleRecord>('firstOutput');
export const SAMPLE_PER_TOKEN: usize = offsetof<SampleRecord>('perToken');
export const SAMPLE_DURATION: usize = offsetof<SampleRecord>('duration');
export const SAMPLE_OUTPUT_TOKENS: usize = offsetof<SampleRecord>('outputTokens');
export const SAMPLE_PROMPT_TOKENS: usize = offsetof<SampleRecord>('promptTokens');
export const SAMPLE_CACHED_TOKENS: usize = offsetof<SampleRecord>('cachedTokens');
export const SAMPLE_INFLIGHT_AT_END: usize = offsetof<SampleRecord>('inflightAtEnd');
export const SAMPLE_PROMPT_AT_END: usize = offsetof<SampleRecord>('promptAtEnd');
export const SAMPLE_PRIORITY: usize = offsetof<SampleRecord>('priority');
export const SAMPLE_STAGED: usize = offsetof<SampleRecord>('staged');
export const SAMPLE_SIGN: usize = offsetof<SampleRecord>('sign');

/** Bit of SAMPLE_STAGED from which on the shares of the prompt below the GPU stand. */
export const SAMPLE_BELOW_SHIFT: u32 = 2;

export const UNHEARD: u32 = 16; // no output came
export const TARGETS_MISSED: u32 = 32; // the answer took longer than its request wanted
export const TARGETS_MET: u32 = 64; // it did not

export const OUTCOME_COMPLETED: u32 = 0; // a good answer, to its end
export const OUTCOME_FAILED: u32 = 1; // the endpoint answered 5xx
export const OUTCOME_REFUSED: u32 = 2; // any other answer that is no success
export const OUTCOME_ABORTED: u32 = 3; // the stream ended before the answer did
export const OUTCOME_DIVERTED: u32 = 4; // another endpoint than the one that is charged answered

/** Offset of the records in a ring: the count stands alone on its line. */
export const SAMPLE_RECORDS: usize = 64;

/**
 * Writes the sample of a request that holds a ticket; its charge is still to be released. The caller asks once per
 * ticket.
 * @param targets TARGETS_MET, TARGETS_MISSED, or 0: the request had none, or it cannot be said
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
  targets: u32,
): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  if (ASSERTIONS) assert(outcome <= OUTCOME_DIVERTED, 'the outcome is a known one');
  if (ASSERTIONS) assert((targets & ~(TARGETS_MISSED | TARGETS_MET)) == 0, 'targets are met, missed or none');
  const entry = entryOf(ticket, generation);
  if (entry == null) return 1;
  const number = load<u32>(SAMPLE_RING);
  const record = changetype<SampleRecord>(SAMPLE_RING + SAMPLE_RECORDS + <usize>(number % SAMPLE_COUNT) * SAMPLE_BYTES);
  const slot = entry.slot;
  if (ASSERTIONS) assert(isSlot(slot), 'a charged entry is of a slot of the pool');
  record.time = entry.time;
  record.slot = slot;
  record.slotGeneration = entry.slotGeneration;
  memory.copy(changetype<usize>(record) + SAMPLE_FEATURES, changetype<usize>(featuresOf(entry)), FEATURES_BYTES);
  record.outcome = outcome;
  record.firstOutput = firstOutput;
  record.perToken = perToken;
  record.duration = duration;
  record.outputTokens = outputTokens;
  record.promptTokens = promptTokens;
  record.cachedTokens = cachedTokens;
  record.inflightAtEnd = load<u32>(cell(COLUMN_INFLIGHT, slot));
  record.promptAtEnd = load<u32>(cell(COLUMN_PROMPT_TOKENS, slot));
  record.priority = entry.priority;
  record.staged = <u32>staged | (entry.below << SAMPLE_BELOW_SHIFT);
  const hearing = hearingAt(ticket - 1);
  record.sign = hearing.expects | (hearing.heard == 0 ? UNHEARD : 0) | targets;
  atomic.store<u32>(SAMPLE_RING, number + 1);
  return 0;
}
