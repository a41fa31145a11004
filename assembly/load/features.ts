// Features: state of the picked endpoint at the decision, before the request itself was charged. They are the inputs of
// the models that learn from the outcome of the request.
//
// Owns: the second 64 bytes of a ledger entry, and the columns PREFILL_RATE, PREFILL_RATE_TIME and PREFILL_RATE_PEAK.
// All under the commit lock; the owner of the entry reads its features without it, since it alone writes them.
import * as column from '../columns/column';
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
} from '../endpoints';
import { request } from '../request-area';

export const FEATURES: usize = 64;
export const FEATURES_BYTES: usize = 64;

/** State of endpoint and request at the charge. */
@unmanaged
export class Features {
  /** Prompt tokens · owner of the entry · commit lock. */
  prompt: u32;
  /** Uncached prompt tokens until the first output, then 0 · owner of the entry · commit lock. */
  prefill: u32;
  /** Uncached prompt tokens · owner of the entry · commit lock. */
  uncached: u32;
  /** Most cached tokens that any candidate held · owner of the entry · commit lock. */
  bestCached: u32;
  /** Requests in flight on the endpoint before this one · owner of the entry · commit lock. */
  inflight: u32;
  /** Uncached tokens there without a first output · owner of the entry · commit lock. */
  prefillAhead: u32;
  /** Prompt tokens in flight there · owner of the entry · commit lock. */
  promptAhead: u32;
  /** Requests waiting in the engine, as scraped · owner of the entry · commit lock. */
  waiting: f32;
  /** Requests running in the engine, as scraped · owner of the entry · commit lock. */
  running: f32;
  /** Share of the KV cache in use, as scraped · owner of the entry · commit lock. */
  kvUsage: f32;
  /**
   * SIGNAL_* bits; from bit 16 on slot + 1 that marginal cost would have picked, 0 = it was not asked · owner of the
   * entry · commit lock.
   */
  known: u32;
  /** Uncached tokens per millisecond sent there · owner of the entry · commit lock. */
  prefillRate: f32;
  /** Active blocks there · owner of the entry · commit lock. */
  activeBlocks: u32;
  /** Profile and PROGRAM_TAG << 8 · owner of the entry · commit lock. */
  tag: u32;
  /** Hash of the target model · owner of the entry · commit lock. */
  model: u64;
}

export const FEATURE_PROMPT: usize = offsetof<Features>('prompt');
export const FEATURE_UNCACHED: usize = offsetof<Features>('uncached');
export const FEATURE_BEST_CACHED: usize = offsetof<Features>('bestCached');
export const FEATURE_INFLIGHT: usize = offsetof<Features>('inflight');
export const FEATURE_PREFILL_AHEAD: usize = offsetof<Features>('prefillAhead');
export const FEATURE_PROMPT_AHEAD: usize = offsetof<Features>('promptAhead');
export const FEATURE_WAITING: usize = offsetof<Features>('waiting');
export const FEATURE_RUNNING: usize = offsetof<Features>('running');
export const FEATURE_KV_USAGE: usize = offsetof<Features>('kvUsage');
export const FEATURE_KNOWN: usize = offsetof<Features>('known');
export const FEATURE_PREFILL_RATE: usize = offsetof<Features>('prefillRate');
export const FEATURE_ACTIVE_BLOCKS: usize = offsetof<Features>('activeBlocks');
export const FEATURE_TAG: usize = offsetof<Features>('tag');
export const FEATURE_MODEL: usize = offsetof<Features>('model');
/** The upper half of the hash. */
export const FEATURE_MODEL_HIGH: usize = FEATURE_MODEL + sizeof<u32>();
/** Bit from which on the slot + 1 stands above the SIGNAL_* bits of FEATURE_KNOWN. */
export const FEATURE_WOULD_PICK_SHIFT: u32 = 16;
/** Bit from which on the program's tag stands above the profile in FEATURE_TAG. */
export const FEATURE_TAG_SHIFT: u32 = 8;

/** Time constant of the prefill rate: what was sent long before it counts no more. */
export const PREFILL_RATE_MS: f64 = 20000;

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
  const age = now - column.f64(COLUMN_PREFILL_RATE_TIME, slot);
  return <f64>column.f32(COLUMN_PREFILL_RATE, slot) * decayed(age / PREFILL_RATE_MS);
}

/** Writes the features of a request that is about to be charged to `slot`, and counts its work. Commit lock held. */
export function featuresNote(at: Features, slot: u32, prompt: u32, uncached: u32, tag: u32, now: f64): void {
  const rate = prefillRate(slot, now);
  at.prompt = prompt;
  at.prefill = uncached;
  at.uncached = uncached;
  at.bestCached = prompt - uncached;
  at.inflight = column.u32(COLUMN_INFLIGHT, slot);
  at.prefillAhead = column.u32(COLUMN_PREFILL_TOKENS, slot);
  at.promptAhead = column.u32(COLUMN_PROMPT_TOKENS, slot);
  at.waiting = column.f32(COLUMN_WAITING, slot);
  at.running = column.f32(COLUMN_RUNNING, slot);
  at.kvUsage = column.f32(COLUMN_KV_USAGE, slot);
  at.known = column.u32(COLUMN_KNOWN, slot);
  at.prefillRate = <f32>rate;
  at.activeBlocks = column.u32(COLUMN_ACTIVE_BLOCKS, slot);
  at.tag = tag;
  at.model = request().adapter;
  const next = <f32>(rate + <f64>uncached / PREFILL_RATE_MS);
  column.setF32(COLUMN_PREFILL_RATE, slot, next);
  if (next > column.f32(COLUMN_PREFILL_RATE_PEAK, slot)) column.setF32(COLUMN_PREFILL_RATE_PEAK, slot, next);
  column.setF64(COLUMN_PREFILL_RATE_TIME, slot, now);
}

/** Notes the slot (+ 1) that marginal cost would have picked. */
export function featuresNoteWouldPick(at: Features, slot: u32): void {
  at.known = (at.known & ((1 << FEATURE_WOULD_PICK_SHIFT) - 1)) | (slot << FEATURE_WOULD_PICK_SHIFT);
}

/** Notes the most cached tokens of any candidate, when that is more than the pick holds. */
export function featuresNoteBest(at: Features, cached: u32): void {
  if (cached > at.bestCached) at.bestCached = cached;
}
