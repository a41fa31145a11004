// Rings of numbers between one writing and one reading thread, and the bells that wake a reader.
//
// Owns: the rings and the bell words of REGION_GATE. No lock: the writer owns WRITTEN and the numbers before it, the
// reader READ. A ring holds more numbers than can be on their way at once, so it cannot be full.
//
// No wake-up is lost. A reader stores that it is asleep and then reads the ring once more. A writer stores its number,
// counts the bell, and then reads whether the reader is asleep. One of the two sees the other, because all of these
// words are atomic and sequentially consistent. Only the reader clears its own word. A writer that cleared it would be
// too early for a reader that is about to wait. A writer killed between clearing and notifying would let the next
// writer take the reader to be awake. test/core/gate-protocol.test.ts has the steps.
import { ASSERTIONS } from '../assertions';
import {
  GATE,
  GATE_ASLEEP,
  GATE_BELL,
  RING_ASLEEP,
  RING_BELL,
  RING_HEAD_BYTES,
  RING_READ,
  RING_WRITTEN,
} from './layout';

function numberAt(ring: usize, at: u32, size: u32): usize {
  return ring + RING_HEAD_BYTES + ((<usize>(at % size)) << 2);
}

/** Appends a number. @param size numbers that the ring has room for */
export function ringPush(ring: usize, size: u32, value: u32): void {
  const written = load<u32>(ring, RING_WRITTEN);
  store<u32>(numberAt(ring, written, size), value);
  atomic.store<u32>(ring, written + 1, RING_WRITTEN);
  if (ASSERTIONS) assert(written + 1 - atomic.load<u32>(ring, RING_READ) <= size, 'a ring holds what was pushed to it');
}

/** Takes the oldest number. @returns it, or -1 when there is none */
export function ringPop(ring: usize, size: u32): i32 {
  const read = load<u32>(ring, RING_READ);
  if (atomic.load<u32>(ring, RING_WRITTEN) == read) return -1;
  const value = load<i32>(numberAt(ring, read, size));
  atomic.store<u32>(ring, read + 1, RING_READ);
  return value;
}

/** Forgets what is in a ring whose other end has died. */
export function ringClear(ring: usize): void {
  atomic.store<u32>(ring, 0, RING_WRITTEN);
  atomic.store<u32>(ring, 0, RING_READ);
  atomic.store<u32>(ring, 0, RING_ASLEEP);
}

function ring(bell: usize, asleep: usize): void {
  atomic.add<u32>(bell, 1);
  if (atomic.load<u32>(asleep) != 0) atomic.notify(bell, -1);
}

/** Wakes the control thread, which has something to look at. */
export function ringControl(): void {
  ring(GATE + GATE_BELL, GATE + GATE_ASLEEP);
}

/** Wakes a shard that has numbers in its return ring. */
export function ringShard(returns: usize): void {
  ring(returns + RING_BELL, returns + RING_ASLEEP);
}
