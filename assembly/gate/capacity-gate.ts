// Events of a charge as the gate counts them: begin, first token, output, move, end; a scrape, an endpoint that leaves,
// a thread that dies.
//
// Owns: nothing; it tells the files that do. Called with the commit lock held, unless it takes it itself.
import { ASSERTIONS } from '../assertions';
import * as column from '../columns/column';
import { COLUMN_GENERATION, COLUMN_INFLIGHT } from '../endpoints';
import { entryAt, isCharged, LedgerEntry } from '../load/ledger-entries';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { REQUESTS, SLOTS } from '../memory';
import { isSlot } from '../preconditions';
import { bandAdd, bandKnown, bandUsed, rankOf } from './bands';
import {
  noteAnswered,
  noteCharge,
  noteFirstToken,
  noteForget,
  noteMove,
  noteOutput,
  noteRecount,
  noteRelease,
  notesClear,
  plainTokens,
} from './charges';
import { GATE, GATE_WAIT_MASK, gateChargeAt, gateOn, NOTE_ALONE, NOTE_BLIND, NOTE_EVICTED } from './layout';
import { learnEnd, learnFirstToken, learnFoot, learnForget, learnOutput, learnScrape, learnStep } from './learn';
import { ringControl } from './rings';
import { sessionsLeave } from './sessions';
import { sessionsHeld, sessionsOn } from './sessions-layout';
import { turnEnds, turnGrows, turnMoves, turnsRepair, turnsSeen } from './sessions-turns';
import { waitSlotAbandon, waitSlotRecount } from './wait-slots';

/** Milliseconds for which the lock is asked for: nobody else frees what a dead shard had waiting. */
const AFTER_DEATH: u32 = 2000;

/** Wakes the control thread when an endpoint may have room now and requests wait. */
export function gateOpened(): void {
  if (!gateOn()) return;
  if ((atomic.load<u32>(GATE, GATE_WAIT_MASK) | sessionsHeld()) != 0) ringControl();
}

export function slotIsCurrent(entry: LedgerEntry): bool {
  return column.u32(COLUMN_GENERATION, entry.slot) == entry.slotGeneration;
}

/** Sums the columns of pending requests again from the charges of the live entries. */
export function sumPendingAgain(): void {
  for (let slot: u32 = 0; slot < SLOTS; slot++) notesClear(slot);
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const entry = entryAt(i);
    if (isCharged(entry) && slotIsCurrent(entry)) noteRecount(i, entry.slot, entry.priority);
  }
}

/** The rank of a request that comes; its band is made if it has none. @param now pool clock, 0 = unknown */
export function gateEnter(priority: i32, now: f64): u32 {
  const rank = gateRank(priority);
  bandUsed(rank, now);
  return rank;
}

/** The rank of a priority; its band is made if it has none. */
export function gateRank(priority: i32): u32 {
  if (!bandKnown(priority) && bandAdd(priority)) {
    sumPendingAgain();
    // The control thread sets the ceiling of the new band.
    ringControl();
  }
  return rankOf(priority);
}

/**
 * A request was charged to `slot` as ledger entry `index`.
 * @param uncached prompt tokens that the endpoint does not hold
 * @param blocks whole blocks of the prompt
 */
export function gateCharged(
  index: u32,
  slot: u32,
  priority: i32,
  uncached: u32,
  prompt: u32,
  blocks: u32,
  blind: bool,
  now: f64,
): void {
  if (!gateOn()) {
    noteForget(index);
    return;
  }
  const alone = column.u32(COLUMN_INFLIGHT, slot) == 1;
  noteCharge(index, slot, priority, uncached, plainTokens(prompt, blocks), alone, blind);
  learnFoot(rankOf(priority), prompt, now);
}

/** The first token of an entry came. */
export function gateFirstToken(index: u32, now: f64): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  const current = slotIsCurrent(entry);
  noteAnswered(index, entry.slot, current);
  const state = noteFirstToken(index, entry.slot, entry.priority, current);
  // The endpoint has one unanswered request less, though the request had no pending tokens.
  if (state == 0) return gateOpened();
  if (current && (state & NOTE_BLIND) == 0 && now > 0) {
    learnFirstToken(index, entry.slot, now - entry.time, (state & NOTE_ALONE) != 0);
  }
  gateOpened();
}

/**
 * Another endpoint computes the prompt of an entry: nothing of it is pending here, and its first token says nothing
 * about this one.
 */
export function gatePrefillElsewhere(index: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  if (noteFirstToken(index, entry.slot, entry.priority, slotIsCurrent(entry)) != 0) gateOpened();
}

/** The output of an entry has grown to `tokens`. */
export function gateOutput(index: u32, tokens: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  const grown = noteOutput(index, entry.slot, tokens, slotIsCurrent(entry));
  if (grown == 0) return;
  learnOutput(grown);
  turnGrows(index, tokens);
}

/** A piece of output came `ms` after the one before. Takes no lock. */
export function gateStep(slot: u32, ms: f32): void {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (gateOn() && slot < SLOTS) learnStep(slot, ms);
}

/** The answer of an entry is complete and has `tokens` tokens. */
export function gateEnded(index: u32, tokens: u32, now: f64): void {
  if (!gateOn()) return;
  turnsSeen(now);
  gateOutput(index, tokens);
  if (gateChargeAt(index).output != 0) learnEnd(now);
}

/** An entry is about to be released; it is still charged. */
export function gateReleased(index: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  const evicted = (gateChargeAt(index).state & NOTE_EVICTED) != 0;
  turnEnds(index);
  noteRelease(index, entry.slot, entry.priority, slotIsCurrent(entry));
  // The control thread waits for its end, also when no request waits for its room any more.
  if (evicted) ringControl();
  else gateOpened();
}

/** An entry is about to be charged to another slot. */
export function gateMoved(index: u32, to: u32): void {
  if (!gateOn()) return;
  const entry = entryAt(index);
  turnMoves(index, to);
  noteMove(index, entry.slot, to, entry.priority, slotIsCurrent(entry));
  gateOpened();
}

/** A slot got another endpoint. */
export function gateSlotCleared(slot: u32): void {
  if (!gateOn()) return;
  notesClear(slot);
  if (sessionsOn()) sessionsLeave(slot);
  learnForget(slot);
}

/** A scrape of a slot was written. */
export function gateScraped(slot: u32): void {
  if (!gateOn()) return;
  learnScrape(slot);
  gateOpened();
}

/** The columns are summed again from the ledger's entries, and the waiting counts from the wait slots. */
export function gateRepair(): void {
  if (!gateOn()) return;
  sumPendingAgain();
  if (sessionsOn()) turnsRepair();
  waitSlotRecount();
}

/** A thread died: what it had waiting is gone. Takes the commit lock. @returns false when it could not be had */
export function gateThreadDied(thread: u32): bool {
  if (!gateOn()) return true;
  if (!lockAcquire(COMMIT_LOCK, AFTER_DEATH)) return false;
  waitSlotAbandon(thread);
  lockRelease(COMMIT_LOCK);
  gateOpened();
  return true;
}
