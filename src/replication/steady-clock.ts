/** Difference from the system's clock from which on it is followed: the machine slept, or its clock was wrong. */
const STEP_MS = 60_000;

/**
 * Makes a clock of milliseconds since 1970 that goes on evenly while the system's clock is corrected by less than a
 * minute: late messages are told by it. @param systemMs @param elapsedMs clock that only goes forward
 */
export function steadyClock(
  systemMs: () => number = Date.now,
  elapsedMs: () => number = () => performance.now(),
): () => number {
  let offsetMs = systemMs() - elapsedMs();
  return () => {
    const now = offsetMs + elapsedMs();
    const stepMs = systemMs() - now;
    if (Math.abs(stepMs) < STEP_MS) return now;
    offsetMs += stepMs;
    return now + stepMs;
  };
}
