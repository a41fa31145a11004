// One program run over the endpoints: filter, score, pick, in the order of its operations.
//
// Owns: the thread's CANDIDATES, SCORE and REMOVED columns and the picks in its answer, written by its own thread.
// Called under the commit lock.

import { candidatesKept, candidatesTouched, filterByHost, keepCandidates, markCandidates } from '../columns/candidates';
import { slotOffset } from '../columns/column';
import { EXPLAIN_COLUMNS, SCORE } from '../memory';
import {
  answer,
  DECIDE_DENIED,
  DECIDE_EXPLAIN,
  DECIDE_FILTERED,
  DECIDE_FURTHER,
  DECIDE_SUBSET,
  DECIDE_WAITS,
  DECIDED,
  pickedSlot,
  request,
} from '../request-area';
import { nextIsSampled } from './cost-shares';
import { REMOVED_BY_GATE } from './decision-record';
import { filter } from './filters';
import { fusedScores } from './fused-scorers';
import { gateEmpty, gateLeftAll, gateOpenReason, gatePass, gateShutReason, mayServe } from './gate-pass';
import { admitByLatency } from './latency';
import { wouldPick } from './marginal-cost';
import { pick } from './pickers';
import { answerPrediction, predict } from './predictions';
import { isFilter, isPicker, OP_ADMIT_LATENCY, OP_FILTER_HOST, OP_PREDICT, OP_WOULD_PICK, Program } from './program';
import { noteAllClosed, noteNotAdmitted, noteRemoved } from './removals';
import { scoresBegin } from './score-column';
import { score } from './scorer-table';
import { forgetScores } from './standing-scores';

/** Status after a filter that leaves no endpoint: the request waits if the gate has removed endpoints before. */
function leftNone(filter: u32): u32 {
  if (!gateLeftAll()) return DECIDE_WAITS;
  answer().filter = filter;
  return DECIDE_FILTERED;
}

/** Notes that `reason` has left `after` of `before` candidates. @returns `after` */
function narrowed(used: u32, before: u32, after: u32, reason: u32): u32 {
  if (after != before) {
    candidatesTouched();
    noteRemoved(used, reason);
  }
  return after;
}

/**
 * Marks the endpoints that may be picked, and the removals of the others, unless both columns are still valid.
 * @returns how many
 */
function admit(flags: u32, used: u32): u32 {
  const subset = (flags & DECIDE_SUBSET) != 0;
  const further = (flags & DECIDE_FURTHER) != 0;
  const same = candidatesKept(used, subset, further);
  if (same != u32.MAX_VALUE) return same;
  const count = markCandidates(used, request().now, subset, further);
  noteNotAdmitted(used);
  keepCandidates(used, count, subset);
  return count;
}

/** Runs a program over the endpoints that may be picked. Commit lock held. @returns a DECIDE_* status */
export function run(program: Program, flags: u32, used: u32, total: u32, gated: bool, shown: bool): u32 {
  answer().notes = 0;
  const candidates = admit(flags, used);
  answer().candidates = candidates;
  if (candidates == 0) return gateEmpty(gated);
  return runOperations(program, flags, used, total, gated, shown, candidates);
}

/**
 * Runs the program's operations over the slots that CANDIDATES marks. Commit lock held.
 * @param marked how many they are, at least one
 * @returns a DECIDE_* status
 */
export function runOperations(
  program: Program,
  flags: u32,
  used: u32,
  total: u32,
  gate: bool,
  shown: bool,
  marked: u32,
): u32 {
  let gated = gate;
  let candidates = marked;
  const live = candidates;
  scoresBegin();
  forgetScores();
  const operations = program.operations;
  const projected = program.projects != 0 && nextIsSampled();
  const explained = projected || (flags & DECIDE_EXPLAIN) != 0;
  let fused = explained || shown ? 0 : program.fused;
  if (fused == 0) memory.fill(SCORE, 0, slotOffset(used));
  let predicted = false;
  let filters: u32 = 0;
  for (let i: u32 = 0; i < operations; i++) {
    const op = program.operation(i);
    const code = op.code;
    if (gated && !mayServe(code)) {
      gated = false;
      const open = gatePass(used, candidates, live);
      answer().candidates = open;
      if (open == 0) {
        candidatesTouched();
        noteAllClosed(used, gateOpenReason(), gateShutReason());
        return DECIDE_WAITS;
      }
      candidates = narrowed(used, candidates, open, REMOVED_BY_GATE);
    }
    if (code == OP_FILTER_HOST) {
      candidates = narrowed(used, candidates, filterByHost(used, <u32>op.p0, op.p1 != 0, candidates), i + 1);
      answer().candidates = candidates;
      filters++;
      if (candidates == 0) return leftNone(filters);
    } else if (code == OP_PREDICT) {
      predict(op, used);
      predicted = true;
    } else if (code == OP_ADMIT_LATENCY) {
      if (!admitByLatency(used)) return DECIDE_DENIED;
    } else if (isFilter(code)) {
      candidates = narrowed(used, candidates, filter(op, code, used, total, candidates, filters + 1), i + 1);
      answer().candidates = candidates;
      filters++;
      if (candidates == 0) return leftNone(filters);
    } else if (code == OP_WOULD_PICK) {
      wouldPick(op, used);
    } else if (isPicker(code)) {
      answer().count = pick(op, code, used, candidates);
      if (predicted && answer().count != 0) answerPrediction(pickedSlot(0));
    } else if (fused != 0) {
      if (fusedScores(program, i, used, total)) i += fused - 1;
      else {
        memory.fill(SCORE, 0, slotOffset(used));
        i--;
      }
      fused = 0;
    } else if (explained || op.weight != 0) {
      // A scorer of weight 0 changes no pick: it is evaluated only to be shown.
      const columned = explained || shown;
      score(op, code, used, total, columned && i < EXPLAIN_COLUMNS ? <i32>i : -1);
    }
  }
  return DECIDED;
}
