// The request and the answer of one decision.
//
// Owns: the layout of the thread's own REQUEST area. Only its thread reads and writes it, without a lock.
//
//   +0      Request (host → decide)
//   +64     Answer (decide → host)
//   +256    u32 × PICKS_MAX: slots picked, in order of preference
//   +512    FilterNote × NOTES_MAX (decide → host)
//   +1,024  u64 × KEYS_MAX: hashes of the header values that the profiles look at, 0 = absent
//   +2,048  WantedTimes (host → decide)
//   +2,176  PredictedTimes (decide → host)
//   +2,304  PromptBeginning (chain → decide)
//   +3,072  Hold (host → decide)
//   +4,096  request id for the decision log (host → decide, scheduling/decision-log.ts)
//   +6,144  the answer while a shadow program runs (decide, scheduling/shadow.ts)
import { REQUEST } from './memory';

/** The request. */
@unmanaged
export class Request {
  /** Number of the profile · host · none. */
  profile: u32;
  /** DECIDE_* bits · host · none. */
  flags: u32;
  /** Whole blocks whose chain hashes stand in HASHES · host · none. */
  blocks: u32;
  /** Tokens of the prompt · host · none. */
  promptTokens: u32;
  /** Estimated output tokens that are charged as load · host · none. */
  outputTokens: u32;
  /** Priority · host · none. */
  priority: i32;
  /** Milliseconds of the pool clock · host · none. */
  now: f64;
  /** Hash of the target model name · host · none. */
  adapter: u64;
  /** Tokens of a block · host · none. */
  blockTokens: u32;
  /** Slot + 1 that an earlier profile of the same request picked, 0 = none · host · none. */
  earlier: u32;
  /** First word of the generator's state (xoroshiro128+) · host · none. */
  randomLow: u64;
  /** Second word of the generator's state · host · none. */
  randomHigh: u64;
}

/** The answer. */
@unmanaged
export class Answer {
  /** Endpoints picked · decide · none. */
  count: u32;
  /** Ledger entry + 1, 0 = not charged · decide · none. */
  ticket: u32;
  /** Generation of the ledger entry · decide · none. */
  ticketGeneration: u32;
  /** Blocks that the first pick holds already · decide · none. */
  matched: u32;
  /** Blocks of the prompt, tail included · decide · none. */
  total: u32;
  /** Endpoints left after the filters · decide · none. */
  candidates: u32;
  /** Weighted score of the first pick · decide · none. */
  score: f32;
  /** Tokens charged for the first pick · decide · none. */
  uncachedTokens: u32;
  /** Slot + 1 that marginal cost would pick, 0 = it was not asked · decide · none. */
  wouldPick: u32;
  /** Number of the decision's record + 1, 0 = none · decide · none. */
  record: u32;
  /** Number of the filter that left no endpoint, from 1 in the order of the program · decide · none. */
  filter: u32;
  /** Slot + 1 that the shadow program would pick, 0 = it did not run, u32.MAX_VALUE = none · decide · none. */
  shadow: u32;
  /** Predicted cost of that pick, in targets · decide · none. */
  shadowCost: f32;
  /** Predicted cost of the first pick, in targets; only beside a shadow pick · decide · none. */
  pickCost: f32;
  /** Filter notes behind the picks, at most NOTES_MAX · decide · none. */
  notes: u32;
}

/** What a filter has decided. */
@unmanaged
export class FilterNote {
  /** Number of the filter, from 1 in the order of the program · decide · none. */
  filter: u32;
  /** FILTER_* · decide · none. */
  outcome: u32;
  /** Candidates that the filter looked at · decide · none. */
  candidates: u32;
  /** Of these, the ones about which nothing is known · decide · none. */
  unknown: u32;
}

/** Latencies that the request wants. */
@unmanaged
export class WantedTimes {
  /** Longest time to first token, ms, 0 = none wanted · host · none. */
  ttft: f32;
  /** Longest time per output token, ms, 0 = none wanted · host · none. */
  tpot: f32;
}

/** Latencies predicted for the first pick. */
@unmanaged
export class PredictedTimes {
  /** Predicted time to first token of the first pick, ms, NaN = no prediction · decide · none. */
  ttft: f32;
  /** Predicted time per output token of the first pick, ms, NaN = no prediction · decide · none. */
  tpot: f32;
}

/** First whole block of a prompt and what it stands behind; written with the chain in HASHES. */
@unmanaged
export class PromptBeginning {
  /** Hash of the block's content alone, 0 = the prompt has no whole block · its thread · none. */
  content: u64;
  /** Link that stands for the model name and the cache salt · its thread · none. */
  root: u64;
  /** Link before the block, or of the first block of its tokens · its thread · none. */
  front: u64;
}

