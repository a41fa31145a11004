import { replayedMessage, replayRequest } from './frames.js';
import { zeromq } from './zeromq.js';

/** Silence of a publisher after which its replay counts as complete. */
const IDLE_MS = 2_000;
/** Longest replay, in milliseconds. */
const TIME_MS_MAX = 120_000;
/** Pause after a failed replay before the same publisher is asked again. */
export const COOLDOWN_MS = 30_000;
/** Replays under way at once: publishers answer from the loop that sends the live events. */
const AT_ONCE = 8;

/** A bound on replays under way at once. */
export class ReplayTurns {
  #free = AT_ONCE;
  readonly #waiting: (() => void)[] = [];

  async take(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

/**
 * Asks a publisher for its messages from `from` on.
 * @param apply takes one message; rejects when the replay is to end
 * @returns `complete` after its end mark; `incomplete` when it stopped before
 */
export async function replay(
  address: string,
  from: number,
  apply: (number: number, payload: Uint8Array) => Promise<void>,
): Promise<'complete' | 'incomplete'> {
  // Several sockets ask at once, and REQ takes only one answer, so DEALER it is.
  const dealer = new zeromq.Dealer({ linger: 0, receiveTimeout: IDLE_MS, sendTimeout: IDLE_MS });
  const end = performance.now() + TIME_MS_MAX;
  try {
    dealer.connect(address);
    await dealer.send(replayRequest(from));
    while (performance.now() < end) {
      const message = replayedMessage(await dealer.receive());
      if (message === 'end') return 'complete';
      if (message !== undefined) await apply(message.number, message.payload);
    }
    return 'incomplete';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 'incomplete';
    throw error;
  } finally {
    dealer.close();
  }
}
