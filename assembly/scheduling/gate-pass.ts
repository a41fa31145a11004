// The capacity gate inside a decision: endpoints that may serve the request, those of them with room, and the wait
// without room.
//
// Owns: the thread's CLASS mask, written by its own thread. Commit lock held throughout: reservation and pick are one
// step.
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_GENERATION } from '../endpoints';
import { isTop, mustWait, othersWait } from '../gate/bands';
import { gateEnter, gateReleased } from '../gate/capacity-gate';
import { isLearnedOnly, markOpen } from '../gate/conditions';
import {
  gateOn,
  WAIT_FLAG_ANYWHERE,
  WAIT_FLAG_ASIDE,
  WAIT_FLAG_BLIND,
  WAIT_FLAG_HELD,
  WAIT_FLAG_HOME,
  WAIT_FLAG_TURN,
  WaitSlot,
  waitSlotAt,
  waitSlotMaskAddress,
} from '../gate/layout';
import { noteLook } from '../gate/sessions-found';
import { sessionsHead, sessionsHold, sessionsOn } from '../gate/sessions-layout';
import {
  claimOf,
  keepFitting,
  keepHome,
  LOOK_FITS,
  LOOK_FREE,
  LOOK_HELD,
  LOOK_HOME,
  LOOK_OPEN,
  leastNeed,
  lookedHeld,
  lookedHome,
  lookedWaits,
  sessionsLook,
  sessionsLookAgain,
} from '../gate/sessions-room';
import { soughtWord } from '../gate/sessions-sought';
import { waitSlotLocked } from '../gate/wait-slots';
import { endProbe } from '../load/ejection';
import { releaseEntry } from '../load/ledger';
import { ENTRY_PROBE, entryOf } from '../load/ledger-entries';
import { CANDIDATES, CLASS, KEPT, MATCH, SLOTS, THREAD } from '../memory';
import { poolWords } from '../pool-words';
import {
  DECIDE_BLIND,
  DECIDE_FURTHER,
  DECIDE_GATED,
  DECIDE_NO_CANDIDATES,
  DECIDE_NO_WAIT_SLOT,
  DECIDE_QUEUED,
  DECIDE_SUBSET,
  DECIDE_WAITS,
  hold,
  request,
} from '../request-area';
import { REMOVED_ASIDE, REMOVED_BEHIND, REMOVED_BY_GATE, REMOVED_BY_SESSIONS } from './decision-record';
import { OP_FILTER_CONTEXT_LENGTH, OP_FILTER_HOST, OP_FILTER_MASK } from './program';
import { noteRemoved } from './removals';

/** Slot + 1 that a dispatch held for this stage of the request, 0 = none. Scratch of one decision. */
let held: u32 = 0;
/**
 * True when the request came back with a dispatch, or an earlier stage of it found room: it overtakes no other request.
 */
let returned: bool = false;
/** Whether the gate has closed some of the endpoints that may serve the request. */
let closed: bool = false;
/** Whether the request may not go on before others, whatever room there is. */
let behind: bool = false;
/** Whether every live endpoint may serve it, so that one that comes later may too. */
let anywhere: bool = false;

/** Slot + 1 with so much more of the prompt than others that it is worth a short wait, 0 = none. */
let sticky: u32 = 0;
/** Whether the request waits for it although another one is open. */
let aside: bool = false;

/** What the session of the request leaves it: LOOK_*. */
let look: u32 = LOOK_FREE;

/**
 * Minimum of cached prefix (tokens) for which a request waits (docs/internals/flow-control.md, from simulations there).
 */
const STICKY_TOKENS: u32 = 256;

/** Whether a filter does not depend on load; the gate looks at the endpoints that such filters leave. */
export function mayServe(code: u32): bool {
  return code == OP_FILTER_MASK || code == OP_FILTER_HOST || code == OP_FILTER_CONTEXT_LENGTH;
}

/**
 * Releases the charge of a dispatch: the decision charges anew, perhaps elsewhere. The commit lock keeps the room free
 * meanwhile. A charge on an endpoint that is no candidate stays: it belongs to another stage of the request.
 * @param used slots in use; 0 = release without the check for a candidate
 */
