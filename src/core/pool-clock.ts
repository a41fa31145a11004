/** Milliseconds of a clock that all threads share and that does not go back (each thread's own origin is added). */
export function poolClockMs(): number {
  return performance.timeOrigin + performance.now();
}
