/** Origin of the clock, read once: the property costs as much as the clock itself. */
const ORIGIN_MS = performance.timeOrigin;

/** Milliseconds of a monotonic clock that all threads share (each thread's own origin is added). */
export function poolClockMs(): number {
  return ORIGIN_MS + performance.now();
}
