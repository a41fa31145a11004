import { type ChatOutcome, chat, type Message } from './chat-client.js';
import { prose } from './prose.js';

export interface LoadOptions {
  readonly url: string;
  readonly model: string;
  readonly conversations: number;
  readonly turns: number;
  /** Different system prompts; conversations take them in turn. */
  readonly systemPrompts: number;
  /** Longest answer, in tokens. */
  readonly answerTokens: number;
  /** Number of the first conversation; conversations of different numbers share nothing but system prompts. */
  readonly first?: number;
}

/** One turn of all conversations. */
export interface TurnOutcome {
  readonly turn: number;
  readonly answered: readonly ChatOutcome[];
  readonly errors: readonly string[];
}

/** Sizes of the load's prompts in bytes; the simulated servers count four bytes as a token. */
const SYSTEM_BYTES = 3_000;
const OPENING_BYTES = 8_000;
const QUESTION_BYTES = 300;
/** Between the starts of two conversations' turns, in milliseconds: requests come one after another, as in life. */
const ARRIVAL_MS = 25;

/** Holds all conversations turn by turn; `report` is called with each turn when its last answer is complete. */
export async function runLoad(options: LoadOptions, report: (turn: TurnOutcome) => void): Promise<void> {
  const conversations = Array.from({ length: options.conversations }, (_, index) =>
    opening((options.first ?? 0) + index, options),
  );
  for (let turn = 1; turn <= options.turns; turn++) {
    const results = await Promise.allSettled(
      conversations.map(async (messages, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * ARRIVAL_MS));
        const outcome = await chat(options.url, options.model, messages, options.answerTokens);
        const question = prose(`question ${turn} of conversation ${index}`, QUESTION_BYTES);
        messages.push({ role: 'assistant', content: outcome.text }, { role: 'user', content: question });
        return outcome;
      }),
    );
    const answered = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason.message)] : []));
    report({ turn, answered, errors });
  }
}

/** Holds conversations one load after another, each with new documents, until the signal comes. */
export async function keepTalking(options: LoadOptions, signal: AbortSignal): Promise<void> {
  for (let first = options.first ?? 0; !signal.aborted; first += options.conversations) {
    await runLoad({ ...options, first }, () => {});
  }
}

/** A shared system prompt, then what only this conversation says: a document and the first question. */
function opening(index: number, options: LoadOptions): Message[] {
  const system = prose(`system prompt ${index % options.systemPrompts}`, SYSTEM_BYTES);
  return [
    { role: 'system', content: system },
    { role: 'user', content: prose(`document of conversation ${index}`, OPENING_BYTES) },
  ];
}
