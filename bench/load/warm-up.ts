// The load that a picker has behind it when its steady state is measured.
import type { LoadOptions } from './generator.ts';
import type { PinnedPicker } from './pinned-picker.ts';

/** Exchanges until V8 has compiled a shard's code, and bound on the time for them. */
export const WARM_UP_EXCHANGES = 60_000;
const STEP_SECONDS = 2;
const SECONDS_MAX = 20;

/**
 * Sends a closed loop until so many exchanges have ended.
 * @returns exchanges a second in the first two seconds
 */
export async function warmUp(
  picker: PinnedPicker,
  load: Omit<LoadOptions, 'port' | 'seconds'>,
  exchanges = WARM_UP_EXCHANGES,
): Promise<number> {
  const { goodput: first } = await picker.load({ ...load, seconds: STEP_SECONDS });
  let done = first * STEP_SECONDS;
  for (let at = STEP_SECONDS; at < SECONDS_MAX && done < exchanges; at += STEP_SECONDS) {
    done += (await picker.load({ ...load, seconds: STEP_SECONDS })).goodput * STEP_SECONDS;
  }
  return first;
}
