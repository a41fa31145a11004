// Token usage of one answer: the block being read, the document's staged sum, and what has been committed.
//
// Owns: the usage words of a response scan (layout.ts); its own thread only, no lock.
//
// A usage object may come in every event, in parts and more than once. Later non-zero fields overwrite earlier ones; a
// zero only replaces "unknown". What a document says counts only once the whole document has turned out to be JSON.
import {
  FORM_SGLANG,
  MODE_EVENTS,
  SCAN_COMPLETED,
  SCAN_DETAILS_DEPTH,
  SCAN_FINISHED,
  SCAN_FORM,
  SCAN_MODE,
  SCAN_SCOPE,
  SCAN_STAGED,
  SCAN_USAGE,
  SCAN_USAGE_BLOCK,
  SCAN_USAGE_DEPTH,
  SCAN_USAGE_STAGED,
  SCOPE_RESPONSE,
  STAGED,
  STAGED_IF_COMPLETED,
  STAGED_NONE,
} from './layout';

const PROMPT: usize = 0;
const COMPLETION: usize = 8;
const TOTAL: usize = 16;
const CACHED: usize = 24;

/** The first whole number that is no token count: 2^53, above which f64 is not exact. */
export const NOT_A_COUNT: u64 = 1 << 53;

function forget(fields: usize): void {
  const unknown = f64x2.splat(-1);
  v128.store(fields, unknown);
  v128.store(fields, unknown, 16);
}

function copy(to: usize, from: usize): void {
  v128.store(to, v128.load(from));
  v128.store(to, v128.load(from, 16), 16);
}

/** A new scan knows nothing. */
export function usageReset(at: usize): void {
  forget(at + SCAN_USAGE);
}

/** The object that tells the usage opens at `depth`. */
export function usageOpen(at: usize, depth: u32): void {
  store<u32>(at, depth, SCAN_USAGE_DEPTH);
  store<u32>(at, 0, SCAN_DETAILS_DEPTH);
  store<u32>(at, 0, SCAN_FINISHED);
  forget(at + SCAN_USAGE_BLOCK);
}

/** Field `field` (0 prompt, 1 completion, 2 total, 3 cached) of the open usage object. */
export function usageCount(at: usize, field: u32, count: u64): void {
  if (count < NOT_A_COUNT) store<f64>(at + SCAN_USAGE_BLOCK + ((<usize>field) << 3), <f64>count);
}

/** Cached tokens that the open usage object does not tell are none, where it tells prompt or completion tokens. */
export function usageCachedIsZero(at: usize): void {
  const block = at + SCAN_USAGE_BLOCK;
  if (load<f64>(block, PROMPT) < 0 && load<f64>(block, COMPLETION) < 0) return;
  if (load<f64>(block, CACHED) < 0) store<f64>(block, 0, CACHED);
}

function overwrite(to: usize, count: f64): void {
  if (count > 0 || (count == 0 && load<f64>(to) < 0)) store<f64>(to, count);
}

/** SGLang tells its counters with every event; those before the last one only pass. */
function isPassing(at: usize): bool {
  if (load<u32>(at, SCAN_FORM) != FORM_SGLANG || load<u32>(at, SCAN_FINISHED) != 0) return false;
  return load<u32>(at, SCAN_MODE) == MODE_EVENTS;
}

/** The open usage object closes: its fields go into the document's staged usage. */
export function usageClose(at: usize): void {
  store<u32>(at, 0, SCAN_USAGE_DEPTH);
  if (isPassing(at)) return;
  const block = at + SCAN_USAGE_BLOCK;
  const staged = at + SCAN_USAGE_STAGED;
  if (load<u32>(at, SCAN_STAGED) == STAGED_NONE) copy(staged, at + SCAN_USAGE);
  if (load<u32>(at, SCAN_SCOPE) == SCOPE_RESPONSE) store<u32>(at, STAGED_IF_COMPLETED, SCAN_STAGED);
  else store<u32>(at, max(load<u32>(at, SCAN_STAGED), STAGED), SCAN_STAGED);
  const prompt = load<f64>(block, PROMPT);
  const completion = load<f64>(block, COMPLETION);
  const total = load<f64>(block, TOTAL);
  overwrite(staged + PROMPT, prompt);
  overwrite(staged + COMPLETION, completion);
  overwrite(staged + CACHED, load<f64>(block, CACHED));
  // A block that has both halves knows the total of them; else the parts may come from several blocks.
  if (prompt >= 0 && completion >= 0 && total > 0) {
    store<f64>(staged, total, TOTAL);
    return;
  }
  const known = max(load<f64>(staged, PROMPT), 0) + max(load<f64>(staged, COMPLETION), 0);
  if (load<f64>(staged, PROMPT) >= 0 || load<f64>(staged, COMPLETION) >= 0) store<f64>(staged, known, TOTAL);
  else overwrite(staged + TOTAL, total);
}

/** The document has ended as valid JSON: what it said about usage counts. */
export function usageCommit(at: usize): void {
  const staged = load<u32>(at, SCAN_STAGED);
  if (staged == STAGED || (staged == STAGED_IF_COMPLETED && load<u32>(at, SCAN_COMPLETED) != 0))
    copy(at + SCAN_USAGE, at + SCAN_USAGE_STAGED);
}