/** Host's part of a request that the capacity gate may let wait. */
@unmanaged
export class Hold {
  /** Ledger entry + 1 that a dispatch charged for this request, 0 = none · host · none. */
  ticket: u32;
  /** Generation of that entry · host · none. */
  ticketGeneration: u32;
  /** Free wait slot + 1, 0 = none is left · host · none. */
  waitSlot: u32;
}

/** What the headers of a request say of its session. */
@unmanaged
export class NamedSession {
  /** Hash of the name that they give it, 0 = none · host · none. */
  name: u64;
}

const ANSWER: usize = 64;
const NOTES: usize = 512;
const WANTED: usize = 2048;
const PREDICTED_TIMES: usize = 2176;
const PROMPT_BEGINNING: usize = 2304;
const HOLD: usize = 3072;
const NAMED: usize = 3200;

export function request(): Request {
  return changetype<Request>(REQUEST);
}

export function answer(): Answer {
  return changetype<Answer>(REQUEST + ANSWER);
}

export function wantedTimes(): WantedTimes {
  return changetype<WantedTimes>(REQUEST + WANTED);
}

export function predictedTimes(): PredictedTimes {
  return changetype<PredictedTimes>(REQUEST + PREDICTED_TIMES);
}

export function promptBeginning(): PromptBeginning {
  return changetype<PromptBeginning>(REQUEST + PROMPT_BEGINNING);
}

export function hold(): Hold {
  return changetype<Hold>(REQUEST + HOLD);
}

export function namedSession(): NamedSession {
  return changetype<NamedSession>(REQUEST + NAMED);
}

/** Slot of pick `index`. */
export function pickedSlot(index: u32): u32 {
  return load<u32>(REQUEST + ANSWER_PICKS + ((<usize>index) << 2));
}

export function setPickedSlot(index: u32, slot: u32): void {
  store<u32>(REQUEST + ANSWER_PICKS + ((<usize>index) << 2), slot);
}

/** Notes what filter `filter` has decided; what is more than NOTES_MAX is left out. */
export function noteFilter(filter: u32, outcome: u32, candidates: u32, unknown: u32): void {
  const number = answer().notes;
  if (number == NOTES_MAX) return;
  answer().notes = number + 1;
  const note = changetype<FilterNote>(REQUEST + NOTES + <usize>number * offsetof<FilterNote>());
  note.filter = filter;
  note.outcome = outcome;
  note.candidates = candidates;
  note.unknown = unknown;
}

export const REQUEST_PROFILE: usize = offsetof<Request>('profile');
export const REQUEST_FLAGS: usize = offsetof<Request>('flags');
export const REQUEST_BLOCKS: usize = offsetof<Request>('blocks');
export const REQUEST_PROMPT_TOKENS: usize = offsetof<Request>('promptTokens');
export const REQUEST_OUTPUT_TOKENS: usize = offsetof<Request>('outputTokens');
export const REQUEST_PRIORITY: usize = offsetof<Request>('priority');
export const REQUEST_NOW: usize = offsetof<Request>('now');
export const REQUEST_ADAPTER: usize = offsetof<Request>('adapter');
export const REQUEST_BLOCK_TOKENS: usize = offsetof<Request>('blockTokens');
export const REQUEST_EARLIER: usize = offsetof<Request>('earlier');
export const REQUEST_RANDOM: usize = offsetof<Request>('randomLow');
export const REQUEST_RANDOM_SECOND: usize = offsetof<Request>('randomHigh');
export const REQUEST_RANDOM_BYTES: usize = 2 * sizeof<u64>();
export const REQUEST_WANTED_TTFT: usize = WANTED + offsetof<WantedTimes>('ttft');
export const REQUEST_WANTED_TPOT: usize = WANTED + offsetof<WantedTimes>('tpot');
export const REQUEST_BEGINNING: usize = PROMPT_BEGINNING; // what a chain notes beside the hashes in HASHES
export const REQUEST_BEGINNING_BYTES: usize = offsetof<PromptBeginning>();
export const REQUEST_BEGINNING_CONTENT: usize = PROMPT_BEGINNING + offsetof<PromptBeginning>('content');
export const REQUEST_BEGINNING_FRONT: usize = PROMPT_BEGINNING + offsetof<PromptBeginning>('front');
export const REQUEST_HELD: usize = HOLD + offsetof<Hold>('ticket');
export const REQUEST_HELD_GENERATION: usize = HOLD + offsetof<Hold>('ticketGeneration');
export const REQUEST_WAIT_SLOT: usize = HOLD + offsetof<Hold>('waitSlot');
export const REQUEST_SESSION: usize = NAMED + offsetof<NamedSession>('name');
export const REQUEST_KEYS: usize = 1024;
export const KEYS_MAX: u32 = 16;