function releaseHeld(used: u32): void {
  const ticket = hold().ticket;
  const entry = entryOf(ticket, hold().ticketGeneration);
  if (entry == null) return;
  const slot = entry.slot;
  if (used != 0 && (slot >= used || load<i32>(CANDIDATES + slotOffset(slot)) == 0)) return;
  if (column.u32(COLUMN_GENERATION, slot) == entry.slotGeneration) {
    held = slot + 1;
    if ((entry.flags & ENTRY_PROBE) != 0) endProbe(slot);
  }
  gateReleased(ticket - 1);
  releaseEntry(entry);
}

/** Begins a decision. @returns whether it is gated */
export function gateBegin(flags: u32): bool {
  held = 0;
  closed = false;
  returned = false;
  behind = false;
  sticky = 0;
  aside = false;
  look = LOOK_FREE;
  if ((flags & DECIDE_GATED) == 0) return false;
  returned = hold().ticket != 0 || (flags & DECIDE_FURTHER) != 0;
  if (gateOn()) return true;
  releaseHeld(0);
  return false;
}

/** Remembers who may serve the request, for the case that it has to wait. */
function writeClass(used: u32): void {
  memory.fill(CLASS, 0, SLOTS >> 3);
  for (let i: u32 = 0; i < used; i += 4) {
    const bits = <u32>i32x4.bitmask(v128.load(CANDIDATES + slotOffset(i)));
    const at = CLASS + (i >> 3);
    store<u8>(at, load<u8>(at) | <u8>(bits << (i & 7)));
  }
}

/**
 * The pool is empty: the request waits for the first endpoint that comes.
 * @returns DECIDE_WAITS, or DECIDE_NO_CANDIDATES
 */
export function gateEmpty(gated: bool): u32 {
  if (!gated || poolWords().live != 0) return DECIDE_NO_CANDIDATES;
  gateEnter(request().priority, request().now);
  memory.fill(CLASS, 0, SLOTS >> 3);
  anywhere = true;
  return DECIDE_WAITS;
}

/**
 * Keeps the candidates with room; none for a request that would overtake a waiting one.
 * @param live how many there were before any filter
 * @returns how many are left
 */
export function gatePass(used: u32, candidates: u32, live: u32): u32 {
  anywhere = candidates == live && (request().flags & DECIDE_SUBSET) == 0;
  releaseHeld(used);
  const now = request().now;
  const rank = gateEnter(request().priority, now);
  if (sessionsOn()) lookAtSessions(used, rank);
  behind = look == LOOK_HELD || (!returned && (mustWait(rank) || (request().flags & DECIDE_QUEUED) != 0));
  // The pool has room for the turn: the profile alone decides, as if there were no gate.
  if (!behind && look == LOOK_OPEN && isLearnedOnly(rank)) return candidates;
  const prompt = request().promptTokens;
  const window = look == LOOK_FREE || othersWait();
  let left = behind ? 0 : markOpen(used, rank, prompt, prompt, held, window, now);
  if (left == 0 && look != LOOK_FREE && isTop(rank)) {
    // The highest of several bands does not wait for an endpoint of its session.
    look = LOOK_FREE;
    readClass(used);
    left = behind ? 0 : markOpen(used, rank, prompt, prompt, held, true, now);
  }
  closed = left != candidates;
  if (!closed) return left;
  // Only a request that has lost an endpoint to the gate may have to wait for it.
  if (look == LOOK_FREE) writeClass(used);
  if (left == 0) return 0;
  if (look == LOOK_FREE && !returned && !isTop(rank) && hold().waitSlot != 0) sticky = findSticky(used, true);
  aside = sticky != 0;
  if (aside) return 0;
  memory.copy(CANDIDATES, KEPT, slotOffset(used));
  return left;
}

/** Looks what the session of the request leaves it of the candidates. */
function lookAtSessions(used: u32, rank: u32): void {
  const holds = sessionsHold() && (request().flags & DECIDE_FURTHER) == 0;
  let found = LOOK_FREE;
  if (!returned) found = sessionsLook(used, sessionsHold() && sessionsHead().held != 0 && !isTop(rank));
  else if (holds) found = held == 0 ? sessionsLook(used, false) : sessionsLookAgain(used);
  noteLook(found, found == LOOK_HELD ? leastNeed(used) : 0);
  // The highest of several bands is never held.
  if (!holds || (found == LOOK_HELD && isTop(rank))) return;
  look = found;
  if (look == LOOK_FREE) return;
  writeClass(used);
  if (look == LOOK_HOME) keepHome(used, held);
  if (look == LOOK_FITS) keepFitting(used, held);
  // The highest band may take the others yet.
  if (look != LOOK_HELD && !isTop(rank)) noteRemoved(used, REMOVED_BY_SESSIONS);
}

