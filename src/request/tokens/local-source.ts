import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalTokenSettings } from '../../contract/token-settings.js';
import { PromptKind } from '../../core/types.js';
import { errorMessage } from '../../runtime/error-message.js';
import type { PromptBody, SegmentsState, Tokenised, TokenSource } from './token-source.js';

/** Task of a job thread. */
export interface TokeniseTask {
  readonly folder: string;
  /** `load` only reads the files. */
  readonly what: 'load' | 'completion' | 'chat';
  readonly body: Uint8Array;
}

export interface TokenisedTask {
  readonly ids: Uint32Array;
  /** Thread that ran the task, and what it remembers since. */
  readonly thread: number;
  readonly segments: SegmentsState;
}

/** The threads that run the tasks. */
export interface TokeniserThreads {
  /** Rejects with one line when the files or the prompt cannot be read. */
  run(task: TokeniseTask): Promise<TokenisedTask>;
  /** Tasks that wait for a thread. */
  readonly waiting: number;
  close(): Promise<void>;
}

/** Bound on the waiting prompts of one shard. A longer queue would cost more time than the tokens save. */
const WAITING_MAX = 64;

/** Turns prompts into tokens by the model's own tokeniser files, on separate threads. */
export class LocalSource implements TokenSource {
  readonly #settings: LocalTokenSettings;
  readonly #threads: TokeniserThreads;
  /** What each thread remembers. */
  readonly #segments = new Map<number, SegmentsState>();

  constructor(settings: LocalTokenSettings, threads: TokeniserThreads) {
    this.#settings = settings;
    this.#threads = threads;
  }

  /** Reads the files. @throws with one line that names the parameter */
  async prepare(): Promise<void> {
    const { folder } = this.#settings;
    try {
      await this.#run({ folder, what: 'load', body: new Uint8Array(0) });
    } catch (error) {
      throw new Error(`token-producer: local.path: ${errorMessage(error)}`);
    }
  }

  reads(prompt: PromptKind): boolean {
    return prompt === PromptKind.completions || prompt === PromptKind.chat;
  }

  async tokenise({ prompt, chunks }: PromptBody, signal: AbortSignal): Promise<Tokenised> {
    if (this.#threads.waiting >= WAITING_MAX) return { outcome: 'busy', why: `${WAITING_MAX} prompts wait already` };
    const { folder, timeoutMs } = this.#settings;
    const what = prompt === PromptKind.chat ? 'chat' : 'completion';
    // A thread finishes a prompt whose request has ended. An ended thread would lose the files that it has read.
    const over = new AbortController();
    const late = sleep(timeoutMs, undefined, { signal: AbortSignal.any([signal, over.signal]) }).then(
      (): Tokenised => ({ outcome: 'late', why: `not cut within ${timeoutMs} ms` }),
      (): Tokenised => ({ outcome: 'failed', why: 'the request has ended' }),
    );
    const cut = this.#run({ folder, what, body: Buffer.concat(chunks) }).then(
      (ids): Tokenised => ({ outcome: 'tokenised', tokens: { ids, features: [] } }),
      (error: Error): Tokenised => ({ outcome: 'failed', why: error.message }),
    );
    const first = await Promise.race([cut, late]);
    over.abort();
    return first;
  }

  /** Of all its threads together. */
  get segments(): SegmentsState {
    const all = [...this.#segments.values()];
    const used = all.flatMap(({ oldestMs }) => oldestMs ?? []);
    return {
      bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
      oldestMs: used.length === 0 ? undefined : Math.min(...used),
    };
  }

  async #run(task: TokeniseTask): Promise<Uint32Array> {
    const { ids, thread, segments } = await this.#threads.run(task);
    this.#segments.set(thread, segments);
    return ids;
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}
