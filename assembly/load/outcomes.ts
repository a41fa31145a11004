// The result of a request for its endpoint: ejection, doubt, or life.
//
// Owns nothing: ejection.ts and dead.ts write their columns. Takes the commit lock.
import { ASSERTIONS } from '../assertions';
import { deathOf } from '../columns/candidates';
import * as column from '../columns/column';
import { COLUMN_EJECTION, COLUMN_GENERATION, COLUMN_STATE, DEATH_DEAD, STATE_FREE } from '../endpoints';
import { journalAllChanged, journalEachChange } from '../load-journal';
import { COMMIT_LOCK, lockAcquire, lockRelease, lockSleepsMax } from '../lock';
import { poolWords } from '../pool-words';
import { isSlot, isTime } from '../preconditions';
import { answeredItself, answeredPerhaps, doubt } from './dead';
import { noteFailure, noteSuccess } from './ejection';

// Results of a request for the endpoint that it was sent to.
/** an answer came: of this endpoint, or of another after a retry that the proxy does not tell */
export const RESULT_ANSWERED: u32 = 0;
export const RESULT_FAILED: u32 = 1; // the endpoint answered 5xx
export const RESULT_UNANSWERED: u32 = 2; // a 5xx that the proxy may have made, or the proxy passed the endpoint over
export const RESULT_ANSWERED_ITSELF: u32 = 3; // the proxy tells that this endpoint answered

/** Bits of noteOutcome(): what the result has brought about. */
export const NOTED_EJECTED: u32 = 1;
export const NOTED_DOUBTED: u32 = 2; // the control thread is to look whether the endpoint takes connections

/**
 * Takes the result of a request, for the endpoint's ejection, doubt or death.
 * @param result RESULT_*
 * @returns NOTED_* bits
 */
export function noteOutcome(slot: u32, slotGeneration: u32, result: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isSlot(slot), 'the slot is one of the pool');
  if (ASSERTIONS) assert(result <= RESULT_ANSWERED_ITSELF, 'the result is a known one');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!lockAcquire(COMMIT_LOCK, lockSleepsMax())) return 0;
  journalEachChange();
  const ejected = poolWords().ejected;
  const dead = poolWords().dead;
  let outcome: u32 = 0;
  if (column.u32(COLUMN_GENERATION, slot) == slotGeneration && column.u32(COLUMN_STATE, slot) != STATE_FREE) {
    const failed = result == RESULT_FAILED || result == RESULT_UNANSWERED;
    if (result == RESULT_ANSWERED_ITSELF) answeredItself(slot, now);
    if (result == RESULT_ANSWERED) answeredPerhaps(slot, now);
    if (!failed) noteSuccess(slot);
    else if (deathOf(slot) != DEATH_DEAD && noteFailure(slot, now) != 0) outcome |= NOTED_EJECTED;
    if (result == RESULT_UNANSWERED && doubt(slot, now) != 0) outcome |= NOTED_DOUBTED;
    if (ASSERTIONS)
      assert(
        (outcome & NOTED_EJECTED) == 0 || column.u32(COLUMN_EJECTION, slot) != 0,
        'an endpoint that is told as ejected is out',
      );
  }
  if (poolWords().ejected != ejected || poolWords().dead != dead) journalAllChanged();
  lockRelease(COMMIT_LOCK);
  return outcome;
}
