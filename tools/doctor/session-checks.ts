import { type Condition, condition, type PickerReading } from './condition.js';
import { type Samples, sumOf } from './exposition.js';

/** Turns from which on the sessions of agents are judged. */
const TURNS_MIN = 100;
/** Share of the turns without room from which on the pool is too small for its sessions. */
const WITHOUT_ROOM_MAX = 0.2;
/** Share of first turns from which on clients seem to write their history anew. */
const FIRST_TURNS_MAX = 0.6;

const LOOKS = 'pointsman_session_looks_total';
const TURNS = 'pointsman_session_turns_total';

/**
 * Sessions of agents since the start: more of them than the KV caches hold, and prompts that do not go on from the ones
 * before.
 */
export function sessionConditions({ samples }: PickerReading): readonly Condition[] {
  return [...tooMany(samples), ...split(samples), ...forced(samples)];
}

function tooMany(samples: Samples): readonly Condition[] {
  const [none, room, home] = ['none', 'room', 'protected'].map((kind) => sumOf(samples, LOOKS, { room: kind }));
  const turns = none! + room! + home!;
  if (turns < TURNS_MIN || none! / turns < WITHOUT_ROOM_MAX) return [];
  const held = sumOf(samples, 'pointsman_session_held');
  const now = held === 0 ? '' : `; ${held} are held now`;
  const text = `${none} of ${turns} turns of agents found no KV cache with room for their history${now}`;
  const remedy =
    'add model servers, or run fewer agents at a time; flowControl.sessions.mode on lets turns wait for room ' +
    '(docs/guides/agents.md)';
  return [condition('warning', 'sessions', text, remedy)];
}

function split(samples: Samples): readonly Condition[] {
  const [first, next] = ['new', 'prompt'].map((how) => sumOf(samples, TURNS, { how }));
  const turns = first! + next!;
  if (turns < TURNS_MIN || first! / turns < FIRST_TURNS_MAX) return [];
  const text = `${first} of ${turns} long prompts do not go on from an earlier one`;
  const remedy =
    'see that clients append to their history: a time or an identifier at its beginning makes each turn a new session';
  return [condition('note', 'sessions', text, remedy)];
}

function forced(samples: Samples): readonly Condition[] {
  const count = sumOf(samples, 'pointsman_session_forced_total');
  if (count === 0) return [];
  const text = `${count} held turns went on without room after flowControl.sessions.maxWait`;
  return [condition('warning', 'sessions', text, 'add model servers, or run fewer agents at a time')];
}
