// Scorers that look at what was sent where before, and what they need noted once a request is placed.
//
// Owns: the thread's KEYS and SCORE columns, written by its own thread; changes the histories (load/cold-prompts.ts,
// load/adapters.ts) under the commit lock, in the same step as the charge.
import { slotOffset } from '../columns/column';
import { soughtHome } from '../gate/sessions-sought';
import { adapterScore, adapterSent } from '../load/adapters';
import { coldRanks, coldSent } from '../load/cold-prompts';
import { isShownAdapter } from '../load/shown-adapters';
import { CANDIDATES, KEYS, MATCH } from '../memory';
import { DECIDE_BASE_MODEL, request } from '../request-area';
import { PROGRAM_NOTES_ADAPTER, PROGRAM_NOTES_COLD } from './program';
import { addConstant, addKeys } from './score-column';

/** Endpoints that the scorer of this decision remembers; 0 = the prompt is not cold. */
let coldSize: u32 = 0;

/** Note of the scorer for the charge; `noteCold` restores it after another program has run. */
export function coldNoted(): u32 {
  return coldSize;
}

export function noteCold(size: u32): void {
  coldSize = size;
}

/** Whether a candidate holds a part of the prompt. */
function isHeld(used: u32): bool {
  let some = i32x4.splat(0);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    some = v128.or(some, v128.and(v128.load(CANDIDATES + at), v128.load(MATCH + at)));
  }
  return v128.any_true(some);
}

/**
 * A prompt that some candidate holds in part: 0.5 for every candidate. Else 1 - rank / (n - 1), those never used first,
 * then those used longest ago; one candidate scores 1 (no-hit-lru-scorer).
 */
export function scoreNoHit(used: u32, size: u32): void {
  coldSize = 0;
  if (isHeld(used)) return addConstant(used, 0.5);
  coldSize = size;
  const count = coldRanks(used);
  const scale = f32x4.splat(count > 1 ? <f32>1 / <f32>(count - 1) : <f32>0);
  const one = f32x4.splat(1);
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    v128.store(KEYS + at, f32x4.sub(one, f32x4.mul(v128.load(KEYS + at), scale)));
  }
  addKeys(used);
}

/** 1 for the endpoint of the last turn of the session that the prompt goes on with, 0 for the others. */
export function scoreSessionHome(used: u32): void {
  const home = soughtHome();
  if (home < 0 || <u32>home >= used) return;
  memory.fill(KEYS, 0, slotOffset(used));
  store<f32>(KEYS + slotOffset(home), 1);
  addKeys(used);
}

function isBaseModel(): bool {
  return (request().flags & DECIDE_BASE_MODEL) != 0;
}

/**
 * Affinity to the endpoints that have the request's adapter; a configured base model is 0.5 everywhere
 * (lora-affinity-scorer). Remembered requests count only for names that an engine has shown as adapters; for other
 * names the gauges alone count.
 */
export function scoreAdapter(used: u32, remember: bool): void {
  if (isBaseModel()) return addConstant(used, 0.5);
  const wanted = request().adapter;
  const remembered = remember && isShownAdapter(wanted);
  for (let slot: u32 = 0; slot < used; slot++) {
    const at = slotOffset(slot);
    if (load<i32>(CANDIDATES + at) == 0) continue;
    store<f32>(KEYS + at, adapterScore(slot, wanted, remembered));
  }
  addKeys(used);
}

/** Fills `column` with the score of the request's adapter on every slot, for a recording. */
export function adapterColumn(used: u32, column: usize): void {
  const wanted = request().adapter;
  const shown = isShownAdapter(wanted);
  for (let slot: u32 = 0; slot < used; slot++) {
    store<f32>(column + slotOffset(slot), isBaseModel() ? <f32>0.5 : adapterScore(slot, wanted, shown));
  }
}

/**
 * Notes for later decisions that the request goes to an endpoint, as far as the program's scorers need it. Commit lock
 * held.
 */
export function noteSent(needs: u32, slot: u32): void {
  if ((needs & PROGRAM_NOTES_COLD) != 0 && coldSize != 0) coldSent(slot, coldSize);
  if ((needs & PROGRAM_NOTES_ADAPTER) == 0) return;
  if (!isBaseModel() && isShownAdapter(request().adapter)) adapterSent(slot);
}
