// Choice of the running request that is evicted for a waiting one of a higher band.
//
// Owns: the bits NOTE_EVICTED and NOTE_LOST of the ledger notes, written by the control thread under the commit lock,
// and as scratch that thread's columns KEYS, SCORE, OVERLAP and MATCH, which have no other use there.
//
// Requests are evicted only where waiting would not help soon: every endpoint that the waiting request may use is out
// of slots (2) or of room in its KV cache (3), or full as its detector says. A full window (1) empties within a step of
// the engine, so one endpoint with nothing else against it is enough to do nothing. Only sheddable requests (priority
// below 0) of a lower band are ended, as llm-d-router does it: lowest priority, then no first token yet, then where the
// fewest have to go, then the newest. An endpoint on which all of them together would not make the room is left alone.
import { ASSERTIONS } from '../assertions';
import { slotsUsed } from '../columns/candidates';
import * as column from '../columns/column';
import { slotOffset } from '../columns/column';
import { COLUMN_ACTIVE_BLOCKS, COLUMN_GENERATION, COLUMN_INFLIGHT, COLUMN_INFLIGHT_TOKENS } from '../endpoints';
import { entryAt, entryOf, isCharged } from '../load/ledger-entries';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { CANDIDATES, KEYS, MATCH, OVERLAP, REQUESTS, SCORE } from '../memory';
import { isScan, isThread, isTicket, isTime } from '../preconditions';
import { ceilingOf, rankOf } from './bands';
import {
  depth,
  FOOT_ROOM,
  HIGH_FACTOR,
  HIGH_MORE,
  HIGH_SHARE,
  keepOpen,
  LOW_SHARE,
  saturationKeys,
} from './conditions';
import { queuesForeign } from './foreign-queues';
import {
  GATE_CONCURRENCY_REQUESTS,
  GATE_CONCURRENCY_TOKENS,
  GATE_LEARNED,
  GATE_UTILIZATION,
  gateChargeAt,
  gateHead,
  gateOn,
  NOTE_COUNTED,
  NOTE_EVICTED,
  NOTE_LOST,
  NOTE_PENDING,
  ROOM_CAPACITY,
  ROOM_KV_NOW,
  ROOM_KV_RESERVED,
  ROOM_LIMIT,
  WAIT_SLOT_WAITING,
  waitSlotAt,
} from './layout';
import * as room from './room';
import { waitSlotCandidates } from './wait-slots';

const SHORT: u32 = 20;

/** Last choice: scratch of the thread, read right after the choice. */
let chosenGeneration: u32 = 0;
let chosenThread: u32 = 0;
let chosenPriority: i32 = 0;

/** Requests that have to leave a slot before it is open, as f32: what is on its way out already is taken off. */
function missingRequests(slot: u32): usize {
  return KEYS + slotOffset(slot);
}
/** Tokens that have to leave it, f32. */
function missingTokens(slot: u32): usize {
  return SCORE + slotOffset(slot);
}
/** Requests on it that may be ended, u32. */
function evictable(slot: u32): usize {
  return OVERLAP + slotOffset(slot);
}
/** Their tokens, f32. */
function evictableTokens(slot: u32): usize {
  return MATCH + slotOffset(slot);
}

function isCandidate(slot: u32): bool {
  return load<i32>(CANDIDATES + slotOffset(slot)) != 0;
}

/** The rule of conditions.ts, asked the other way round: what is too much on an endpoint for a request of this rank. */
function measureLearned(slot: u32, rank: u32, prompt: u32): void {
  const deep = depth(rank);
  const ceiling = ceilingOf(rank);
  const inflight = <f32>column.u32(COLUMN_INFLIGHT, slot);
  const limit = room.f32(ROOM_LIMIT, slot) * (1 + HIGH_FACTOR * (1 - deep)) * ceiling + HIGH_MORE * (1 - deep);
  store<f32>(missingRequests(slot), inflight + 1 - limit);
  const all = room.f32(ROOM_CAPACITY, slot);
  if (all <= 0 || inflight == 0) return;
  const now = <f32>room.u32(ROOM_KV_NOW, slot);
  const later = <f32>room.u32(ROOM_KV_RESERVED, slot);
  const held = <f32>(column.u32(COLUMN_ACTIVE_BLOCKS, slot) * gateHead().blockTokens);
  const need = <f32>prompt + deep * gateHead().reserve;
  const foot = rank == 0 ? <f32>0 : gateHead().foot * FOOT_ROOM * deep;
  const bound = min(all * (HIGH_SHARE - (HIGH_SHARE - LOW_SHARE) * deep) * ceiling, all - foot);
  store<f32>(missingTokens(slot), held + now + deep * (later - now) + need - bound);
}

