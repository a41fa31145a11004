// What was known about the picked endpoint when a request was decided, before the request itself was charged: the inputs
// of the models that learn from its outcome.
//
// Owns: the second 64 bytes of a ledger entry, and the columns PREFILL_RATE, PREFILL_RATE_TIME and PREFILL_RATE_PEAK. All under the commit
// lock; the owner of the entry reads its features without it, since nobody else writes them.
//
//   +0 prompt tokens · +4 uncached tokens while the first output has not come, then 0 · +8 uncached tokens
//   +12 most cached tokens that any candidate held · +16 requests in flight · +20 prefill tokens in flight
//   +24 prompt tokens in flight · +28 f32 waiting · +32 f32 running · +36 f32 KV usage (as scraped) · +40 SIGNAL_* known,
//   from bit 16 on slot + 1 that marginal cost would have picked, 0 = it was not asked
//   +44 f32 prefill rate, uncached tokens per millisecond · +48 active blocks · +52 profile and PROGRAM_TAG << 8
//   +56 u64 hash of the target model
import {
  COLUMN_ACTIVE_BLOCKS,
  COLUMN_INFLIGHT,
  COLUMN_KNOWN,
  COLUMN_KV_USAGE,
  COLUMN_PREFILL_RATE,
  COLUMN_PREFILL_RATE_PEAK,
  COLUMN_PREFILL_RATE_TIME,
  COLUMN_PREFILL_TOKENS,
  COLUMN_PROMPT_TOKENS,
  COLUMN_RUNNING,
  COLUMN_WAITING,
  cell,
  wideCell,
} from '../endpoints';
import { REQUEST } from '../memory';
import { REQUEST_ADAPTER } from '../request-area';

export const FEATURES: usize = 64;
export const FEATURES_BYTES: usize = 64;

export const FEATURE_PROMPT: usize = 0;
export const FEATURE_PREFILL: usize = 4;
export const FEATURE_UNCACHED: usize = 8;
export const FEATURE_BEST_CACHED: usize = 12;
export const FEATURE_INFLIGHT: usize = 16;
export const FEATURE_PREFILL_AHEAD: usize = 20;
export const FEATURE_PROMPT_AHEAD: usize = 24;
export const FEATURE_WAITING: usize = 28;
export const FEATURE_RUNNING: usize = 32;
export const FEATURE_KV_USAGE: usize = 36;
export const FEATURE_KNOWN: usize = 40;
export const FEATURE_PREFILL_RATE: usize = 44;
export const FEATURE_ACTIVE_BLOCKS: usize = 48;
export const FEATURE_TAG: usize = 52;
export const FEATURE_MODEL: usize = 56;

/** Time constant of the prefill rate: what was sent long before it counts no more. */
export const PREFILL_RATE_MS: f64 = 20000;

export function featuresOf(entry: usize): usize {
  return entry + FEATURES;
}

/** e^-x for x of 0 and above, relative error below 3e-6: 2^-y with the fraction of y by its power series. */
export function decayed(x: f64): f64 {
  if (!(x < 80)) return 0;
  const y = max(x, 0) * 1.4426950408889634;
  const whole = floor(y);
  const f = (y - whole) * 0.6931471805599453;
  const fraction = 1 + f * (1 + f * (0.5 + f * (1.0 / 6 + f * (1.0 / 24 + f * (1.0 / 120 + f * (1.0 / 720))))));
  return 1 / (fraction * reinterpret<f64>((<u64>(1023 + <i64>whole)) << 52));
}

/** Prefill rate of a slot at `now`, uncached tokens per millisecond. */
export function prefillRate(slot: u32, now: f64): f64 {
  const age = now - load<f64>(wideCell(COLUMN_PREFILL_RATE_TIME, slot));
  return <f64>load<f32>(cell(COLUMN_PREFILL_RATE, slot)) * decayed(age / PREFILL_RATE_MS);
}

/** Write the features of a request that is about to be charged to `slot`, and count its work. Commit lock held. */
export function featuresNote(at: usize, slot: u32, prompt: u32, uncached: u32, tag: u32, now: f64): void {
  const rate = prefillRate(slot, now);
  store<u32>(at, prompt, FEATURE_PROMPT);
  store<u32>(at, uncached, FEATURE_PREFILL);
  store<u32>(at, uncached, FEATURE_UNCACHED);
  store<u32>(at, prompt - uncached, FEATURE_BEST_CACHED);
  store<u32>(at, load<u32>(cell(COLUMN_INFLIGHT, slot)), FEATURE_INFLIGHT);
  store<u32>(at, load<u32>(cell(COLUMN_PREFILL_TOKENS, slot)), FEATURE_PREFILL_AHEAD);
  store<u32>(at, load<u32>(cell(COLUMN_PROMPT_TOKENS, slot)), FEATURE_PROMPT_AHEAD);
  store<f32>(at, load<f32>(cell(COLUMN_WAITING, slot)), FEATURE_WAITING);
  store<f32>(at, load<f32>(cell(COLUMN_RUNNING, slot)), FEATURE_RUNNING);
  store<f32>(at, load<f32>(cell(COLUMN_KV_USAGE, slot)), FEATURE_KV_USAGE);
  store<u32>(at, load<u32>(cell(COLUMN_KNOWN, slot)), FEATURE_KNOWN);
  store<f32>(at, <f32>rate, FEATURE_PREFILL_RATE);
  store<u32>(at, load<u32>(cell(COLUMN_ACTIVE_BLOCKS, slot)), FEATURE_ACTIVE_BLOCKS);
  store<u32>(at, tag, FEATURE_TAG);
  store<u64>(at, load<u64>(REQUEST + REQUEST_ADAPTER), FEATURE_MODEL);
  const next = <f32>(rate + <f64>uncached / PREFILL_RATE_MS);
  const peak = cell(COLUMN_PREFILL_RATE_PEAK, slot);
  store<f32>(cell(COLUMN_PREFILL_RATE, slot), next);
  if (next > load<f32>(peak)) store<f32>(peak, next);
  store<f64>(wideCell(COLUMN_PREFILL_RATE_TIME, slot), now);
}

/** Which slot (+ 1) marginal cost would have picked. */
export function featuresNoteWouldPick(at: usize, slot: u32): void {
  store<u32>(at, (load<u32>(at, FEATURE_KNOWN) & 0xffff) | (slot << 16), FEATURE_KNOWN);
}

/** Most cached tokens of any candidate, when that is more than the pick holds. */
export function featuresNoteBest(at: usize, cached: u32): void {
  if (cached > load<u32>(at, FEATURE_BEST_CACHED)) store<u32>(at, cached, FEATURE_BEST_CACHED);
}
