import type { Envelope } from './messages.js';
import { WireError } from './wire.js';

/** Accepted difference of two clocks with the time under way; Kerberos has the same. */
const CLOCK_MS_MAX = 300_000;
/** Difference from the system's clock from which on it is followed: the machine slept, or its clock was wrong. */
const STEP_MS = 60_000;
/** Numbers behind the highest one of a process that are told apart. Older ones are refused. */
const WINDOW = 1_024;
/** Bound on the processes that are remembered; the one heard least lately gives way. */
const PROCESSES_MAX = 256;

interface Heard {
  highest: number;
  /** Numbers of the window that were received. */
  readonly serials: Set<number>;
}

/** Refuses messages that are old, far ahead or, where they are signed, were received before. Is told the time. */
export class MessageFreshness {
  readonly #heard = new Map<string, Heard>();
  readonly #isSigned: boolean;

  /** @param isSigned whether the numbers of messages can be believed */
  constructor(isSigned: boolean) {
    this.#isSigned = isSigned;
  }

  /** @throws WireError for a message that must not be applied @param nowMs milliseconds since 1970 */
  check({ replica, epoch, serial, sentAtMs }: Omit<Envelope, 'to'>, nowMs: number): void {
    assertNear('its time', sentAtMs - nowMs);
    if (epoch - nowMs > CLOCK_MS_MAX) assertNear('the start of its process', epoch - nowMs);
    if (this.#isSigned) this.#note(`${epoch} ${replica}`, serial);
  }

  #note(process: string, serial: number): void {
    const heard = this.#heard.get(process) ?? { highest: serial, serials: new Set() };
    if (serial <= heard.highest - WINDOW || heard.serials.has(serial)) {
      throw new WireError('it was received before', 'repeated');
    }
    const jump = serial - heard.highest;
    if (jump >= WINDOW) heard.serials.clear();
    for (let i = 1; i <= Math.min(jump, WINDOW); i++) heard.serials.delete(heard.highest - WINDOW + i);
    heard.serials.add(serial);
    heard.highest = Math.max(heard.highest, serial);
    // In the order of the last message.
    this.#heard.delete(process);
    this.#heard.set(process, heard);
    if (this.#heard.size > PROCESSES_MAX) this.#heard.delete(this.#heard.keys().next().value!);
  }
}

function assertNear(what: string, aheadMs: number): void {
  if (Math.abs(aheadMs) <= CLOCK_MS_MAX) return;
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  throw new WireError(`${what} is ${seconds} s ${side} the clock here: set the clocks of both machines`, 'clock');
}

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
