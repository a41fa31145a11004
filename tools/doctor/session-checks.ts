import { type Condition, condition, type PickerReading } from './condition.js';
import { type Samples, sumOf } from './exposition.js';

/** Turns from which on the sessions of agents are judged. */
const TURNS_MIN = 100;
/** Share of the turns without room from which on the pool is too small for its sessions. */
const WITHOUT_ROOM_MAX = 0.2;
/** Share of first turns from which on clients seem to write their history anew. */
const FIRST_TURNS_MAX = 0.6;
/** Share of the turns whose header and prompt disagree from which on the header is no name of a session. */
const SPLITS_MAX = 0.1;

const LOOKS = 'pointsman_session_looks_total';
const TURNS = 'pointsman_session_turns_total';
const SPLITS = 'pointsman_session_splits_total';

/**
 * Sessions of agents since the start: more of them than the KV caches hold, and prompts or headers by which they are
 * not recognised.
 */
export function sessionConditions({ samples }: PickerReading): readonly Condition[] {
  return [...tooMany(samples), ...misnamed(samples), ...split(samples), ...forced(samples)];
}

function tooMany(samples: Samples): readonly Condition[] {
  const [none, room, home] = ['none', 'room', 'protected'].map((kind) => sumOf(samples, LOOKS, { room: kind }));
  const turns = none! + room! + home!;
  if (turns < TURNS_MIN || none! / turns < WITHOUT_ROOM_MAX) return [];
  const held = sumOf(samples, 'pointsman_session_held');
  const now = held === 0 ? '' : `; ${held} are held now`;
  const text = `${none} of ${turns} turns of agents found no KV cache with room for their history${now}`;
  const { sizes, servers } = sizesOf(samples);
  const remedy =
    `add ${servers}, or run fewer agents at a time; flowControl.sessions.mode on lets turns wait for room ` +
    '(docs/guides/agents.md)';
  return [condition('warning', 'sessions', text + sizes, remedy)];
}

/** How many sessions are active and how many fit, and the servers that are missing. */
function sizesOf(samples: Samples): { readonly sizes: string; readonly servers: string } {
  const [active, fit] = ['active', 'fit'].map((name) => sumOf(samples, `pointsman_session_${name}`));
  const endpoints = samples.get('llm_d_epp_thunder_agent_endpoint_capacity_tokens')?.length ?? 0;
  if (fit! < 1 || endpoints === 0) return { sizes: '', servers: 'model servers' };
  const sizes = `; ${active} sessions were active in the last five minutes, and ${Math.floor(fit!)} of their size fit`;
  const missing = Math.ceil(((active! - fit!) / fit!) * endpoints);
  if (missing < 1) return { sizes, servers: 'model servers' };
  const more = missing === 1 ? '1 model server like the present one' : `${missing} model servers like the present ones`;
  return { sizes, servers: more };
}

function turnsOf(samples: Samples): { readonly first: number; readonly next: number } {
  const [first, prompt, header] = ['new', 'prompt', 'header'].map((how) => sumOf(samples, TURNS, { how }));
  return { first: first!, next: prompt! + header! };
}

/** A session header by which sessions are not told apart. */
function misnamed(samples: Samples): readonly Condition[] {
  const { first, next } = turnsOf(samples);
  const turns = first + next;
  if (turns < TURNS_MIN) return [];
  const count = (cause: string) => sumOf(samples, SPLITS, { cause });
  const conditions: Condition[] = [];
  if (count('renamed') / turns >= SPLITS_MAX) {
    const text = `${count('renamed')} of ${turns} turns go on from a session that another header names`;
    const remedy =
      'let the header of flowControl.sessions.identity stay the same for a whole conversation, or set identity: auto';
    conditions.push(condition('warning', 'session header', text, remedy));
  }
  if (count('merged') / turns >= SPLITS_MAX) {
    const text = `${count('merged')} of ${turns} turns do not go on from the session that their header names`;
    const remedy =
      'let each conversation, those of sub-agents too, have a header of its own, or set ' +
      'flowControl.sessions.identity: auto';
    conditions.push(condition('warning', 'session header', text, remedy));
  }
  return conditions;
}

function split(samples: Samples): readonly Condition[] {
  const { first, next } = turnsOf(samples);
  const turns = first + next;
  if (turns < TURNS_MIN) return [];
  const remedy =
    'see that clients append to their history: a time or an identifier at its beginning makes each turn a new session';
  const rewritten = sumOf(samples, SPLITS, { cause: 'rewritten' });
  if (rewritten / turns >= SPLITS_MAX) {
    const text = `${rewritten} of ${turns} turns begin as an earlier one and then differ from it: a rewritten history`;
    return [condition('note', 'sessions', text, remedy)];
  }
  if (first / turns < FIRST_TURNS_MAX) return [];
  const text = `${first} of ${turns} long prompts do not go on from an earlier one`;
  return [condition('note', 'sessions', text, remedy)];
}

function forced(samples: Samples): readonly Condition[] {
  const count = sumOf(samples, 'pointsman_session_forced_total');
  if (count === 0) return [];
  const text = `${count} held turns went on without room after flowControl.sessions.maxWait`;
  return [condition('warning', 'sessions', text, 'add model servers, or run fewer agents at a time')];
}