/** A detector is open strictly below the band's ceiling. */
function measureDetected(slot: u32, mode: u32, rank: u32): void {
  const ceiling = ceilingOf(rank);
  if (mode == GATE_UTILIZATION) {
    // The detector reads scraped signals: one request is evicted, and the next scrape shows the effect.
    store<f32>(missingRequests(slot), load<f32>(missingRequests(slot)) >= ceiling ? 1 : 0);
    return;
  }
  const requests = <f32>column.u32(COLUMN_INFLIGHT, slot) - ceiling * gateHead().requests;
  const tokens = <f32>column.u32(COLUMN_INFLIGHT_TOKENS, slot) - ceiling * gateHead().tokens;
  store<f32>(missingRequests(slot), mode == GATE_CONCURRENCY_TOKENS || requests < 0 ? 0 : floor(requests) + 1);
  store<f32>(missingTokens(slot), mode == GATE_CONCURRENCY_REQUESTS || tokens < 0 ? 0 : tokens + 1);
}

/** Fills the scratch columns for the candidates. @returns false when one of them lacks nothing but a step's time */
function measure(used: u32, rank: u32, prompt: u32, now: f64): bool {
  const mode = gateHead().mode;
  if (mode == GATE_UTILIZATION) saturationKeys(used, now);
  else memory.fill(KEYS, 0, slotOffset(used));
  memory.fill(SCORE, 0, slotOffset(used));
  memory.fill(OVERLAP, 0, slotOffset(used));
  memory.fill(MATCH, 0, slotOffset(used));
  for (let slot: u32 = 0; slot < used; slot++) {
    // An engine with a queue from other senders fills freed room from that queue.
    if (queuesForeign(slot)) store<i32>(CANDIDATES + slotOffset(slot), 0);
    if (!isCandidate(slot)) continue;
    if (mode == GATE_LEARNED) measureLearned(slot, rank, prompt);
    else measureDetected(slot, mode, rank);
    if (load<f32>(missingRequests(slot)) <= 0 && load<f32>(missingTokens(slot)) <= 0) return false;
  }
  return true;
}

/**
 * Tokens that an entry's end frees on its endpoint, for a request of this depth. Shared blocks are counted as its own.
 */
function tokensOf(index: u32, mode: u32, deep: f32): f32 {
  const entry = entryAt(index);
  if (mode != GATE_LEARNED) return <f32>entry.tokens;
  const charge = gateChargeAt(index);
  const output = <f32>charge.output;
  const more = max<f32>(0, <f32>charge.reserve - output);
  const blocks = <f32>(entry.blocks * gateHead().blockTokens);
  return blocks + <f32>charge.plain + output + deep * more;
}

/** An entry that counts on a candidate: its slot, or -1. */
function candidateOf(index: u32, state: u32): i32 {
  if ((state & NOTE_COUNTED) == 0) return -1;
  const entry = entryAt(index);
  const slot = entry.slot;
  if (!isCharged(entry) || column.u32(COLUMN_GENERATION, slot) != entry.slotGeneration) return -1;
  return isCandidate(slot) ? <i32>slot : -1;
}

function mayBeEvicted(index: u32, state: u32, rank: u32): bool {
  const priority = entryAt(index).priority;
  return (state & NOTE_EVICTED) == 0 && priority < 0 && rankOf(priority) > rank;
}

/** Takes off what is on its way out, and sums what could follow. */
function sumEvictable(rank: u32): void {
  const mode = gateHead().mode;
  const deep = depth(rank);
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const state = gateChargeAt(i).state;
    const found = candidateOf(i, state);
    if (found < 0) continue;
    const slot = <u32>found;
    const tokens = tokensOf(i, mode, deep);
    if ((state & (NOTE_EVICTED | NOTE_LOST)) == NOTE_EVICTED) {
      store<f32>(missingRequests(slot), load<f32>(missingRequests(slot)) - 1);
      store<f32>(missingTokens(slot), load<f32>(missingTokens(slot)) - tokens);
    } else if (mayBeEvicted(i, state, rank)) {
      store<u32>(evictable(slot), load<u32>(evictable(slot)) + 1);
      store<f32>(evictableTokens(slot), load<f32>(evictableTokens(slot)) + tokens);
    }
  }
}

/**
 * Number of requests that have to leave a slot: what it lacks over what each of them frees on average.
 * @returns Infinity when all of them would not be enough
 */
function needed(slot: u32): f32 {
  const evictableCount = <f32>load<u32>(evictable(slot));
  const tokens = load<f32>(missingTokens(slot));
  const freed = load<f32>(evictableTokens(slot));
  const bySlots = ceil(max<f32>(0, load<f32>(missingRequests(slot))));
  if (evictableCount == 0 || bySlots > evictableCount) return Infinity;
  // An endpoint on which nothing runs takes anything.
  if (tokens > freed && evictableCount < <f32>column.u32(COLUMN_INFLIGHT, slot)) return Infinity;
  return max(bySlots, tokens <= 0 ? 0 : min(evictableCount, ceil((tokens * evictableCount) / freed)));
}

