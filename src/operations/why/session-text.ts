import type { DecisionColumns } from '../../core/decision-columns.js';
import type { FoundSession, SessionFate } from '../../core/found-session.js';
import { counted } from '../../runtime/counted.js';

/** Endpoints whose room is named. */
const ROOMS_NAMED = 8;

/** What a decision found of the session of its prompt. Nothing of it but sizes and times. */
export interface ShownSession {
  readonly fate: SessionFate;
  /** Whether its header alone led to the session, not its prompt. */
  readonly byHeader: boolean;
  readonly turns: number;
  readonly tokens: number;
  readonly sharedTokens: number;
  /** Endpoint of its last turn; null = none, or it has left. */
  readonly home: string | null;
  readonly idleSeconds: number;
  /** Null = always. */
  readonly keptSeconds: number | null;
  /** Room of the endpoints, where none had enough for its turn; null = one had. */
  readonly missed: MissedRoom | null;
  /** All of it in one sentence. */
  readonly text: string;
}

/** Room that a turn did not find. */
export interface MissedRoom {
  readonly needTokens: number;
  /** Seconds for which the turn was held; null = it was not, or is still. */
  readonly heldSeconds: number | null;
  /** Whether it was held. */
  readonly held: boolean;
  /** Tokens that sessions leave of each cache, in the order of the slots; null = unknown, or it may not serve it. */
  readonly rooms: readonly (number | null)[];
}

/** Circumstances of the decision. */
interface Circumstances {
  readonly columns: DecisionColumns | undefined;
  readonly endpointOf: (slot: number) => string;
  /** Whether the turn waited after this decision, and for how long; undefined = it waits still. */
  readonly held: boolean;
  readonly heldMs: number | undefined;
}

/** A session for readers; null = the prompt was no session's turn. */
export function shownSession(session: FoundSession | undefined, around: Circumstances): ShownSession | null {
  if (session === undefined) return null;
  const { fate, byHeader, turns, tokens, sharedTokens, home, idleMs, keptMs, missedTokens } = session;
  const shown = {
    fate,
    byHeader,
    turns,
    tokens,
    sharedTokens,
    home: home === undefined ? null : around.endpointOf(home),
    idleSeconds: idleMs / 1_000,
    keptSeconds: Number.isFinite(keptMs) ? keptMs / 1_000 : null,
    missed: missedTokens === undefined ? null : missedRoom(missedTokens, around),
  };
  return { ...shown, text: [historyText(shown), ...missedText(shown.missed)].join('; ') };
}

function missedRoom(needTokens: number, { columns, held, heldMs }: Circumstances): MissedRoom {
  const endpoints = [...(columns?.endpoints ?? [])].sort((a, b) => a.slot - b.slot);
  const rooms = endpoints.map(({ removed, roomTokens }) =>
    removed === undefined || removed === 'session' ? (roomTokens ?? null) : null,
  );
  return { needTokens, held, heldSeconds: heldMs === undefined ? null : heldMs / 1_000, rooms };
}

function historyText(session: Omit<ShownSession, 'text'>): string {
  const { fate, turns, tokens, sharedTokens, home } = session;
  if (fate === 'new') return 'its first turn';
  if (fate === 'fork') return 'its first turn, which goes on from a session with a turn in flight';
  if (fate === 'uncounted') return 'not counted: as many sessions are known as can be, and none has lapsed';
  const size = `${count(tokens)} tokens${sharedTokens === 0 ? '' : ` (${count(sharedTokens)} shared)`}`;
  const place = home === null ? 'its home has left' : `home ${home}`;
  const number = turns === 255 ? '255 or more turns' : counted(turns, 'turn');
  const known = session.byHeader ? ['known by its header alone: its prompt begins otherwise'] : [];
  return [number, size, place, ...known, FATE_TEXTS[fate](session)].join(', ');
}

const FATE_TEXTS: Readonly<
  Record<'protected' | 'given-up' | 'forgotten', (session: Omit<ShownSession, 'text'>) => string>
> = {
  protected: ({ idleSeconds }) => `its place was kept for ${seconds(idleSeconds)}`,
  'given-up': ({ idleSeconds, keptSeconds }) => {
    const kept = keptSeconds === null ? 'always kept' : `kept up to ${seconds(keptSeconds)}`;
    return `lapsed after ${seconds(idleSeconds)} idle (${kept})`;
  },
  forgotten: ({ idleSeconds }) => `forgotten by the engine after ${seconds(idleSeconds)} idle`,
};

function missedText(missed: MissedRoom | null): string[] {
  if (missed === null) return [];
  const { needTokens, heldSeconds, held, rooms } = missed;
  const wait = held ? `held${heldSeconds === null ? '' : ` ${seconds(heldSeconds)}`}` : 'no endpoint had room';
  return [`${wait}: needs ${thousands(needTokens)}${rooms.length === 0 ? '' : `, rooms ${roomsText(rooms)}`}`];
}

/** All rooms in the order of the slots; of many the largest. */
function roomsText(rooms: readonly (number | null)[]): string {
  const named = rooms.length <= ROOMS_NAMED ? rooms : largest(rooms);
  const rest = rooms.length - named.length;
  const texts = named.map((room) => (room === null ? '–' : thousands(Math.max(0, room))));
  return `${texts.join(' / ')}${rest === 0 ? '' : ` and ${rest} more`}`;
}

function largest(rooms: readonly (number | null)[]): readonly (number | null)[] {
  return [...rooms].sort((a, b) => (b ?? -1) - (a ?? -1)).slice(0, ROOMS_NAMED);
}

function thousands(tokens: number): string {
  return tokens < 10_000 ? count(tokens) : `${Math.round(tokens / 1_000)} k`;
}

function count(tokens: number): string {
  return Math.round(tokens).toLocaleString('en-GB');
}

function seconds(value: number): string {
  return `${value < 100 ? Math.round(value * 10) / 10 : Math.round(value)} s`;
}
