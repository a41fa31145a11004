// Which running request is ended so that a waiting one of a higher band can go on.
//
// Owns: the bits NOTE_EVICTED and NOTE_LOST of the ledger notes, written by the control thread under the commit lock, and as
// scratch that thread's columns KEYS, SCORE, OVERLAP and MATCH, which nobody else needs there.
//
// It is done only where waiting would not help soon: every endpoint that the waiting request may use is out of slots (2) or of
// room in its KV cache (3), or full as its detector says. A full window (1) empties within a step of the engine, so one endpoint
// with nothing else against it is enough to do nothing. Only sheddable requests (priority below 0) of a lower band are ended, as
// llm-d-router does it: lowest priority, then no first token yet, then where the fewest have to go, then the newest. An endpoint
// on which all of them together would not make the room is left alone.
import { slotsUsed } from '../columns/candidates';
import { COLUMN_ACTIVE_BLOCKS, COLUMN_GENERATION, COLUMN_INFLIGHT, COLUMN_INFLIGHT_TOKENS, cell } from '../endpoints';
import {
  entryAt,
  entryBlocks,
  entryCharged,
  entryGeneration,
  entryOf,
  entryPriority,
  entrySlot,
  entrySlotGeneration,
  entryThread,
  entryTime,
  entryTokens,
} from '../load/ledger';
import { COMMIT_LOCK, lockAcquire, lockRelease } from '../lock';
import { CANDIDATES, KEYS, MATCH, OVERLAP, REQUESTS, SCORE } from '../memory';
import { rankOf } from './bands';
import {
  ceilingOf,
  depth,
  FOOT_ROOM,
  HIGH_FACTOR,
  HIGH_MORE,
  HIGH_SHARE,
  keepOpen,
  LOW_SHARE,
  saturationKeys,
} from './conditions';
import { queuesForeign } from './foreign';
import {
  GATE,
  GATE_BLOCK_TOKENS,
  GATE_CONCURRENCY_REQUESTS,
  GATE_CONCURRENCY_TOKENS,
  GATE_FOOT,
  GATE_LEARNED,
  GATE_MODE,
  GATE_REQUESTS,
  GATE_RESERVE,
  GATE_TOKENS,
  GATE_UTILIZATION,
  gateOn,
  NOTE_COUNTED,
  NOTE_EVICTED,
  NOTE_LOST,
  NOTE_OUTPUT,
  NOTE_PENDING,
  NOTE_PLAIN,
  NOTE_RESERVE,
  NOTE_STATE,
  noteAt,
  ROOM_CAPACITY,
  ROOM_KV_NOW,
  ROOM_KV_RESERVED,
  ROOM_LIMIT,
  room,
  WAIT_SLOT_PRIORITY,
  WAIT_SLOT_PROMPT,
  WAIT_SLOT_STATE,
  WAIT_SLOT_UNCACHED,
  WAIT_SLOT_WAITING,
  waitSlotAddress,
} from './layout';
import { waitSlotCandidates } from './wait-slots';

const SHORT: u32 = 20;

/** What was chosen last: scratch of the thread, read right after the choice. */
let chosenGeneration: u32 = 0;
let chosenThread: u32 = 0;
let chosenPriority: i32 = 0;

/** Requests that have to leave a slot before it is open, as f32: what is on its way out already is taken off. */
function missingRequests(slot: u32): usize {
  return KEYS + ((<usize>slot) << 2);
}
/** Tokens that have to leave it, f32. */
function missingTokens(slot: u32): usize {
  return SCORE + ((<usize>slot) << 2);
}
/** Requests on it that may be ended, u32. */
function evictable(slot: u32): usize {
  return OVERLAP + ((<usize>slot) << 2);
}
/** Their tokens, f32. */
function evictableTokens(slot: u32): usize {
  return MATCH + ((<usize>slot) << 2);
}

function isCandidate(slot: u32): bool {
  return load<i32>(CANDIDATES + ((<usize>slot) << 2)) != 0;
}

/** The rule of conditions.ts, asked the other way round: what is too much on an endpoint for a request of this rank. */
function measureLearned(slot: u32, rank: u32, prompt: u32): void {
  const deep = depth(rank);
  const ceiling = ceilingOf(rank);
  const inflight = <f32>load<u32>(cell(COLUMN_INFLIGHT, slot));
  const limit = load<f32>(room(ROOM_LIMIT, slot)) * (1 + HIGH_FACTOR * (1 - deep)) * ceiling + HIGH_MORE * (1 - deep);
  store<f32>(missingRequests(slot), inflight + 1 - limit);
  const all = load<f32>(room(ROOM_CAPACITY, slot));
  if (all <= 0 || inflight == 0) return;
  const now = <f32>load<u32>(room(ROOM_KV_NOW, slot));
  const later = <f32>load<u32>(room(ROOM_KV_RESERVED, slot));
  const held = <f32>(load<u32>(cell(COLUMN_ACTIVE_BLOCKS, slot)) * load<u32>(GATE, GATE_BLOCK_TOKENS));
  const need = <f32>prompt + deep * load<f32>(GATE, GATE_RESERVE);
  const foot = rank == 0 ? <f32>0 : load<f32>(GATE, GATE_FOOT) * FOOT_ROOM * deep;
  const bound = min(all * (HIGH_SHARE - (HIGH_SHARE - LOW_SHARE) * deep) * ceiling, all - foot);
  store<f32>(missingTokens(slot), held + now + deep * (later - now) + need - bound);
}