export const ANSWER_COUNT: usize = ANSWER + offsetof<Answer>('count');
export const ANSWER_TICKET: usize = ANSWER + offsetof<Answer>('ticket');
export const ANSWER_TICKET_GENERATION: usize = ANSWER + offsetof<Answer>('ticketGeneration');
export const ANSWER_MATCHED: usize = ANSWER + offsetof<Answer>('matched');
export const ANSWER_TOTAL: usize = ANSWER + offsetof<Answer>('total');
export const ANSWER_CANDIDATES: usize = ANSWER + offsetof<Answer>('candidates');
export const ANSWER_SCORE: usize = ANSWER + offsetof<Answer>('score');
export const ANSWER_UNCACHED_TOKENS: usize = ANSWER + offsetof<Answer>('uncachedTokens');
export const ANSWER_WOULD_PICK: usize = ANSWER + offsetof<Answer>('wouldPick');
export const ANSWER_RECORD: usize = ANSWER + offsetof<Answer>('record');
export const ANSWER_FILTER: usize = ANSWER + offsetof<Answer>('filter');
export const ANSWER_SHADOW: usize = ANSWER + offsetof<Answer>('shadow');
export const ANSWER_SHADOW_COST: usize = ANSWER + offsetof<Answer>('shadowCost');
export const ANSWER_PICK_COST: usize = ANSWER + offsetof<Answer>('pickCost');
export const ANSWER_NOTES: usize = ANSWER + offsetof<Answer>('notes');
export const ANSWER_FILTER_NOTES: usize = NOTES;
export const FILTER_NOTE_BYTES: usize = offsetof<FilterNote>();
export const FILTER_NOTE_FILTER: usize = offsetof<FilterNote>('filter');
export const FILTER_NOTE_OUTCOME: usize = offsetof<FilterNote>('outcome');
export const FILTER_NOTE_CANDIDATES: usize = offsetof<FilterNote>('candidates');
export const FILTER_NOTE_UNKNOWN: usize = offsetof<FilterNote>('unknown');
export const NOTES_MAX: u32 = 16;
export const ANSWER_TTFT: usize = PREDICTED_TIMES + offsetof<PredictedTimes>('ttft');
export const ANSWER_TPOT: usize = PREDICTED_TIMES + offsetof<PredictedTimes>('tpot');
export const ANSWER_PICKS: usize = 256;
export const PICKS_MAX: u32 = 64;

export const DECIDE_SUBSET: u32 = 1; // only the slots of the subset mask
export const DECIDE_UNCHARGED: u32 = 2; // decide without charge and without insertion
export const DECIDE_EXPLAIN: u32 = 8; // write every operation's column
export const DECIDE_TAIL: u32 = 16; // a hash of the partial last block follows the whole ones
export const DECIDE_BASE_MODEL: u32 = 32; // the model is a base model, no adapter
export const DECIDE_GATED: u32 = 65536; // only where the gate has room; otherwise enqueue
export const DECIDE_BLIND: u32 = 131072; // the first token of the answer will not be seen
export const DECIDE_QUEUED: u32 = 262144; // it has to go through the queues, whether there is room or not
/** charge, but store nothing: storePick follows when the whole request is placed */
export const DECIDE_UNSTORED: u32 = 256;
/** a further profile of the request decided last: what was matched for it still holds */
export const DECIDE_FURTHER: u32 = 512;
export const DECIDE_SESSION_ENDS: u32 = 2048; // it is the last turn of its session
export const DECIDE_GIVEN: u32 = 1024; // MATCH and OVERLAP are given: a recorded decision is played again

// Outcomes of filters that are counted.
export const FILTER_NOT_APPLICABLE: u32 = 0; // there was nothing to decide
export const FILTER_STICKY: u32 = 1; // prefix affinity: the holders of the prompt are left
export const FILTER_NO_MATCH: u32 = 2; // no endpoint holds enough
export const FILTER_LOAD_OVERRIDE: u32 = 3; // the holders have too much to do
export const FILTER_EXPLORATION: u32 = 4; // a random draw
export const FILTER_LISTED: u32 = 5; // served models: an endpoint lists the model
export const FILTER_UNLISTED: u32 = 6; // none lists it, and those without a list are left
export const FILTER_FALLBACK: u32 = 7; // none was left, and all are kept
export const FILTER_EMPTY: u32 = 8; // none is left

export const DECIDED: u32 = 0;
export const DECIDE_NO_CANDIDATES: u32 = 1; // no live endpoint, or none in the subset
export const DECIDE_FILTERED: u32 = 2; // the filters left none
export const DECIDE_BUSY: u32 = 3; // the commit lock could not be had in time
export const DECIDE_NO_PROGRAM: u32 = 4; // the profile has no program
export const DECIDE_DENIED: u32 = 5; // an admitter turned the request away
export const DECIDE_WAITS: u32 = 16; // no room: it waits in the wait slot
export const DECIDE_NO_WAIT_SLOT: u32 = 17; // no room, and no wait slot either
export const DECIDE_UNDECIDED: u32 = 32; // refused before any decision; only in the decision log
