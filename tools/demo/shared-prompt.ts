import { setTimeout as pause } from 'node:timers/promises';
import { errorMessage } from '../../src/runtime/error-message.js';
import { type ChatOutcome, chat, type Message } from './chat-client.js';
import { prose } from './prose.js';

/** Entries of `plugins` that take the place of the default profile: the one word. */
export const BETTER_SCORER = 'marginal-cost-scorer';

/** Sizes in bytes; the simulated servers count four bytes as a token. */
const SYSTEM_BYTES = 8_000;
const QUESTION_BYTES = 1_200;

export interface SharedPromptOptions {
  /** Addresses of the pools' proxies; each gets every request. */
  readonly urls: readonly string[];
  readonly model: string;
  readonly seconds: number;
  /** Requests to each pool. */
  readonly perSecond: number;
  readonly answerTokens: number;
  /** Ends it before its time. */
  readonly signal: AbortSignal;
}

/** Answers of one pool in a part of the run. */
export interface PoolAnswers {
  readonly answers: readonly ChatOutcome[];
  readonly errors: readonly string[];
}

/**
 * Sends requests with one system prompt and a question of their own to all pools at the same times. `report` is called
 * with each second's answers by pool; resolves to all of them when the last one has come.
 */
export async function runSharedPrompt(
  options: SharedPromptOptions,
  report: (second: number, pools: readonly PoolAnswers[]) => void,
): Promise<readonly PoolAnswers[]> {
  const { urls, seconds, perSecond, signal } = options;
  const pools = urls.map(() => ({ answers: [] as ChatOutcome[], errors: [] as string[] }));
  const shown = urls.map(() => ({ answers: 0, errors: 0 }));
  const asked: Promise<unknown>[] = [];
  const start = performance.now();
  for (let second = 1; second <= seconds && !signal.aborted; second++) {
    for (let i = 0; i < perSecond; i++) {
      const dueMs = start + (second - 1 + i / perSecond) * 1_000;
      // The only error is that of the signal, which the loop looks at itself.
      await pause(Math.max(0, dueMs - performance.now()), undefined, { signal }).catch(() => {});
      const messages = prompt((second - 1) * perSecond + i);
      asked.push(...urls.map((url, pool) => send(url, messages, options, pools[pool]!)));
    }
    report(
      second,
      pools.map(({ answers, errors }, pool) => since(answers, errors, shown[pool]!)),
    );
  }
  await Promise.all(asked);
  return pools;
}

async function send(
  url: string,
  messages: readonly Message[],
  { model, answerTokens }: SharedPromptOptions,
  into: { readonly answers: ChatOutcome[]; readonly errors: string[] },
): Promise<void> {
  try {
    into.answers.push(await chat(url, model, messages, answerTokens));
  } catch (error) {
    into.errors.push(errorMessage(error));
  }
}

/** Difference to the last call. */
function since(
  answers: readonly ChatOutcome[],
  errors: readonly string[],
  shown: { answers: number; errors: number },
): PoolAnswers {
  const fresh = { answers: answers.slice(shown.answers), errors: errors.slice(shown.errors) };
  shown.answers = answers.length;
  shown.errors = errors.length;
  return fresh;
}

function prompt(number: number): Message[] {
  return [
    { role: 'system', content: prose('the one system prompt', SYSTEM_BYTES) },
    { role: 'user', content: prose(`question ${number}`, QUESTION_BYTES) },
  ];
}
