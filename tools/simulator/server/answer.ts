import { randomUUID } from 'node:crypto';
import type { Generation } from './api.js';
import type { Sequence } from './engine.js';

/** Writes the answers to one request in the shapes of vLLM's OpenAI server. */
export class Answer {
  readonly #generation: Generation;
  readonly #id: string;
  readonly #created = Math.floor(Date.now() / 1000);
  #first = true;

  constructor(generation: Generation) {
    this.#generation = generation;
    this.#id = `${generation.api === 'chat' ? 'chatcmpl' : 'cmpl'}-${randomUUID().replaceAll('-', '')}`;
  }

  /** Server-sent event(s) for one token; the first of a chat is preceded by the role. */
  tokenEvents(text: string, finish: string | null): string {
    if (this.#generation.api === 'completion') {
      return event(this.#chunk([{ index: 0, text, logprobs: null, finish_reason: finish }]));
    }
    const role = this.#first ? event(this.#chatChunk({ role: 'assistant', content: '' }, null)) : '';
    this.#first = false;
    return role + event(this.#chatChunk({ content: text }, finish));
  }

  /** End of a stream: the usage when requested, and the terminator. */
  lastEvents(sequence: Sequence): string {
    const usage = this.#generation.includeUsage ? event({ ...this.#chunk([]), usage: usageOf(sequence) }) : '';
    return `${usage}data: [DONE]\n\n`;
  }

  /** The whole answer of a request that does not stream. */
  whole(text: string, sequence: Sequence): string {
    const finish = sequence.request.finishReason;
    const choice =
      this.#generation.api === 'chat'
        ? { index: 0, message: { role: 'assistant', content: text }, logprobs: null, finish_reason: finish }
        : { index: 0, text, logprobs: null, finish_reason: finish };
    const object = this.#generation.api === 'chat' ? 'chat.completion' : 'text_completion';
    return JSON.stringify({ ...this.#chunk([choice]), object, usage: usageOf(sequence) });
  }

  #chatChunk(delta: object, finish: string | null): object {
    return this.#chunk([{ index: 0, delta, logprobs: null, finish_reason: finish }]);
  }

  #chunk(choices: object[]): object {
    const object = this.#generation.api === 'chat' ? 'chat.completion.chunk' : 'text_completion';
    return { id: this.#id, object, created: this.#created, model: this.#generation.model, choices };
  }
}

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function usageOf(sequence: Sequence): object {
  return {
    prompt_tokens: sequence.promptTokens,
    total_tokens: sequence.promptTokens + sequence.generatedTokens,
    completion_tokens: sequence.generatedTokens,
    prompt_tokens_details: { cached_tokens: sequence.cachedTokens },
  };
}
