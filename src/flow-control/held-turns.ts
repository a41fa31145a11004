import type { WaitingRequest } from '../core/capacity-gate.js';
import type { Band, QueueTables } from './band.js';
import type { WaitingRoom } from './waiting-room.js';

/** A turn that is held now, for the debug page. */
export interface HeldTurn {
  readonly priority: number;
  readonly flow: string;
  readonly promptTokens: number;
  /** Least tokens that an endpoint must have room for. */
  readonly needTokens: number;
  readonly waitedMs: number;
  /** Whether it goes on from an earlier turn. */
  readonly known: boolean;
}

/** Bound on the held turns of the debug page. */
const SHOWN = 20;
/** Tokens on top of a prompt in the order of held turns, so that no wait counts without end for a short one. */
const RATIO_TOKENS = 1_000;

/**
 * Held turns of a band in the order in which they are tried: the flow with the fewest served tokens first where the
 * band is fair, then the longest wait for the root of the prompt's tokens, unless the band has another order than that
 * of arrival. The response ratio (Brinch Hansen 1971) has the tokens in its place: long prompts wait longest by it.
 */
export function heldInOrder(room: WaitingRoom, band: Band, { requests, flows }: QueueTables, nowMs: number): number[] {
  const tag = (index: number) => (band.fairness.oneLane ? 0 : flows.tag[requests.flow[index]!]!);
  const byRatio = band.settings.ordering.kind === 'arrival';
  const order = (index: number) => {
    if (!byRatio) return requests.order[index]!;
    return -(nowMs - requests.enqueuedMs[index]!) / Math.sqrt(requests.promptTokens[index]! + RATIO_TOKENS);
  };
  const sorted: { readonly index: number; readonly tag: number; readonly order: number }[] = [];
  for (const index of room.held) {
    if (flows.priority[requests.flow[index]!] === band.priority) {
      sorted.push({ index, tag: tag(index), order: order(index) });
    }
  }
  sorted.sort(
    (a, b) => a.tag - b.tag || a.order - b.order || requests.sequence[a.index]! - requests.sequence[b.index]!,
  );
  return sorted.map(({ index }) => index);
}

/** Held turns among waiting requests, those that have waited longest first. @param needOf needs of a wait slot */
export function longestHeld(
  waiting: readonly WaitingRequest[],
  needOf: (thread: number, slot: number) => number,
  nowMs: number,
): readonly HeldTurn[] {
  return waiting
    .filter(({ held }) => held)
    .sort((a, b) => a.sinceMs - b.sinceMs)
    .slice(0, SHOWN)
    .map(({ thread, slot, priority, flow, promptTokens, sinceMs, known }) => {
      return { priority, flow, promptTokens, needTokens: needOf(thread, slot), waitedMs: nowMs - sinceMs, known };
    });
}