/**
 * Writes the need of every candidate into KEYS.
 * @returns false when an eviction under way makes the room on one of them
 */
function planSlots(used: u32): bool {
  for (let slot: u32 = 0; slot < used; slot++) {
    if (!isCandidate(slot)) continue;
    if (load<f32>(missingRequests(slot)) <= 0 && load<f32>(missingTokens(slot)) <= 0) return false;
    store<f32>(missingRequests(slot), needed(slot));
  }
  return true;
}

/** Returns whether the request of entry `a` is evicted before that of entry `b`. */
function goesFirst(a: u32, b: u32): bool {
  const one = entryAt(a);
  const other = entryAt(b);
  if (one.priority != other.priority) return one.priority < other.priority;
  const waits = gateChargeAt(a).state & NOTE_PENDING;
  if (waits != (gateChargeAt(b).state & NOTE_PENDING)) return waits != 0;
  const least = load<f32>(missingRequests(one.slot));
  const others = load<f32>(missingRequests(other.slot));
  return least != others ? least < others : one.time > other.time;
}

/** The request to end first. @returns its ledger entry, or -1 */
function first(rank: u32): i32 {
  let best: i32 = -1;
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const state = gateChargeAt(i).state;
    const slot = candidateOf(i, state);
    if (slot < 0 || !mayBeEvicted(i, state, rank)) continue;
    if (load<f32>(missingRequests(<u32>slot)) == Infinity) continue;
    if (best < 0 || goesFirst(i, <u32>best)) best = <i32>i;
  }
  return best;
}

/** The entry to end for a waiting request, or -1. Commit lock held. */
function choose(thread: u32, waiting: u32, now: f64): i32 {
  const at = waitSlotAt(thread, waiting);
  if (at.state != WAIT_SLOT_WAITING) return -1;
  const used = slotsUsed();
  const rank = rankOf(at.priority);
  const prompt = at.prompt;
  if (ceilingOf(rank) <= 0 || waitSlotCandidates(thread, waiting, used, -1, now) == 0) return -1;
  memory.fill(MATCH, 0, slotOffset(used));
  if (keepOpen(used, rank, at.uncached, prompt, true, now) != 0) return -1;
  waitSlotCandidates(thread, waiting, used, -1, now);
  if (!measure(used, rank, prompt, now)) return -1;
  sumEvictable(rank);
  return planSlots(used) ? first(rank) : -1;
}

/**
 * Chooses a running request that is to be ended for a waiting one, and marks it, so that it is not chosen again. Takes
 * the commit lock. Control thread only; its shard has to be told.
 * @param now pool clock
 * @returns its ticket, and evicted*() say the rest; 0 = nothing is to be ended, or the lock could not be had in time
 */
export function evictRequest(thread: u32, waiting: u32, now: f64): u32 {
  if (ASSERTIONS) assert(isThread(thread), 'the thread is one of the pool');
  if (ASSERTIONS) assert(isScan(waiting), 'the wait slot is one of the thread');
  if (ASSERTIONS) assert(isTime(now), 'the time is one of the pool clock');
  if (!gateOn() || !lockAcquire(COMMIT_LOCK, SHORT)) return 0;
  const index = choose(thread, waiting, now);
  if (index >= 0) {
    const charge = gateChargeAt(<u32>index);
    charge.state = charge.state | NOTE_EVICTED;
    const entry = entryAt(<u32>index);
    chosenGeneration = entry.generation;
    chosenThread = entry.thread;
    chosenPriority = entry.priority;
    if (ASSERTIONS) assert(isCharged(entry) && entry.priority < 0, 'an evicted request is a charged, sheddable one');
  }
  lockRelease(COMMIT_LOCK);
  if (ASSERTIONS) assert(index < <i32>REQUESTS, 'the evicted request is an entry of the ledger');
  return <u32>(index + 1);
}

/** Of the ticket that evictRequest() gave last on this thread. */
export function evictedGeneration(): u32 {
  return chosenGeneration;
}
export function evictedThread(): u32 {
  return chosenThread;
}
export function evictedPriority(): i32 {
  return chosenPriority;
}

/** Returns whether a ticket is still charged. Takes no lock. */
export function isHeld(ticket: u32, generation: u32): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  return u32(entryOf(ticket, generation) != null);
}

/**
 * A request that was to be ended has not ended in time: its room is not counted on any more. Takes the commit lock.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function evictionLost(ticket: u32, generation: u32): u32 {
  if (ASSERTIONS) assert(isTicket(ticket), 'the ticket is none or names an entry of the ledger');
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  if (entryOf(ticket, generation) != null) {
    const charge = gateChargeAt(ticket - 1);
    charge.state = charge.state | NOTE_LOST;
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}
