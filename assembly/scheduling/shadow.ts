// The shadow program: the pick of a candidate configuration for the same request in the same state, without effect.
//
// Owns: the thread's EXPLAIN columns STATE_COLUMNS .. STATE_COLUMNS + 3 and the answer's shadow fields, written by its
// own thread; the shadow turns of round-robin-picker under the commit lock. Called under the commit lock, behind the
// pick and before its charge.
//
// Everything that the decision still needs is put back: the answer with its picks, SCORE, CANDIDATES and REMOVED, the
// random generator. Both programs draw the same random numbers, so that a tie goes the same way in both.
import { markCandidates } from '../columns/candidates';
import { slotOffset } from '../columns/column';
import { CANDIDATES, EXPLAIN, REMOVED, REQUEST, SCORE, SLOTS } from '../memory';
import {
  ANSWER_PICKS,
  answer,
  DECIDE_EXPLAIN,
  DECIDE_FURTHER,
  DECIDE_GIVEN,
  DECIDE_SUBSET,
  DECIDE_UNCHARGED,
  DECIDED,
  PICKS_MAX,
  pickedSlot,
  predictedTimes,
  request,
} from '../request-area';
import { REMOVED_BY_GATE } from './decision-record';
import { coldNoted, noteCold } from './history-scorers';
import { predictCosts, takeSamples } from './marginal-cost';
import { pickInShadow } from './picker-algorithms';
import { Program, shadowProgram } from './program';
import { STATE_COLUMNS } from './recorded-state';
import { runOperations } from './run-program';
import { bestMatchNoted, noteBestMatch, noteReachable, reachableNoted } from './score-column';

// EXPLAIN columns from STATE_COLUMNS on, which nothing else uses once a decision is logged.
const SAVED_SCORES: u32 = 0;
const SAVED_CANDIDATES: u32 = 1;
const SAVED_REMOVED: u32 = 2;
const COSTS: u32 = 3;

/** Offset in the REQUEST area of the saved answer and picks. */
const SAVED_ANSWER: usize = 6144;
const ANSWER_FROM: usize = 64;
const ANSWER_BYTES: usize = ANSWER_PICKS - ANSWER_FROM + PICKS_MAX * 4;

/** Requests from one shadow decision to the next; 0 = none is decided in shadow. */
let every: u32 = 1;
/** Requests until the next shadow decision. */
let until: u32 = 1;
/** Whether the request decided last is also decided in shadow. */
let due: bool = false;
/** Generator as it was before the pick. */
let randomLow: u64 = 0;
let randomHigh: u64 = 0;

/** Decides one request of this thread in `count` also in shadow; 0 = none. */
export function shadowEvery(count: u32): void {
  every = count;
  until = 1;
}

function column(number: u32): usize {
  return EXPLAIN + ((<usize>((STATE_COLUMNS + number) * SLOTS)) << 2);
}

/** Whether decisions with these flags are shadowed: those of requests, and recorded ones when they are replayed. */
function mayShadow(flags: u32): bool {
  if ((flags & DECIDE_EXPLAIN) != 0) return false;
  return (flags & DECIDE_UNCHARGED) == 0 || (flags & DECIDE_GIVEN) != 0;
}

/** Begins a decision. @returns the program that runs in shadow too; null = none */
export function shadowBegin(flags: u32): Program | null {
  const program = shadowProgram(request().profile);
  if (program == null || every == 0 || !mayShadow(flags)) return null;
  if ((flags & DECIDE_FURTHER) == 0) {
    due = --until == 0;
    if (due) until = every;
  }
  if (!due) return null;
  randomLow = request().randomLow;
  randomHigh = request().randomHigh;
  return program;
}

/** Takes out the endpoints that the capacity gate has closed for this request. @returns how many are left */
function withoutClosed(used: u32, candidates: u32): u32 {
  const closed = i32x4.splat(REMOVED_BY_GATE);
  let out: u32 = 0;
  for (let at: usize = 0, end = slotOffset(used); at < end; at += 16) {
    const before = v128.load(CANDIDATES + at);
    const lanes = v128.and(before, i32x4.eq(v128.load(REMOVED + at), closed));
    if (!v128.any_true(lanes)) continue;
    out += <u32>popcnt<i32>(i32x4.bitmask(lanes));
    v128.store(CANDIDATES + at, v128.andnot(before, lanes));
  }
  return candidates - out;
}

/** Pick of the shadow program. @returns the slot, u32.MAX_VALUE = none */
function pickOf(program: Program, flags: u32, used: u32, total: u32): u32 {
  let candidates = markCandidates(used, request().now, (flags & DECIDE_SUBSET) != 0, true);
  candidates = withoutClosed(used, candidates);
  predictCosts(used, column(COSTS));
  if (candidates == 0) return u32.MAX_VALUE;
  answer().count = 0;
  takeSamples(false);
  pickInShadow(true);
  const status = runOperations(program, flags, used, total, false, false, candidates);
  pickInShadow(false);
  takeSamples(true);
  return status == DECIDED && answer().count != 0 ? pickedSlot(0) : u32.MAX_VALUE;
}

/** Runs the shadow program for a request that has its picks, and writes the comparison into the answer. */
export function shadowRun(program: Program, flags: u32, used: u32, total: u32): void {
  const bytes = slotOffset(used);
  const picked = pickedSlot(0);
  const low = request().randomLow;
  const high = request().randomHigh;
  const ttft = predictedTimes().ttft;
  const tpot = predictedTimes().tpot;
  const cold = coldNoted();
  const best = bestMatchNoted;
  const reachable = reachableNoted;
  memory.copy(REQUEST + SAVED_ANSWER, REQUEST + ANSWER_FROM, ANSWER_BYTES);
  memory.copy(column(SAVED_SCORES), SCORE, bytes);
  memory.copy(column(SAVED_CANDIDATES), CANDIDATES, bytes);
  memory.copy(column(SAVED_REMOVED), REMOVED, bytes);
  request().randomLow = randomLow;
  request().randomHigh = randomHigh;
  const slot = pickOf(program, flags, used, total);
  request().randomLow = low;
  request().randomHigh = high;
  predictedTimes().ttft = ttft;
  predictedTimes().tpot = tpot;
  noteCold(cold);
  noteBestMatch(best);
  noteReachable(reachable);
  memory.copy(SCORE, column(SAVED_SCORES), bytes);
  memory.copy(CANDIDATES, column(SAVED_CANDIDATES), bytes);
  memory.copy(REMOVED, column(SAVED_REMOVED), bytes);
  memory.copy(REQUEST + ANSWER_FROM, REQUEST + SAVED_ANSWER, ANSWER_BYTES);
  const costs = column(COSTS);
  answer().shadow = slot == u32.MAX_VALUE ? slot : slot + 1;
  answer().shadowCost = slot == u32.MAX_VALUE ? NaN : load<f32>(costs + slotOffset(slot));
  answer().pickCost = load<f32>(costs + slotOffset(picked));
}
