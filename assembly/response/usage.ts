// Token usage of one answer: the block being read, the document's staged sum, and what has been committed.
//
// Owns: the usage words of a response scan (layout.ts); its own thread only, no lock.
//
// A usage object may come in every event, in parts and more than once. Later non-zero fields overwrite earlier ones; a
// zero only replaces "unknown". What a document says counts only once the whole document has turned out to be JSON.
import { FORM_SGLANG, MODE_EVENTS, SCOPE_RESPONSE, STAGED, STAGED_IF_COMPLETED, STAGED_NONE } from './layout';
import { ResponseScan, Usage } from './scan-state';

/** The first whole number that is no token count: 2^53, above which f64 is not exact. */
export const NOT_A_COUNT: u64 = 1 << 53;

function forget(usage: Usage): void {
  usage.prompt = -1;
  usage.completion = -1;
  usage.total = -1;
  usage.cached = -1;
}

function copy(to: Usage, from: Usage): void {
  memory.copy(changetype<usize>(to), changetype<usize>(from), offsetof<Usage>());
}

/** Forgets the usage of the scan before. */
export function usageReset(at: ResponseScan): void {
  forget(at.usage);
}

/** Opens the object that tells the usage, at `depth`. */
export function usageOpen(at: ResponseScan, depth: u32): void {
  at.usageDepth = depth;
  at.detailsDepth = 0;
  at.finished = 0;
  forget(at.blockUsage);
}

/** Counts field `field`, in the order of Usage, of the open usage object. */
export function usageCount(at: ResponseScan, field: u32, count: u64): void {
  if (count < NOT_A_COUNT) store<f64>(changetype<usize>(at.blockUsage) + ((<usize>field) << 3), <f64>count);
}

/** Sets cached tokens to 0 where the open usage object has prompt or completion tokens and no cached ones. */
export function usageCachedIsZero(at: ResponseScan): void {
  const block = at.blockUsage;
  if (block.prompt < 0 && block.completion < 0) return;
  if (block.cached < 0) block.cached = 0;
}

/** Returns the value of a field, `known` so far, after `count`. */
function overwritten(known: f64, count: f64): f64 {
  return count > 0 || (count == 0 && known < 0) ? count : known;
}

/** Whether the event's counters only pass: SGLang tells them with every event, and the last ones count. */
function isPassing(at: ResponseScan): bool {
  if (at.form != FORM_SGLANG || at.finished != 0) return false;
  return at.mode == MODE_EVENTS;
}

/** Ends the open usage object: its fields go into the document's staged usage. */
export function usageClose(at: ResponseScan): void {
  at.usageDepth = 0;
  if (isPassing(at)) return;
  const block = at.blockUsage;
  const staged = at.stagedUsage;
  if (at.staged == STAGED_NONE) copy(staged, at.usage);
  if (at.scope == SCOPE_RESPONSE) at.staged = STAGED_IF_COMPLETED;
  else at.staged = max(at.staged, STAGED);
  staged.prompt = overwritten(staged.prompt, block.prompt);
  staged.completion = overwritten(staged.completion, block.completion);
  staged.cached = overwritten(staged.cached, block.cached);
  // A block that has both halves knows the total of them; else the parts may come from several blocks.
  if (block.prompt >= 0 && block.completion >= 0 && block.total > 0) staged.total = block.total;
  else if (staged.prompt >= 0 || staged.completion >= 0)
    staged.total = max(staged.prompt, <f64>0) + max(staged.completion, <f64>0);
  else staged.total = overwritten(staged.total, block.total);
}

/** Counts the usage of a document that has ended as valid JSON. */
export function usageCommit(at: ResponseScan): void {
  const staged = at.staged;
  if (staged == STAGED || (staged == STAGED_IF_COMPLETED && at.completed != 0)) copy(at.usage, at.stagedUsage);
}
