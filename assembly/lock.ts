// Locks in shared memory that name their owner.
//
// Owns: the lock words in the header page (HEADER_COMMIT_LOCK, HEADER_INDEX_LOCK), each LockWords alone on 128 bytes.
// Order: the commit lock is never taken while the index lock is held, and the index lock is never taken while the
// commit lock is held. A thread that is killed inside keeps the word; the control thread repairs what the lock
// guards and then frees it.
//
// Spinning bridges what a lock is held for (under 1 µs each time); then sleep with a time-out. Pure futex waiting and
// pure spinning both collapse, the one under contention, the other when threads outnumber the cores.
import { ASSERTIONS } from './assertions';
import { journalRelease } from './load-journal';
import { HEADER, HEADER_COMMIT_LOCK, HEADER_INDEX_LOCK, THREAD, THREADS } from './memory';

const SPINS: i32 = 100;
const PAUSE: i32 = 400; // turns between two looks, so that the owner's line is not torn from it all the time
const SLEEP_NS: i64 = 1_000_000; // 1 ms: then the owner is looked at again

/** Guards the load columns of the endpoints, the ledger and the gate. */
export const COMMIT_LOCK: usize = HEADER + HEADER_COMMIT_LOCK;
/** Guards the prefix index and the active blocks. */
export const INDEX_LOCK: usize = HEADER + HEADER_INDEX_LOCK;

/** Words of a lock. */
@unmanaged
class LockWords {
  /** 0 = free, else thread + 1 · any thread · none, atomic. */
  owner: u32;
  private gap0: u32;
  /**
   * Threads that sleep on it, a bit per thread modulo 32. A missing bit costs a sleeper 1 ms, one too many a needless
   * notify · any thread · none, atomic.
   */
  sleepers: u32;
}

const LOCK_SLEEPERS: usize = offsetof<LockWords>('sleepers');

/**
 * Runs the checks of everything that a lock guards, just before its release (src/core/core-checks.ts). Debug build
 * only.
 */
declare function lockReleasing(lock: usize): void;

/** Counter whose writes keep the compiler from removing the pause loop. */
let pauseTurns: i32 = 0;

/**
 * Longest wait of a request's call for a lock, in sleeps of 1 ms. A shard outwaits the repair of a dead owner; the
 * control thread, which has to do that repair, gives up soon and comes again.
 */
export function lockSleepsMax(): u32 {
  return THREAD == 0 ? 20 : 2000;
}

function lockTry(lock: usize): bool {
  if (atomic.load<u32>(lock) != 0 || atomic.cmpxchg<u32>(lock, 0, THREAD + 1) != 0) return false;
  return true;
}

/**
 * Takes a lock, waiting at most about `sleeps` milliseconds after the spinning.
 * @returns true when the lock was taken; false when another thread held it for the whole time.
 */
export function lockAcquire(lock: usize, sleeps: u32): bool {
  if (ASSERTIONS) assert(lock == COMMIT_LOCK || lock == INDEX_LOCK, 'the lock is one of the pool');
  if (ASSERTIONS) assert(!lockHeld(COMMIT_LOCK) && !lockHeld(INDEX_LOCK), 'this thread holds no other lock');
  const taken = lockWait(lock, sleeps);
  if (ASSERTIONS) assert(taken == lockHeld(lock), 'a lock that was taken is held, and no other one');
  return taken;
}

function lockWait(lock: usize, sleeps: u32): bool {
  for (let i = 0; i < SPINS; i++) {
    if (lockTry(lock)) return true;
    for (pauseTurns = PAUSE; pauseTurns > 0; ) pauseTurns--;
  }
  const bit: u32 = 1 << (THREAD & 31);
  atomic.or<u32>(lock, bit, LOCK_SLEEPERS);
  let taken = false;
  for (let i: u32 = 0; i < sleeps && !taken; i++) {
    const seen = atomic.load<u32>(lock);
    if (seen != 0) atomic.wait<u32>(lock, seen, SLEEP_NS);
    taken = lockTry(lock);
  }
  atomic.and<u32>(lock, ~bit, LOCK_SLEEPERS);
  return taken || lockTry(lock);
}

/** Releases a lock; wakes one sleeper when there is one. */
export function lockRelease(lock: usize): void {
  if (ASSERTIONS) assert(lockHeld(lock), 'the lock is held by the thread that releases it');
  if (ASSERTIONS) lockReleasing(lock);
  if (lock == COMMIT_LOCK) journalRelease();
  atomic.store<u32>(lock, 0);
  if (atomic.load<u32>(lock, LOCK_SLEEPERS) != 0) atomic.notify(lock, 1);
  if (ASSERTIONS) assert(!lockHeld(lock), 'a released lock is not held any more');
}

/** Returns whether this thread holds the lock. */
export function lockHeld(lock: usize): bool {
  return atomic.load<u32>(lock) == THREAD + 1;
}

/** The owner's thread + 1, or 0. */
export function lockOwner(lock: usize): u32 {
  if (ASSERTIONS) assert(lock == COMMIT_LOCK || lock == INDEX_LOCK, 'the lock is one of the pool');
  const owner = atomic.load<u32>(lock);
  if (ASSERTIONS) assert(owner <= THREADS, 'a lock is free or held by a thread of the pool');
  return owner;
}

/**
 * Takes over a lock from a dead thread, so that what it guards can be repaired; a dead sleeper is forgotten.
 * @returns true when `dead` held it and it is ours now.
 */
export function lockSeize(lock: usize, dead: u32): bool {
  if (ASSERTIONS) assert(lock == COMMIT_LOCK || lock == INDEX_LOCK, 'the lock is one of the pool');
  if (ASSERTIONS) assert(dead != THREAD, 'a thread takes over no lock of its own');
  atomic.and<u32>(lock, ~(1 << (dead & 31)), LOCK_SLEEPERS);
  const seized = atomic.cmpxchg<u32>(lock, dead + 1, THREAD + 1) == dead + 1;
  if (ASSERTIONS) assert(seized == lockHeld(lock), 'a lock that was taken over is held, and no other one');
  return seized;
}
