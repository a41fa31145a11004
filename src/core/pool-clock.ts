/** Milliseconds of a monotonic clock that all threads share (each thread's own origin is added). */
export function poolClockMs(): number {
  return performance.timeOrigin + performance.now();
}