/** A detector is open strictly below the band's ceiling. */
function measureDetected(slot: u32, mode: u32, rank: u32): void {
  const ceiling = ceilingOf(rank);
  if (mode == GATE_UTILIZATION) {
    // What it looks at is scraped: one request leaves, and the next scrape says what that was worth.
    store<f32>(missingRequests(slot), load<f32>(missingRequests(slot)) >= ceiling ? 1 : 0);
    return;
  }
  const requests = <f32>load<u32>(cell(COLUMN_INFLIGHT, slot)) - ceiling * load<f32>(GATE, GATE_REQUESTS);
  const tokens = <f32>load<u32>(cell(COLUMN_INFLIGHT_TOKENS, slot)) - ceiling * load<f32>(GATE, GATE_TOKENS);
  store<f32>(missingRequests(slot), mode == GATE_CONCURRENCY_TOKENS || requests < 0 ? 0 : floor(requests) + 1);
  store<f32>(missingTokens(slot), mode == GATE_CONCURRENCY_REQUESTS || tokens < 0 ? 0 : tokens + 1);
}

/** Fill the scratch columns for the candidates. @returns false when one of them lacks nothing but a step's time */
function measure(used: u32, rank: u32, prompt: u32, now: f64): bool {
  const mode = load<u32>(GATE, GATE_MODE);
  if (mode == GATE_UTILIZATION) saturationKeys(used, now);
  else memory.fill(KEYS, 0, (<usize>used) << 2);
  memory.fill(SCORE, 0, (<usize>used) << 2);
  memory.fill(OVERLAP, 0, (<usize>used) << 2);
  memory.fill(MATCH, 0, (<usize>used) << 2);
  for (let slot: u32 = 0; slot < used; slot++) {
    // What leaves an engine with a queue that is not ours makes room for that queue.
    if (queuesForeign(slot)) store<i32>(CANDIDATES + ((<usize>slot) << 2), 0);
    if (!isCandidate(slot)) continue;
    if (mode == GATE_LEARNED) measureLearned(slot, rank, prompt);
    else measureDetected(slot, mode, rank);
    if (load<f32>(missingRequests(slot)) <= 0 && load<f32>(missingTokens(slot)) <= 0) return false;
  }
  return true;
}

/** Tokens that an entry's end frees on its endpoint, for a request of this depth. Shared blocks are counted as its own. */
function tokensOf(index: u32, mode: u32, deep: f32): f32 {
  const entry = entryAt(index);
  if (mode != GATE_LEARNED) return <f32>entryTokens(entry);
  const note = noteAt(index);
  const output = <f32>load<u32>(note, NOTE_OUTPUT);
  const more = max<f32>(0, <f32>load<u32>(note, NOTE_RESERVE) - output);
  const blocks = <f32>(entryBlocks(entry) * load<u32>(GATE, GATE_BLOCK_TOKENS));
  return blocks + <f32>load<u32>(note, NOTE_PLAIN) + output + deep * more;
}

/** An entry that counts on a candidate: its slot, or -1. */
function candidateOf(index: u32, state: u32): i32 {
  if ((state & NOTE_COUNTED) == 0) return -1;
  const entry = entryAt(index);
  const slot = entrySlot(entry);
  if (!entryCharged(entry) || load<u32>(cell(COLUMN_GENERATION, slot)) != entrySlotGeneration(entry)) return -1;
  return isCandidate(slot) ? <i32>slot : -1;
}

function mayBeEvicted(index: u32, state: u32, rank: u32): bool {
  const priority = entryPriority(entryAt(index));
  return (state & NOTE_EVICTED) == 0 && priority < 0 && rankOf(priority) > rank;
}

