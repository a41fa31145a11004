import { ask, chatBody, eventually } from '../tools/gateway/client.ts';

const ANSWERED_MS_MAX = 120_000;
/** After so many questions a caller begins another conversation, which is new to every endpoint. */
const CONVERSATION_QUESTIONS = 2;

export interface CallersOptions {
  readonly port: number;
  /** First part of the ids of their requests. */
  readonly name: string;
  readonly count: number;
  /** Tokens of every answer. */
  readonly tokens: number;
  /** Default true. */
  readonly stream?: boolean;
}

/** An answer that did not come whole. */
export interface FailedRequest {
  /** Its `x-request-id`. */
  readonly id: string;
  readonly flaw: string;
}

/** Callers that read one answer after the other, and remember every one that did not come whole. */
export class Callers {
  /** Answers that came whole. */
  answers = 0;
  readonly #options: CallersOptions;
  readonly #running: Promise<void>[];
  #failures: FailedRequest[] = [];
  #stopped = false;

  constructor(options: CallersOptions) {
    this.#options = options;
    this.#running = Array.from({ length: options.count }, (_, caller) => this.#call(caller));
  }

  /** Failures since they were last taken. */
  takeFailures(): FailedRequest[] {
    return this.#failures.splice(0);
  }

  /** Resolves after `each` more answers for each caller on average. */
  more(each: number): Promise<void> {
    const enough = this.answers + each * this.#options.count;
    return eventually(`${each} more answers for each caller`, () => this.answers >= enough, ANSWERED_MS_MAX);
  }

  /** Lets the last streams end. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async #call(caller: number): Promise<void> {
    const { port, name, tokens, stream = true } = this.#options;
    for (let question = 0; !this.#stopped; question++) {
      const conversation = Math.floor(question / CONVERSATION_QUESTIONS);
      const context = `Conversation ${conversation} of caller ${caller}. `.repeat(30);
      const length = { max_tokens: tokens, min_tokens: tokens, ignore_eos: true };
      const body = chatBody(`${context}Question ${question}.`, { stream, ...length });
      const id = `${name}-${caller}-${question}`;
      const found = await ask(port, { body, headers: { 'x-request-id': id } }).then(
        (answer) => flaw(answer.status, answer.body.toString(), stream ? 'data: [DONE]\n\n' : '}'),
        (error: Error) => error.message,
      );
      if (found === undefined) this.answers++;
      else this.#failures.push({ id, flaw: found });
    }
  }
}

/** What an answer lacks; undefined = nothing. */
function flaw(status: number, text: string, end: string): string | undefined {
  if (status !== 200) return `${status} ${text}`;
  return text.endsWith(end) ? undefined : `cut off after ${text.length} bytes: …${text.slice(-80)}`;
}
