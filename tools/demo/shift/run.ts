import { setTimeout } from 'node:timers/promises';
import { errorMessage } from '../../../src/runtime/error-message.js';
import { type ChatOutcome, chat, type Message } from '../chat-client.js';
import type { PlannedRequest } from './traffic.js';

/** Outcome of one request: an answer, or the reason for none. */
export interface RequestOutcome {
  readonly planned: PlannedRequest;
  readonly answer?: ChatOutcome;
  readonly error?: string;
}

export interface RunOptions {
  readonly url: string;
  readonly model: string;
  /** In the order in which they are due. */
  readonly plan: readonly PlannedRequest[];
  /** Ends the sending when it is aborted. */
  readonly signal: AbortSignal;
  /** Called at the begin of a phase, with its index. */
  readonly enter: (phase: number) => void;
  /** Called at the end of a request. */
  readonly hear: (outcome: RequestOutcome) => void;
}

/** Messages of a dialogue so far, and its current turn. */
interface Dialogue {
  readonly messages: Message[];
  turn: Promise<void>;
}

/**
 * Sends every request when it is due, a turn not before the one before it is answered; resolves when the last has
 * ended.
 */
export async function runPlan(options: RunOptions): Promise<void> {
  const dialogues = new Map<number, Dialogue>();
  const ends: Promise<void>[] = [];
  const start = performance.now();
  let phase = -1;
  for (const planned of options.plan) {
    await due(start + planned.atMs, options.signal);
    if (options.signal.aborted) break;
    for (; phase < planned.phase; phase++) options.enter(phase + 1);
    const dialogue = dialogues.get(planned.dialogue) ?? { messages: [], turn: Promise.resolve() };
    dialogues.set(planned.dialogue, dialogue);
    dialogue.turn = dialogue.turn.then(() => send(options, planned, dialogue.messages));
    ends.push(dialogue.turn);
  }
  await Promise.all(ends);
}

/** Waits until the process clock says `atMs`, or until the signal is aborted. */
async function due(atMs: number, signal: AbortSignal): Promise<void> {
  // The only error is that of the signal, which the caller looks at itself.
  await setTimeout(Math.max(0, atMs - performance.now()), undefined, { signal }).catch(() => {});
}

async function send({ url, model, hear }: RunOptions, planned: PlannedRequest, messages: Message[]): Promise<void> {
  messages.push(...planned.says);
  try {
    const answer = await chat(url, model, messages, planned.answerTokens);
    messages.push({ role: 'assistant', content: answer.text });
    hear({ planned, answer });
  } catch (error) {
    hear({ planned, error: errorMessage(error) });
  }
}