/** Marks those who may serve the request as candidates again. */
function readClass(used: u32): void {
  for (let slot: u32 = 0; slot < used; slot++) store<i32>(CANDIDATES + slotOffset(slot), isInClass(slot) ? -1 : 0);
}

function isInClass(slot: u32): bool {
  return (load<u32>(CLASS + ((<usize>(slot >> 5)) << 2)) & (1 << (slot & 31))) != 0;
}

/**
 * The endpoint worth a short wait, of those that may serve the request: it holds most of the prompt, and STICKY_TOKENS
 * more than any other.
 * @param closedOnly whether to search the slots that KEPT does not mark, and to compare with the marked ones
 * @returns slot + 1, 0 = there is none
 */
function findSticky(used: u32, closedOnly: bool): u32 {
  let best: u32 = 0;
  let longest: u32 = 0;
  let others: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (!isInClass(slot)) continue;
    const held = load<u32>(MATCH + slotOffset(slot));
    const open = closedOnly && load<i32>(KEPT + slotOffset(slot)) != 0;
    if (open || held <= longest) {
      if (!closedOnly || open) others = max(others, held);
      continue;
    }
    if (!closedOnly) others = longest;
    longest = held;
    best = slot + 1;
  }
  const block = request().blockTokens;
  const prompt = request().promptTokens;
  return min(longest * block, prompt) >= min(others * block, prompt) + STICKY_TOKENS ? best : 0;
}

/** Reason for endpoints with room that the request may not take now. */
export function gateOpenReason(): u32 {
  return aside ? REMOVED_ASIDE : look == LOOK_HELD ? REMOVED_BY_SESSIONS : REMOVED_BEHIND;
}

/** Reason for the other endpoints; without a look at their room it is the same. */
export function gateShutReason(): u32 {
  if (look == LOOK_HELD) return REMOVED_BY_SESSIONS;
  return behind ? REMOVED_BEHIND : REMOVED_BY_GATE;
}

/** Returns whether a lack of candidates has another cause than the gate. */
export function gateLeftAll(): bool {
  return !closed;
}

/** Prompt tokens that the endpoint which holds longest of it does not hold. */
function leastUncached(used: u32): u32 {
  let longest: u32 = 0;
  for (let slot: u32 = 0; slot < used; slot++) {
    if (!isInClass(slot)) continue;
    longest = max(longest, load<u32>(MATCH + slotOffset(slot)));
  }
  const cached = longest * request().blockTokens;
  const prompt = request().promptTokens;
  return prompt > cached ? prompt - cached : 0;
}

/** Describes the session of a turn that waits. @returns WAIT_FLAG_* bits */
function waitAsTurn(at: WaitSlot, used: u32): u32 {
  at.prefix = lookedWaits(used, returned, request().now);
  at.session = soughtWord();
  if (look != LOOK_HOME) {
    at.claim = claimOf(used);
    if (!returned) lookedHeld();
    return WAIT_FLAG_TURN | WAIT_FLAG_HELD;
  }
  at.sticky = lookedHome();
  return WAIT_FLAG_TURN | WAIT_FLAG_HOME;
}

/** Puts the request into its wait slot, as no endpoint has room. @returns DECIDE_WAITS, or DECIDE_NO_WAIT_SLOT */
export function gateWait(used: u32): u32 {
  const place = hold().waitSlot;
  if (place == 0) return DECIDE_NO_WAIT_SLOT;
  const slot = place - 1;
  const at = waitSlotAt(THREAD, slot);
  memory.copy(waitSlotMaskAddress(THREAD, slot), CLASS, SLOTS >> 3);
  at.prompt = request().promptTokens;
  at.uncached = leastUncached(used);
  at.output = request().outputTokens;
  // One that comes back has waited for it already.
  if (look == LOOK_FREE && !aside && !returned) sticky = findSticky(used, false);
  at.sticky = <i32>sticky - 1;
  at.session = 0;
  at.prefix = 0;
  let flags: u32 = (anywhere ? WAIT_FLAG_ANYWHERE : 0) | (aside ? WAIT_FLAG_ASIDE : 0);
  if ((request().flags & DECIDE_BLIND) != 0) flags |= WAIT_FLAG_BLIND;
  if (look != LOOK_FREE) flags |= waitAsTurn(at, used);
  waitSlotLocked(slot, request().priority, flags);
  return DECIDE_WAITS;
}
