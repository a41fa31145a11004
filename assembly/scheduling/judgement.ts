// A decision judged before the commit lock is taken: the endpoints are scored without it, and under it only those are
// scored again whose requests in flight have changed meanwhile (load-journal.ts).
//
// Owns: nothing beyond what a run of the program writes: the thread's SCORE and KEYS columns and the picks in its
// answer, written by its own thread.
//
// The pick is the one that the program would make under the lock: an endpoint with the highest score and, among equal
// ones, with the fewest requests in flight, as all charges before it have left them. One thing may be older: the lot
// among endpoints that are equal in both was drawn before the lock, so one that has become equal since had no share in
// it. Programs of other forms, and decisions that look at more than the journal tells of, run under the lock as a
// whole (run-program.ts).
//
// Every slot outside the journal's last entries has the score and the rank that the judgement saw, so the pick of then
// is at least as good as each of them, unless its own have become worse.
import { ASSERTIONS } from '../assertions';
import { candidatesKept, candidatesStill } from '../columns/candidates';
import { slotOffset } from '../columns/column';
import { gateOn } from '../gate/layout';
import { isLoadAlone, journalChanges, journalSlot } from '../load-journal';
import { CANDIDATES, KEPT, PEAK_SLOTS, SCORE } from '../memory';
import {
  answer,
  DECIDE_EXPLAIN,
  DECIDE_FURTHER,
  DECIDE_GATED,
  DECIDE_SUBSET,
  hold,
  pickedSlot,
  request,
  setPickedSlot,
} from '../request-area';
import { nextIsSampled } from './cost-shares';
import { fusedScores, isInRange, rangeStays, scoreAgain, VALUE_AT_END, VALUE_SAME, valueAgain } from './fused-scorers';
import { takeSamples, wouldPick } from './marginal-cost';
import { pickedAlone, pickedRank, pickHighest, rankOf } from './pick-highest';
import { pick } from './pickers';
import { OP_PICK_MAX_SCORE, OP_WOULD_PICK, Program } from './program';
import { run } from './run-program';
import { scoresBegin } from './score-column';
import { scoresStand, standAgain, standingScores } from './standing-scores';

/** Changes since a judgement up to which slots are judged again one by one: a bit each of a word. */
const CHANGES_MAX: u32 = 64;

/** Changes of the journal before the judgement read the columns. */
let changes: u32 = 0;
/** Score of the pick, its rank, and whether no other candidate had the score. */
let pickScore: f32 = 0;
let pickRank: i32 = 0;
let pickAlone: bool = false;
/** Generator before the pick. */
let randomLow: u64 = 0;
let randomHigh: u64 = 0;
/** Whether a judgement has noted what marginal cost would pick: a run after it is no further sample. */
let sampled: bool = false;

/** Begins a decision. */
export function judgementBegin(): void {
  sampled = false;
}

/** Whether the program is a group of fused scorers, perhaps the note of marginal cost, and a picker of one endpoint. */
function isPlain(program: Program): bool {
  const fused = program.fused;
  if (fused == 0) return false;
  let at = fused;
  if (program.operations > at && program.operation(at).code == OP_WOULD_PICK) at++;
  if (program.operations != at + 1 || program.operation(at).code != OP_PICK_MAX_SCORE) return false;
  return program.operation(at).p0 <= 1;
}

/** Whether the decision reads nothing but what the journal tells of. */
function isJudgeable(program: Program, flags: u32): bool {
  if ((flags & (DECIDE_SUBSET | DECIDE_EXPLAIN)) != 0 || !isPlain(program)) return false;
  if ((flags & DECIDE_GATED) != 0 && (gateOn() || hold().ticket != 0)) return false;
  return program.projects == 0 || !nextIsSampled();
}

/** Restores the generator for a pick in the place of the judged one. */
function drawAgain(): void {
  request().randomLow = randomLow;
  request().randomHigh = randomHigh;
}

/** Says what marginal cost would pick. */
function noteWouldPick(program: Program, used: u32): void {
  const op = program.operation(program.fused);
  if (op.code != OP_WOULD_PICK) return;
  takeSamples(!sampled);
  wouldPick(op, used);
  takeSamples(true);
  sampled = true;
}

/**
 * Judges the request that is decided, without a lock.
 * @returns whether there is a pick, which confirmed() looks at under the lock
 */
export function judged(program: Program, flags: u32, used: u32, total: u32): bool {
  if (!isJudgeable(program, flags)) return false;
  changes = journalChanges();
  const candidates = candidatesStill(used, false);
  if (candidates == u32.MAX_VALUE || candidates == 0) return false;
  scoresBegin();
  // A single group has changed with each decision.
  const large = used > PEAK_SLOTS;
  if (large ? !standingScores(program, used, total, changes) : !fusedScores(program, 0, used, total)) return false;
  noteWouldPick(program, used);
  randomLow = request().randomLow;
  randomHigh = request().randomHigh;
  const op = program.operation(program.operations - 1);
  const count = pick(op, OP_PICK_MAX_SCORE, used, candidates);
  answer().notes = 0;
  answer().candidates = candidates;
  answer().count = count;
  if (count == 0) drawAgain();
  else notePick();
  return count != 0;
}

function notePick(): void {
  pickScore = load<f32>(SCORE + slotOffset(pickedSlot(0)));
  pickRank = pickedRank();
  pickAlone = pickedAlone();
}

