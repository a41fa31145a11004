// Not the global of this name: that is a getter, which costs as much as the clock.
import { performance } from 'node:perf_hooks';

/** Origin of the clock, read once: the property costs as much as the clock itself. */
const ORIGIN_MS = performance.timeOrigin;

/** Milliseconds of this thread's monotonic clock. */
export function threadClockMs(): number {
  return performance.now();
}

/** Milliseconds of a monotonic clock that all threads share (each thread's own origin is added). */
export function poolClockMs(): number {
  return ORIGIN_MS + performance.now();
}
