import { seededRandom } from '../../../src/runtime/seeded-random.js';
import type { Message } from '../chat-client.js';
import { prose } from '../prose.js';

/** Traffic of one part of the run: requests of each kind per second and server. */
export interface Phase {
  readonly name: string;
  /** Questions after one of a few long system prompts, some of which are asked far more than others. */
  readonly shared: number;
  /** Prompts without a cached prefix. */
  readonly long: number;
  /** Conversations of several turns. */
  readonly chats: number;
  /** Slowness of the first server: factor on all its times. */
  readonly slowdown: number;
}

/**
 * Four parts of equal length. Servers of L40S speed are busy but not overrun: with nothing to do any place is as good
 * as any other, and in an overload no place is good.
 */
export const PHASES: readonly Phase[] = [
  { name: 'shared prefixes', shared: 3, long: 0, chats: 0.2, slowdown: 1 },
  { name: 'long prompts', shared: 0.75, long: 0.9, chats: 0.2, slowdown: 1 },
  { name: 'chat', shared: 0.5, long: 0, chats: 1, slowdown: 1 },
  { name: 'a slow server', shared: 1, long: 0.4, chats: 0.5, slowdown: 2 },
];

/** One planned request. Its prompt is the dialogue up to it, followed by `says`. */
export interface PlannedRequest {
  /** Milliseconds from the beginning of the run. */
  readonly atMs: number;
  /** Index into PHASES. */
  readonly phase: number;
  readonly dialogue: number;
  readonly says: readonly Message[];
  readonly answerTokens: number;
}

export interface PlanOptions {
  readonly seed: number;
  readonly servers: number;
  /** Speed of the servers relative to an L40S; request rates are multiplied by it too. */
  readonly speedup: number;
  /** Factor on all rates; 1 = as PHASES says. */
  readonly load: number;
  readonly seconds: number;
}

/** Sizes in bytes; the simulated servers count four bytes as a token. */
const SYSTEM_BYTES = 20_000;
/** More than one server's KV memory holds, less than that of all together. */
const SYSTEM_PROMPTS = 48;
const QUESTION_BYTES = 600;
const LONG_BYTES = { least: 10_000, most: 34_000 };
const OPENING_BYTES = 4_000;
const TURNS = 4;
const TURN_GAP_MS = 2_500;
const ANSWER_TOKENS = { shared: 24, long: 16, chat: 64 };

type Kind = keyof typeof ANSWER_TOKENS;

/** The requests of a run in the order in which they are due. The same options give the same plan. */
export function planTraffic(options: PlanOptions): PlannedRequest[] {
  const { seed, servers, speedup, load, seconds } = options;
  const phaseMs = (seconds * 1_000) / PHASES.length;
  const planned: PlannedRequest[] = [];
  let dialogue = 0;
  PHASES.forEach(({ shared, long, chats }, phase) => {
    for (const [index, [kind, rate]] of Object.entries({ shared, long, chat: chats }).entries()) {
      // A row of its own for each kind in each phase: changing one rate leaves the other requests as they were.
      const random = seededRandom(seed * 1_009 + phase * 31 + index);
      const startsPerMs = (rate * load * servers * speedup) / 1_000;
      for (const atMs of arrivals(startsPerMs, phaseMs, random)) {
        const start = phase * phaseMs + atMs;
        planned.push(...dialogueOf(kind as Kind, dialogue++, start, random, { phaseMs, speedup }));
      }
    }
  });
  return planned.filter(({ atMs }) => atMs < seconds * 1_000).sort((a, b) => a.atMs - b.atMs);
}

/** Times of a Poisson process, in milliseconds below `lengthMs`. */
function arrivals(ratePerMs: number, lengthMs: number, random: () => number): number[] {
  const times: number[] = [];
  if (ratePerMs === 0) return times;
  for (let at = gap(); at < lengthMs; at += gap()) times.push(at);
  return times;

  function gap(): number {
    return -Math.log(1 - random()) / ratePerMs;
  }
}

/**
 * The requests of one dialogue: one, or the turns of a conversation. A turn counts for the phase in which it is due.
 */
function dialogueOf(
  kind: Kind,
  dialogue: number,
  startMs: number,
  random: () => number,
  { phaseMs, speedup }: { phaseMs: number; speedup: number },
): PlannedRequest[] {
  const says = { shared: sharedPrompt, long: longPrompt, chat: opening }[kind](dialogue, random);
  const request = (atMs: number, messages: readonly Message[]): PlannedRequest => ({
    atMs,
    phase: Math.min(Math.floor(atMs / phaseMs), PHASES.length - 1),
    dialogue,
    says: messages,
    answerTokens: ANSWER_TOKENS[kind],
  });
  const requests = [request(startMs, says)];
  for (let turn = 2, atMs = startMs; kind === 'chat' && turn <= TURNS; turn++) {
    atMs += ((0.6 + 0.8 * random()) * TURN_GAP_MS) / speedup;
    requests.push(request(atMs, [user(`question ${turn} of dialogue ${dialogue}`, QUESTION_BYTES)]));
  }
  return requests;
}

function sharedPrompt(dialogue: number, random: () => number): Message[] {
  // The square makes small numbers likelier: of 48 the first is asked for 14 times in a hundred, the last once.
  const system = Math.floor(SYSTEM_PROMPTS * random() ** 2);
  const content = prose(`system prompt ${system}`, SYSTEM_BYTES);
  return [{ role: 'system', content }, user(`question of dialogue ${dialogue}`, QUESTION_BYTES)];
}

function longPrompt(dialogue: number, random: () => number): Message[] {
  const { least, most } = LONG_BYTES;
  return [user(`document ${dialogue}`, Math.round(least + (most - least) * random()))];
}

function opening(dialogue: number): Message[] {
  return [user(`beginning of dialogue ${dialogue}`, OPENING_BYTES)];
}

function user(name: string, bytes: number): Message {
  return { role: 'user', content: prose(name, bytes) };
}
