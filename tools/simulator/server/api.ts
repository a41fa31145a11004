import { errorMessage } from '../../../src/runtime/error-message.js';
import type { FinishReason } from './engine.js';

/** The two OpenAI endpoints that generate text. */
export type Api = 'chat' | 'completion';

/** A generation request, understood. */
export interface Generation {
  readonly api: Api;
  readonly model: string;
  readonly prompt: Buffer;
  readonly salt: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly outputTokens: number;
  readonly finishReason: FinishReason;
}

/** A request that is refused, in the words and with the status of vLLM. */
export class RefusedRequest extends Error {
  readonly status: number;
  readonly type: string;

  constructor(status: number, type: string, message: string) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

/** Range of the answer length without a limit by the client: drawn uniformly, both ends included. */
export interface AnswerLength {
  readonly min: number;
  readonly max: number;
}

/** The longest answer a client may ask for. */
const OUTPUT_TOKENS_MAX = 32_768;

/**
 * Understand the body of a request as vLLM does.
 * @throws {RefusedRequest} 400 with the field at fault.
 */
export function readGeneration(api: Api, body: Buffer, length: AnswerLength, random: () => number): Generation {
  const fields = parseObject(body);
  if (typeof fields.model !== 'string') throw missingField('model');
  if (fields.n !== undefined && fields.n !== null && fields.n !== 1) {
    throw new RefusedRequest(400, 'BadRequestError', 'n: the simulated server generates one choice');
  }
  const prompt = api === 'chat' ? renderChat(fields) : renderPrompt(fields.prompt);
  return {
    api,
    model: fields.model,
    prompt,
    salt: typeof fields.cache_salt === 'string' ? fields.cache_salt : '',
    stream: fields.stream === true,
    includeUsage: isObject(fields.stream_options) && fields.stream_options.include_usage === true,
    ...answerLength(fields, length, random),
  };
}

function parseObject(body: Buffer): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch (error) {
    // The shape in which vLLM reports what its JSON parser says.
    const reason = errorMessage(error);
    const context = `{'error': '${reason}'}`;
    const message = `[{'type': 'json_invalid', 'loc': ('body',), 'msg': 'JSON decode error', 'ctx': ${context}}]`;
    throw new RefusedRequest(400, 'Bad Request', message);
  }
  if (!isObject(value)) throw new RefusedRequest(400, 'Bad Request', 'body: Input should be a valid dictionary');
  return value;
}

/** Role, newline, content, newline for each message, then the opening of the answer, so that answers extend prompts. */
function renderChat(fields: Record<string, unknown>): Buffer {
  if (!Array.isArray(fields.messages) || fields.messages.length === 0) throw missingField('messages');
  const tools = fields.tools === undefined ? '' : `${JSON.stringify(fields.tools)}\n`;
  const messages = fields.messages.map((message: unknown) => {
    if (!isObject(message) || typeof message.role !== 'string') throw missingField('messages.role');
    return `${message.role}\n${contentText(message.content)}\n`;
  });
  return Buffer.from(`${tools}${messages.join('')}assistant\n`);
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? '' : JSON.stringify(content);
  return content
    .map((part: unknown) => (isObject(part) && typeof part.text === 'string' ? part.text : JSON.stringify(part)))
    .join('');
}

/** A string, one string in a list, token ids, or one list of token ids; a token id is one token of four bytes. */
function renderPrompt(prompt: unknown): Buffer {
  if (typeof prompt === 'string') return Buffer.from(prompt);
  if (Array.isArray(prompt) && prompt.length > 0) {
    if (prompt.every((item) => Number.isInteger(item))) {
      return Buffer.from(Uint32Array.from(prompt as number[]).buffer);
    }
    if (prompt.length === 1) return renderPrompt(prompt[0]);
    throw new RefusedRequest(400, 'BadRequestError', 'prompt: the simulated server takes one prompt a request');
  }
  throw missingField('prompt');
}

function answerLength(
  fields: Record<string, unknown>,
  length: AnswerLength,
  random: () => number,
): { outputTokens: number; finishReason: FinishReason } {
  const limit = tokenCount(fields, 'max_completion_tokens') ?? tokenCount(fields, 'max_tokens');
  const least = tokenCount(fields, 'min_tokens') ?? 1;
  const drawn = Math.max(least, length.min + Math.floor(random() * (length.max - length.min + 1)));
  if (limit === undefined) return { outputTokens: drawn, finishReason: 'stop' };
  if (fields.ignore_eos === true || limit <= drawn) return { outputTokens: limit, finishReason: 'length' };
  return { outputTokens: drawn, finishReason: 'stop' };
}

function tokenCount(fields: Record<string, unknown>, name: string): number | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= OUTPUT_TOKENS_MAX) return value;
  throw new RefusedRequest(400, 'BadRequestError', `${name} must be an integer from 1 to ${OUTPUT_TOKENS_MAX}`);
}

function missingField(name: string): RefusedRequest {
  return new RefusedRequest(
    400,
    'Bad Request',
    `[{'type': 'missing', 'loc': ('body', '${name}'), 'msg': 'Field required'}]`,
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
