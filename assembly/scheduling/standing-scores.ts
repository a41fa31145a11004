// Scores that stand from one judged decision of a thread to its next: of a large pool only the groups of slots that
// have changed since, or hold blocks of one of the two prompts, are scored again.
//
// Owns: MARKS, of each group whether its scores have to be made anew, written by its own thread; SCORE, VALUES, PEAKS,
// LOWS and HIGHS stand as a fused group of scorers has left them (fused-scorers.ts). Reads the load journal and the
// endpoint columns without a lock.
//
// Without blocks of the prompt, a score follows from the terms of the group, the range of the values, and the columns
// of its slot; a prefix term of 0 blocks is 0. So it stands until the load journal names its slot, the range moves, or
// the terms become others. The count of the journal is taken before the columns are read: a change that comes meanwhile
// is among the entries of the next decision. Whatever writes SCORE otherwise says so (forgetScores), and every marking
// of candidates is part of such a run.
import { slotOffset } from '../columns/column';
import { JOURNAL_LENGTH, journalHolds, journalSlot } from '../load-journal';
import { MARKS, MATCH, PEAK_SLOTS } from '../memory';
import { fusedBegin, GROUP_BYTES, gather, noteScored, rangeTaken, scoreSlots } from './fused-scorers';
import { Program } from './program';

/** Mark of a group: its endpoints hold blocks of the prompt before (1), or its values have been gathered anew (2). */
const RENEWED: u32 = 2;

/** Whether the scores of the first `standingUsed` slots stand, as of `standingChanges` changes of the journal. */
let standing: bool = false;
let standingUsed: u32 = 0;
let standingChanges: u32 = 0;

/** Notes that SCORE holds something else than the last judgement has left. */
export function forgetScores(): void {
  standing = false;
}

/** Whether the scores of the last judgement stand. */
export function scoresStand(): bool {
  return standing;
}

/** Notes that SCORE holds again what the last judgement has left, or what follows from columns read since. */
export function standAgain(): void {
  standing = true;
}

function markOf(group: u32): usize {
  return MARKS + ((<usize>group) << 2);
}

/** Gathers the values of a group, once. @returns as gather */
function renew(group: u32, end: usize): bool {
  const mark = load<u32>(markOf(group));
  if ((mark & RENEWED) != 0) return true;
  store<u32>(markOf(group), mark | RENEWED);
  const at = <usize>group * GROUP_BYTES;
  return gather(at, min(end, at + GROUP_BYTES));
}

/** Result of renewChanged(). */
const CHANGED_KNOWN: u32 = 0; // the groups of all changes are renewed
const CHANGED_LOST: u32 = 1; // the journal does not name all changes
const CHANGED_LACKING: u32 = 2; // a candidate lacks a signal

/** Gathers the values of the groups that have changed since the last judgement, up to `changes`. */
function renewChanged(used: u32, changes: u32): u32 {
  const end = slotOffset(used);
  if (changes - standingChanges > JOURNAL_LENGTH) return CHANGED_LOST;
  for (let change = standingChanges; change != changes; change++) {
    const slot = journalSlot(change);
    if (slot < used && !renew(slot / PEAK_SLOTS, end)) return CHANGED_LACKING;
  }
  return journalHolds(standingChanges) ? CHANGED_KNOWN : CHANGED_LOST;
}

/** Whether an endpoint of a group holds blocks of the prompt. */
function holdsBlocks(at: usize, stop: usize): bool {
  let held = v128.load(MATCH + at);
  for (let i = at + 16; i < stop; i += 16) held = v128.or(held, v128.load(MATCH + i));
  return v128.any_true(held);
}

/** Whether the scores of a group have to be made anew. */
function hasMoved(at: usize, end: usize): bool {
  if (load<u32>(markOf(<u32>(at / GROUP_BYTES))) != 0) return true;
  return holdsBlocks(at, min(end, at + GROUP_BYTES));
}

/** Scores the groups that have moved, those in a row at once. */
function scoreMoved(end: usize, total: u32): void {
  for (let at: usize = 0; at < end; at += GROUP_BYTES) {
    if (!hasMoved(at, end)) continue;
    const from = at;
    do at += GROUP_BYTES;
    while (at < end && hasMoved(at, end));
    scoreSlots(from, min(end, at), total);
  }
}

/**
 * Scores the fused group that a program begins with, for a judgement.
 * @param changes count of the journal before any column was read
 * @returns as fusedScores
 */
export function standingScores(program: Program, used: u32, total: u32, changes: u32): bool {
  const end = slotOffset(used);
  const same = fusedBegin(program, 0);
  const known = standing && same && used == standingUsed ? renewChanged(used, changes) : CHANGED_LOST;
  standing = false;
  if (known == CHANGED_LACKING) return false;
  if (known == CHANGED_LOST && !gather(0, end)) return false;
  if (rangeTaken(end) && known == CHANGED_KNOWN) scoreMoved(end, total);
  else scoreSlots(0, end, total);
  noteScored(end);
  standing = true;
  standingUsed = used;
  standingChanges = changes;
  return true;
}
