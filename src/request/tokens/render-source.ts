import { PromptKind } from '../../core/types.js';
import { FailurePause } from '../../remote/failure-pause.js';
import { JsonServers, UnexpectedStatus } from '../../remote/json-server.js';
import { writeModel } from '../model-edit.js';
import { renderedTokens } from './rendered-tokens.js';
import type { RenderSettings } from './settings.js';
import type { PromptBody, Tokenised, TokenSource } from './token-source.js';

/** Idle connections that stay open to one server, and how long; the incumbent's numbers. */
const CONNECTIONS = 16;
const KEEP_ALIVE_MS = 90_000;
/** Prompts that may wait for their tokens on one shard: what is beyond would wait longer than it is worth. */
const OPEN_MAX = 256;
/** A token takes at most eleven characters of the answer, and no model has windows of more than some millions. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

const PATHS: ReadonlyMap<PromptKind, string> = new Map([
  [PromptKind.completions, '/v1/completions/render'],
  [PromptKind.chat, '/v1/chat/completions/render'],
]);

/** Fields that a message has only when it consists of parts that have to be fetched or decoded. */
const PART_FIELDS = ['"image_url"', '"video_url"', '"audio_url"', '"input_audio"'].map((field) => Buffer.from(field));

/** Statuses by which a server judges the prompt, not itself. */
const PROMPT_STATUSES: readonly number[] = [400, 413, 422];

/** Asks vLLM's render endpoints for the tokens of prompts: the body goes there as it is, with the model's name changed. */
export class RenderSource implements TokenSource {
  readonly #settings: RenderSettings;
  readonly #target: () => string | undefined;
  readonly #pause: FailurePause;
  readonly #servers = new JsonServers({
    connections: CONNECTIONS,
    keepAliveMs: KEEP_ALIVE_MS,
    answerBytesMost: ANSWER_BYTES_MAX,
  });
  #open = 0;

  /**
   * @param target base URL of the next endpoint to ask, where the settings name no URL; undefined = there is none
   * @param now milliseconds of a monotonic clock
   */
  constructor(settings: RenderSettings, target: () => string | undefined, now: () => number) {
    this.#settings = settings;
    this.#target = target;
    this.#pause = new FailurePause(now);
  }

  reads(prompt: PromptKind): boolean {
    return PATHS.has(prompt);
  }

  async tokenise(body: PromptBody, signal: AbortSignal): Promise<Tokenised> {
    if (this.#open >= OPEN_MAX) return { outcome: 'busy', why: `${OPEN_MAX} prompts wait for their tokens already` };
    const base = this.#settings.url ?? this.#target();
    if (base === undefined) return { outcome: 'failed', why: 'no endpoint could render the prompt' };
    if (!this.#pause.admits()) return { outcome: 'paused', why: `${base} has failed too often: it is left alone` };
    const payload = Buffer.concat(writeModel(body.chunks, body.modelPlace, this.#settings.modelName));
    const deadline = AbortSignal.timeout(this.#deadline(payload));
    this.#open++;
    try {
      const text = await this.#servers.post(
        base + PATHS.get(body.prompt)!,
        payload,
        AbortSignal.any([signal, deadline]),
      );
      const tokens = renderedTokens(text);
      this.#pause.succeeded();
      return { outcome: 'tokenised', tokens };
    } catch (error) {
      // A client that went away, or sent what no model takes, says nothing about the server.
      if (!signal.aborted && !judgesPrompt(error)) this.#pause.failed();
      const outcome = deadline.aborted ? 'late' : 'failed';
      return { outcome, why: `${base} has not rendered a prompt: ${(error as Error).message}` };
    } finally {
      this.#open--;
    }
  }

  #deadline(payload: Buffer): number {
    const { timeoutMs, partsTimeoutMs } = this.#settings;
    return PART_FIELDS.some((field) => payload.includes(field)) ? partsTimeoutMs : timeoutMs;
  }

  close(): Promise<void> {
    return this.#servers.close();
  }
}

function judgesPrompt(error: unknown): boolean {
  return error instanceof UnexpectedStatus && PROMPT_STATUSES.includes(error.status);
}