/** Take off what is on its way out, and sum what could follow. */
function sumEvictable(rank: u32): void {
  const mode = load<u32>(GATE, GATE_MODE);
  const deep = depth(rank);
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const state = load<u32>(noteAt(i), NOTE_STATE);
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
 * How many requests have to leave a slot: what it lacks over what each of them frees on average.
 * @returns Infinity when all of them would not be enough
 */
function needed(slot: u32): f32 {
  const most = <f32>load<u32>(evictable(slot));
  const tokens = load<f32>(missingTokens(slot));
  const freed = load<f32>(evictableTokens(slot));
  const bySlots = ceil(max<f32>(0, load<f32>(missingRequests(slot))));
  if (most == 0 || bySlots > most) return Infinity;
  // An endpoint on which nothing runs takes anything.
  if (tokens > freed && most < <f32>load<u32>(cell(COLUMN_INFLIGHT, slot))) return Infinity;
  return max(bySlots, tokens <= 0 ? 0 : min(most, ceil((tokens * most) / freed)));
}

/** What every candidate needs now, into KEYS. @returns false when one of them has its room already on its way */
function planSlots(used: u32): bool {
  for (let slot: u32 = 0; slot < used; slot++) {
    if (!isCandidate(slot)) continue;
    if (load<f32>(missingRequests(slot)) <= 0 && load<f32>(missingTokens(slot)) <= 0) return false;
    store<f32>(missingRequests(slot), needed(slot));
  }
  return true;
}

/** Whether the request of entry `a` is ended before that of entry `b`. */
function goesFirst(a: u32, b: u32): bool {
  const one = entryAt(a);
  const other = entryAt(b);
  if (entryPriority(one) != entryPriority(other)) return entryPriority(one) < entryPriority(other);
  const waits = load<u32>(noteAt(a), NOTE_STATE) & NOTE_PENDING;
  if (waits != (load<u32>(noteAt(b), NOTE_STATE) & NOTE_PENDING)) return waits != 0;
  const least = load<f32>(missingRequests(entrySlot(one)));
  const others = load<f32>(missingRequests(entrySlot(other)));
  return least != others ? least < others : entryTime(one) > entryTime(other);
}

/** The request to end first. @returns its ledger entry, or -1 */
function first(rank: u32): i32 {
  let best: i32 = -1;
  for (let i: u32 = 0; i < REQUESTS; i++) {
    const state = load<u32>(noteAt(i), NOTE_STATE);
    const slot = candidateOf(i, state);
    if (slot < 0 || !mayBeEvicted(i, state, rank)) continue;
    if (load<f32>(missingRequests(<u32>slot)) == Infinity) continue;
    if (best < 0 || goesFirst(i, <u32>best)) best = <i32>i;
  }
  return best;
}

/** The entry to end for a waiting request, or -1. Commit lock held. */
function choose(thread: u32, waiting: u32, now: f64): i32 {
  const at = waitSlotAddress(thread, waiting);
  if (load<u32>(at, WAIT_SLOT_STATE) != WAIT_SLOT_WAITING) return -1;
  const used = slotsUsed();
  const rank = rankOf(load<i32>(at, WAIT_SLOT_PRIORITY));
  const prompt = load<u32>(at, WAIT_SLOT_PROMPT);
  if (ceilingOf(rank) <= 0 || waitSlotCandidates(thread, waiting, used, -1, now) == 0) return -1;
  memory.fill(MATCH, 0, (<usize>used) << 2);
  if (keepOpen(used, rank, load<u32>(at, WAIT_SLOT_UNCACHED), prompt, now) != 0) return -1;
  waitSlotCandidates(thread, waiting, used, -1, now);
  if (!measure(used, rank, prompt, now)) return -1;
  sumEvictable(rank);
  return planSlots(used) ? first(rank) : -1;
}

/**
 * Choose a running request that is to be ended for a waiting one, and mark it, so that it is not chosen again. Takes the commit
 * lock. Control thread only; its shard has to be told.
 * @param now pool clock
 * @returns its ticket, and evicted*() say the rest; 0 = nothing is to be ended, or the lock could not be had in time
 */
export function evictRequest(thread: u32, waiting: u32, now: f64): u32 {
  if (!gateOn() || !lockAcquire(COMMIT_LOCK, SHORT)) return 0;
  const index = choose(thread, waiting, now);
  if (index >= 0) {
    const note = noteAt(<u32>index);
    store<u32>(note, load<u32>(note, NOTE_STATE) | NOTE_EVICTED, NOTE_STATE);
    const entry = entryAt(<u32>index);
    chosenGeneration = entryGeneration(entry);
    chosenThread = entryThread(entry);
    chosenPriority = entryPriority(entry);
  }
  lockRelease(COMMIT_LOCK);
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

/** Whether a ticket is still charged. Takes no lock. */
export function isHeld(ticket: u32, generation: u32): u32 {
  return u32(entryOf(ticket, generation) != 0);
}

/**
 * A request that was to be ended has not ended in time: its room is not counted on any more. Takes the commit lock.
 * @returns 0, or 1 when the lock could not be had: call again
 */
export function evictionLost(ticket: u32, generation: u32): u32 {
  if (!lockAcquire(COMMIT_LOCK, SHORT)) return 1;
  if (entryOf(ticket, generation) != 0) {
    const note = noteAt(ticket - 1);
    store<u32>(note, load<u32>(note, NOTE_STATE) | NOTE_LOST, NOTE_STATE);
  }
  lockRelease(COMMIT_LOCK);
  return 0;
}
