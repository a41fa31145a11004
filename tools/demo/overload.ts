import { chat, type Message } from './chat-client.js';

/** A flood of batch requests in the middle of interactive ones, in seconds and requests a second. */
export interface OverloadOptions {
  readonly url: string;
  readonly model: string;
  readonly seconds: number;
  readonly floodFrom: number;
  readonly floodTo: number;
  readonly interactivePerSecond: number;
  readonly batchPerSecond: number;
  /** Of every prompt; the simulated servers count four bytes as a token. */
  readonly promptBytes: number;
  readonly answerTokens: number;
}

/** Clients' measurements in one second. Times in milliseconds. */
export interface OverloadSecond {
  readonly second: number;
  readonly flood: boolean;
  /** Of the interactive requests that were answered in that second. */
  readonly firstTokensMs: readonly number[];
  readonly batchAnswered: number;
  /** Turned away with 429 or 503. */
  readonly refused: number;
}

export interface OverloadTotals {
  readonly interactive: number;
  readonly interactiveFailed: readonly string[];
  readonly batchAnswered: number;
  /** Requests without an answer, for any reason. */
  readonly batchRefused: number;
  /** Statuses of failed requests other than 429. */
  readonly batchFailed: readonly string[];
}

type Kind = 'interactive' | 'batch';

/** Counts of the second that runs. */
class Tally {
  firstTokensMs: number[] = [];
  batchAnswered = 0;
  refused = 0;
}

/** Sends the load; `report` is called with every second when it is over. Resolves when the last answer has come. */
export async function runOverload(
  options: OverloadOptions,
  report: (second: OverloadSecond) => Promise<void>,
): Promise<OverloadTotals> {
  let tally = new Tally();
  let sent = 0;
  const totals = {
    interactive: 0,
    interactiveFailed: [] as string[],
    batchAnswered: 0,
    batchRefused: 0,
    batchFailed: [] as string[],
  };
  const send = async (kind: Kind) => {
    try {
      const { url, model, answerTokens } = options;
      const messages = prompt(kind, sent++, options.promptBytes);
      const answer = await chat(url, model, messages, answerTokens, { 'x-llm-d-inference-objective': kind });
      if (kind === 'interactive') {
        totals.interactive++;
        tally.firstTokensMs.push(answer.firstTokenMs);
        return;
      }
      totals.batchAnswered++;
      tally.batchAnswered++;
    } catch (error) {
      const { message } = error as Error;
      tally.refused++;
      if (kind === 'interactive') totals.interactiveFailed.push(message);
      else {
        totals.batchRefused++;
        if (!message.startsWith('status 429:')) totals.batchFailed.push(message);
      }
    }
  };
  const answers: Promise<void>[] = [];
  for (let second = 1; second <= options.seconds; second++) {
    const flood = second >= options.floodFrom && second < options.floodTo;
    const sending = [spread(options.interactivePerSecond, () => answers.push(send('interactive')))];
    if (flood) sending.push(spread(options.batchPerSecond, () => answers.push(send('batch'))));
    await Promise.all(sending);
    const { firstTokensMs, batchAnswered, refused } = tally;
    tally = new Tally();
    await report({ second, flood, firstTokensMs, batchAnswered, refused });
  }
  await Promise.all(answers);
  return totals;
}

/** Calls `act` so many times over one second, as evenly as timers allow. */
async function spread(perSecond: number, act: () => void): Promise<void> {
  const start = performance.now();
  for (let i = 0; i < perSecond; i++) {
    const due = start + (i * 1_000) / perSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    act();
  }
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, start + 1_000 - performance.now())));
}

function prompt(kind: Kind, number: number, bytes: number): Message[] {
  const name = `${number}, a document of the ${kind} kind`;
  return [{ role: 'user', content: `${name}. `.repeat(Math.ceil(bytes / (name.length + 2))).slice(0, bytes) }];
}
