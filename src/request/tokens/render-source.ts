import type { RenderSettings } from '../../contract/token-settings.js';
import { PromptKind } from '../../core/types.js';
import { FailurePause } from '../../remote/failure-pause.js';
import { JsonServers, UnexpectedStatus } from '../../remote/json-server.js';
import { errorMessage } from '../../runtime/error-message.js';
import { writeModel } from '../model-edit.js';
import { renderedTokens } from './rendered-tokens.js';
import type { PromptBody, Tokenised, TokenSource } from './token-source.js';

/** Bound on the idle connections to one server, and how long they stay open. The numbers are llm-d-router's. */
const CONNECTIONS = 16;
const KEEP_ALIVE_MS = 90_000;
/** Bound on the open requests for tokens of one shard. A longer queue would cost more time than the tokens save. */
const OPEN_MAX = 256;
/**
 * Bound on an answer in bytes: a token takes at most 11 characters, and models have windows of at most some millions.
 */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

const PATHS: ReadonlyMap<PromptKind, string> = new Map([
  [PromptKind.completions, '/v1/completions/render'],
  [PromptKind.chat, '/v1/chat/completions/render'],
]);

/** Fields of a message with parts that have to be fetched or decoded. */
const PART_FIELDS = ['"image_url"', '"video_url"', '"audio_url"', '"input_audio"'].map((field) => Buffer.from(field));

/** Statuses that concern the prompt, not the server's health. */
const PROMPT_STATUSES: readonly number[] = [400, 413, 422];

/** Fetches the tokens of prompts from vLLM's render endpoints. The body is sent unchanged but for the model's name. */
export class RenderSource implements TokenSource {
  readonly #settings: RenderSettings;
  readonly #target: () => string | undefined;
  readonly #pause: FailurePause;
  readonly #servers = new JsonServers({
    connections: CONNECTIONS,
    keepAliveMs: KEEP_ALIVE_MS,
    answerBytesMax: ANSWER_BYTES_MAX,
  });
  #open = 0;

  /**
   * @param target base URL of the next endpoint, used when the settings name no URL; undefined = there is none
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
      // A cancelled request or a refused prompt is no failure of the server.
      if (!signal.aborted && !judgesPrompt(error)) this.#pause.failed();
      const outcome = deadline.aborted ? 'late' : 'failed';
      return { outcome, why: `${base} has not rendered a prompt: ${reasonOf(error)}` };
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

/** A refusal of the prompt may quote it, so its text is left out. */
function reasonOf(error: unknown): string {
  if (!(error instanceof UnexpectedStatus) || judgesPrompt(error) || error.firstLine === '') return errorMessage(error);
  return `${error.message}: ${error.firstLine}`;
}

function judgesPrompt(error: unknown): boolean {
  return error instanceof UnexpectedStatus && PROMPT_STATUSES.includes(error.status);
}