function isJudged(slot: u32, used: u32): bool {
  return slot < used && load<i32>(CANDIDATES + slotOffset(slot)) != 0;
}

/**
 * Scores again what has changed: the last `count` entries of the journal.
 * @returns false = the range of the values has changed, and with it every score
 */
function scoredAgain(count: u32, used: u32, total: u32): bool {
  let moved: u64 = 0;
  let ends = false;
  for (let i: u32 = 0; i < count; i++) {
    const slot = journalSlot(changes + i);
    if (!isJudged(slot, used)) continue;
    const value = valueAgain(slot);
    if (value == VALUE_SAME) continue;
    moved |= (<u64>1) << i;
    if (value == VALUE_AT_END) ends = true;
  }
  if (moved == 0) return true;
  if (ends && !endsStay(moved, used)) return false;
  for (; moved != 0; moved &= moved - 1) scoreAgain(journalSlot(changes + <u32>ctz<u64>(moved)), total);
  return true;
}

/** Whether the range of the values is the same with those that have moved. */
function endsStay(moved: u64, used: u32): bool {
  for (let left = moved; left != 0; left &= left - 1) {
    if (!isInRange(journalSlot(changes + <u32>ctz<u64>(left)))) return false;
  }
  return rangeStays(used);
}

/** Returns whether slot `a` goes before slot `b`: by its score, then by its rank. */
function isBefore(a: u32, b: u32): bool {
  const mine = load<f32>(SCORE + slotOffset(a));
  const others = load<f32>(SCORE + slotOffset(b));
  return mine > others || (mine == others && rankOf(a) < rankOf(b));
}

/** Whether a slot that the judgement has picked is worse than then, so that one that has not changed may be better. */
function hasSunk(slot: u32): bool {
  const score = load<f32>(SCORE + slotOffset(slot));
  if (score != pickScore) return score < pickScore;
  return !pickAlone && rankOf(slot) > pickRank;
}

/** The pick of the judgement, or a better one among the last `count` entries of the journal. */
function bestOf(count: u32, used: u32): u32 {
  let best = pickedSlot(0);
  for (let i: u32 = 0; i < count; i++) {
    const slot = journalSlot(changes + i);
    if (isJudged(slot, used) && isBefore(slot, best)) best = slot;
  }
  return best;
}

/** Whether nothing but requests in flight has changed: the last `count` entries of the journal. */
function loadsAlone(count: u32): bool {
  for (let i: u32 = 0; i < count; i++) if (!isLoadAlone(changes + i)) return false;
  return true;
}

function confirm(used: u32, total: u32): bool {
  const count = journalChanges() - changes;
  if (count == 0) return true;
  if (count > CHANGES_MAX || !loadsAlone(count) || !scoredAgain(count, used, total)) return false;
  const slot = hasSunk(pickedSlot(0)) ? pickAgain(used) : bestOf(count, used);
  setPickedSlot(0, slot);
  return slot != u32.MAX_VALUE;
}

/** Picks by the scores as they are now. */
function pickAgain(used: u32): u32 {
  drawAgain();
  return pickHighest(used, SCORE);
}

/**
 * Makes the pick of a judgement the one that the program makes now. Commit lock held.
 * @returns false = the program has to run as a whole
 */
export function confirmed(program: Program, flags: u32, used: u32, total: u32): bool {
  if (!confirm(used, total)) {
    drawAgain();
    return false;
  }
  if (ASSERTIONS) checkPick(program, flags, used, total);
  candidatesKept(used, false, (flags & DECIDE_FURTHER) != 0);
  return true;
}

/** Runs the program of a decision whose judgement did not hold, or that had none. Commit lock held. @returns as run */
export function runLocked(program: Program, flags: u32, used: u32, total: u32, gated: bool, shown: bool): u32 {
  takeSamples(!sampled);
  const status = run(program, flags, used, total, gated, shown);
  takeSamples(true);
  return status;
}

/** Asserts that the candidates' scores are those that KEPT holds. Debug core only. */
function checkScores(used: u32): void {
  for (let slot: u32 = 0; slot < used; slot++) {
    if (load<i32>(CANDIDATES + slotOffset(slot)) == 0) continue;
    const judgedScore = load<f32>(KEPT + slotOffset(slot));
    const same = load<f32>(SCORE + slotOffset(slot)) == judgedScore;
    if (ASSERTIONS) assert(same, 'a judged score is the one under the lock');
  }
}

/** Asserts that scores and pick are those that the program makes now. Debug core only. */
function checkPick(program: Program, flags: u32, used: u32, total: u32): void {
  const slot = pickedSlot(0);
  memory.copy(KEPT, SCORE, slotOffset(used));
  const stood = scoresStand();
  const low = request().randomLow;
  const high = request().randomHigh;
  const noted = answer().wouldPick;
  takeSamples(false);
  run(program, flags | DECIDE_FURTHER, used, total, false, false);
  takeSamples(true);
  const other = pickedSlot(0);
  checkScores(used);
  const equal = !isBefore(other, slot) && !isBefore(slot, other);
  if (ASSERTIONS) assert(equal, 'a judged pick is as good as the one under the lock');
  if (stood) standAgain();
  setPickedSlot(0, slot);
  answer().wouldPick = noted;
  request().randomLow = low;
  request().randomHigh = high;
}
