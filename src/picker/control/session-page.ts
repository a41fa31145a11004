import type { SessionTally } from '../../core/session-ledger.js';
import type { HeldTurn } from '../../flow-control/held-turns.js';
import type { SessionsShown } from '../../operations/page/snapshot.js';
import { counted } from '../../runtime/counted.js';

/** Figures of sessions for the page. */
export interface SessionFigures {
  readonly mode: 'shadow' | 'on';
  readonly tally: SessionTally;
  readonly held: { readonly count: number; readonly longest: readonly HeldTurn[] };
  /** Tokens of protected sessions found in caches in the last minute, and turns without room. */
  readonly lastMinute: { readonly found: number; readonly none: number };
  /** Milliseconds in which an engine computes as many tokens as its cache holds; 0 = unknown. */
  readonly refillMs: number;
}

/** What the page shows of sessions. @param nameOf id of the endpoint of a slot; undefined = it has left */
export function sessionsShown(figures: SessionFigures, nameOf: (slot: number) => string | undefined): SessionsShown {
  const { tally, held } = figures;
  const rooms = tally.endpoints.filter(({ capacity }) => capacity > 0).map(({ capacity, used }) => capacity - used);
  const bestRoomTokens = rooms.length === 0 ? null : Math.max(0, ...rooms);
  return {
    text: [waitText(figures), savedText(figures), fitText(tally)].filter((part) => part !== '').join(' '),
    endpoints: tally.endpoints.flatMap(({ slot, capacity, used, protected: protectedTokens }) => {
      const id = nameOf(slot);
      const size = capacity > 0 ? capacity : null;
      return id === undefined ? [] : [{ id, capacity: size, usedTokens: used, protectedTokens }];
    }),
    held: held.longest.map(({ promptTokens, needTokens, waitedMs, known, priority }) => {
      return { promptTokens, waitedMs, needTokens, bestRoomTokens, known, priority };
    }),
  };
}

function waitText({ mode, held, lastMinute }: SessionFigures): string {
  if (mode === 'shadow') {
    return lastMinute.none === 0
      ? 'Every turn of the last minute had room beside the others.'
      : `${turns(lastMinute.none)} of the last minute found no KV cache with room; none is held in mode shadow.`;
  }
  if (held.count === 0) return 'No turn is held.';
  const longest = held.longest[0]?.waitedMs ?? 0;
  const who = held.count === 1 ? '1 agent waits' : `${held.count} agents wait`;
  return `${who} for KV room, longest ${Math.round(longest / 1_000)} s.`;
}

/** Computation that protected places have spared: the tokens found there, at the speed of an engine. */
function savedText({ mode, tally, lastMinute, refillMs }: SessionFigures): string {
  const known = tally.endpoints.filter(({ capacity }) => capacity > 0);
  if (known.length === 0 || refillMs <= 0 || lastMinute.found === 0) return '';
  const cache = known.reduce((sum, { capacity }) => sum + capacity, 0) / known.length;
  const seconds = (lastMinute.found / known.length) * (refillMs / 1_000 / cache);
  const what = mode === 'on' ? 'Protected places' : 'Places that holding would protect';
  return `${what} saved ${Math.round(seconds * 10) / 10} s of prefill per endpoint in the last minute.`;
}

function fitText({ active, fit }: SessionTally): string {
  if (active === 0) return '';
  const room = fit === undefined ? '' : `, and ${Math.floor(fit)} of their size fit`;
  return `${active} session${active === 1 ? ' was' : 's were'} active in the last five minutes${room}.`;
}

function turns(number: number): string {
  return counted(number, 'turn');
}
