// Priority bands and what waits in them.
//
// Owns: the band table in the head of REGION_GATE: priorities, waiting counts, ceilings, drain times, last uses. Commit
// lock held throughout.
//
// A band is a priority; its rank is its place in the table, 0 = highest. Pending work is counted "nested": a band's
// columns hold its own work and that of higher bands, so that what waits below never closes the window above.
import {
  GATE,
  GATE_CEILINGS,
  GATE_DRAINS,
  GATE_PRIORITIES,
  GATE_RANKS,
  GATE_USED,
  GATE_WAIT_MASK,
  GATE_WAITING,
  gateHead,
} from './layout';

/** One table behind the other, each of GATE_RANKS cells. */
const TABLE_BYTES: usize = GATE_WAITING - GATE_PRIORITIES;

/** Address of a rank's cell in the head of the gate; GATE_PRIORITIES … GATE_USED are the offsets of the tables. */
function cellOf(rank: u32): usize {
  return GATE + ((<usize>rank) << 2);
}

function priorityOf(rank: u32): i32 {
  return load<i32>(cellOf(rank), GATE_PRIORITIES);
}

/** Part of the room that the band of a rank may take. */
export function ceilingOf(rank: u32): f32 {
  return load<f32>(cellOf(rank), GATE_CEILINGS);
}

export function setCeiling(rank: u32, ceiling: f32): void {
  store<f32>(cellOf(rank), ceiling, GATE_CEILINGS);
}

/** Seconds until what waits in the band of a rank has left, 0 = unknown. */
export function drainOf(rank: u32): f32 {
  return load<f32>(cellOf(rank), GATE_DRAINS);
}

export function setDrain(rank: u32, seconds: f32): void {
  store<f32>(cellOf(rank), seconds, GATE_DRAINS);
}

/** Bands of higher priority than `priority`: the rank that it has or would get. */
function placeOf(priority: i32): u32 {
  const bands = gateHead().bands;
  let rank: u32 = 0;
  while (rank < bands && priorityOf(rank) > priority) rank++;
  return rank;
}

/** Rank of a priority; one without a band goes with the next band below, or with the lowest. */
export function rankOf(priority: i32): u32 {
  const rank = placeOf(priority);
  const bands = gateHead().bands;
  return rank < bands ? rank : bands == 0 ? 0 : bands - 1;
}

/** Priority of the band that `priority` is counted in. */
export function bandOf(priority: i32): i32 {
  return gateHead().bands == 0 ? priority : priorityOf(rankOf(priority));
}

export function bandKnown(priority: i32): bool {
  const rank = placeOf(priority);
  return rank < gateHead().bands && priorityOf(rank) == priority;
}

function move(table: usize, from: u32, to: u32, count: u32): void {
  const at = GATE + table;
  memory.copy(at + ((<usize>to) << 2), at + ((<usize>from) << 2), (<usize>count) << 2);
}

/**
 * Adds a band for a priority that has none. The pending columns must be summed again afterwards.
 * @returns false when the table is full or the band is there
 */
export function bandAdd(priority: i32): bool {
  const bands = gateHead().bands;
  if (bands >= GATE_RANKS || bandKnown(priority)) return false;
  const rank = placeOf(priority);
  const at = cellOf(rank);
  for (let table: usize = GATE_PRIORITIES; table <= GATE_USED; table += TABLE_BYTES) {
    move(table, rank, rank + 1, bands - rank);
  }
  store<i32>(at, priority, GATE_PRIORITIES);
  store<u32>(at, 0, GATE_WAITING);
  store<u32>(at, 0, GATE_USED);
  setDrain(rank, 0);
  // Initial ceiling: that of the neighbouring band; 1 for the first band.
  if (bands == 0) setCeiling(rank, 1);
  else if (rank == bands) setCeiling(rank, ceilingOf(rank - 1));
  gateHead().bands = bands + 1;
  waitMaskUpdate();
  return true;
}

/**
 * Removes a band in which nothing waits. The pending columns must be summed again afterwards.
 * @returns false otherwise
 */
export function bandRemove(priority: i32): bool {
  const rank = placeOf(priority);
  const bands = gateHead().bands;
  if (!bandKnown(priority) || load<u32>(cellOf(rank), GATE_WAITING) != 0) return false;
  for (let table: usize = GATE_PRIORITIES; table <= GATE_USED; table += TABLE_BYTES) {
    move(table, rank + 1, rank, bands - rank - 1);
  }
  gateHead().bands = bands - 1;
  waitMaskUpdate();
  return true;
}

/** Notes a request of this rank. @param now pool clock, ms */
export function bandUsed(rank: u32, now: f64): void {
  if (now > 0) store<u32>(cellOf(rank), <u32>(now / 1000), GATE_USED);
}

/** Removes the bands in which nothing waits and that had no request since `before`, in seconds. @returns how many */
export function bandsForget(before: u32): u32 {
  let gone: u32 = 0;
  for (let rank = gateHead().bands; rank > 0; rank--) {
    const at = cellOf(rank - 1);
    if (load<u32>(at, GATE_USED) < before && bandRemove(load<i32>(at, GATE_PRIORITIES))) gone++;
  }
  return gone;
}

function waitMaskUpdate(): void {
  let mask: u32 = 0;
  const bands = gateHead().bands;
  for (let rank: u32 = 0; rank < bands; rank++) {
    if (load<u32>(cellOf(rank), GATE_WAITING) != 0) mask |= 1 << rank;
  }
  atomic.store<u32>(GATE, mask, GATE_WAIT_MASK);
}

/** Counts one request more (1) or less (-1) that waits in a band. */
export function waitingAdd(priority: i32, by: i32): void {
  const at = cellOf(rankOf(priority));
  store<u32>(at, load<u32>(at, GATE_WAITING) + by, GATE_WAITING);
  waitMaskUpdate();
}

/** Clears the waiting counts, before they are made again from the wait slots. */
export function waitingClear(): void {
  memory.fill(GATE + GATE_WAITING, 0, TABLE_BYTES);
  waitMaskUpdate();
}

export function waitingIn(rank: u32): u32 {
  return rank < GATE_RANKS ? load<u32>(cellOf(rank), GATE_WAITING) : 0;
}

/** Returns whether this is the highest of several bands. */
export function isTop(rank: u32): bool {
  return rank == 0 && gateHead().bands > 1;
}

/** Whether requests of any band wait, without those that are held. Takes no lock. */
export function othersWait(): bool {
  return atomic.load<u32>(GATE, GATE_WAIT_MASK) != 0;
}

/** Returns whether a request of this rank would overtake one that waits. */
export function mustWait(rank: u32): bool {
  return (gateHead().waitMask & ((2 << rank) - 1)) != 0;
}
