import { AnswerForm, PromptKind } from '../core/types.js';
import type { Rejection } from '../scheduling/decision.js';
import { type DialectErrors, errorsOf } from './dialect-errors.js';
import { badRequest } from './rejections.js';

/** Way to read the body of one kind of request, and its answer. */
interface Reading {
  /** Kind of the prompt; undefined = the body is opaque: no model, no scan, no rewrite. */
  readonly prompt: PromptKind | undefined;
  /** Whether the body names a model, which may be changed on the way up and is changed back on the way down. */
  readonly namesModel: boolean;
  /** Whether a model that nobody changes is named all the same, for the metrics. */
  readonly tellsModel?: boolean | undefined;
  /** Form of the usage in the answer; undefined = the answer is not read. */
  readonly answer: AnswerForm | undefined;
  /** Whether the exchange is over when the request has its destination, without a response phase. */
  readonly skipsResponse: boolean;
  /**
   * The engine computes nothing: the body is read for its model alone, no prompt is charged or believed to be held, and
   * a body that cannot be read goes on as it is.
   */
  readonly countsOnly?: boolean | undefined;
  /** Answer to a body that cannot be understood. */
  readonly errors: DialectErrors;
}

/** A kind of request that a configured parser claims. */
export interface Dialect extends Reading {
  readonly parser: ParserName;
}

/** Finds the dialect of a path. */
export interface Dialects {
  /** The dialect of a path. A rejection when no parser claims the path, or when its parser does not support it. */
  find(path: string): Dialect | Rejection;
}

/** A suffix of paths and its dialect. */
interface Claim {
  readonly suffix: string;
  readonly reading: Reading;
  /** Place where the suffix must begin: anywhere, at a segment of the path, or at the start of the path. */
  readonly match: 'suffix' | 'segments' | 'whole path';
  /** Error text for a path that ends with the suffix but does not match. */
  readonly unsupported: string;
}

function read(prompt: PromptKind, answer: AnswerForm, errors: DialectErrors, namesModel = true): Reading {
  return { prompt, namesModel, answer, skipsResponse: false, errors };
}

function claim(suffix: string, reading: Reading): Claim {
  return { suffix, reading, match: 'suffix', unsupported: '' };
}

function openai(prompt: PromptKind, name: string, field: string, answer: AnswerForm = AnswerForm.usage): Reading {
  return read(prompt, answer, errorsOf.openai(name, field));
}

const CHAT = openai(PromptKind.chat, 'chat completions', 'valid messages');
const COMPLETIONS = openai(PromptKind.completions, 'completions', 'prompt');
/** The model of a counted message is its target model. */
const COUNT_TOKENS: Reading = {
  ...read(PromptKind.messages, AnswerForm.messages, errorsOf.anthropic),
  answer: undefined,
  skipsResponse: true,
  countsOnly: true,
};
const OPAQUE: Reading = {
  prompt: undefined,
  namesModel: false,
  answer: undefined,
  skipsResponse: false,
  errors: errorsOf.openai('', ''),
};

function anthropic(suffix: string, reading: Reading): Claim {
  return { suffix, reading, match: 'segments', unsupported: 'unsupported API endpoint' };
}

function vertex(method: string, prompt: PromptKind, name: string, field: string): Claim {
  const errors = errorsOf.vertex(`${method}Request`, errorsOf.openai(name, field));
  const reading = read(prompt, AnswerForm.vertex, errors, false);
  return claim(`PredictionService/${method}`, { ...reading, tellsModel: true });
}

/** llm-d-router's table: the path suffixes that each parser claims, and how their bodies are read. */
const CLAIMS = {
  'openai-parser': [
    claim('chat/completions', CHAT),
    claim('chat/completions/render', CHAT),
    claim('completions', COMPLETIONS),
    claim('completions/render', COMPLETIONS),
    claim('embeddings', openai(PromptKind.embeddings, 'embeddings', 'input')),
    claim('responses', openai(PromptKind.responses, 'responses', 'input', AnswerForm.responses)),
    claim('conversations', openai(PromptKind.conversations, 'conversations', 'items')),
    claim('images/generations', openai(PromptKind.images, 'images generations', 'prompt')),
  ],
  'anthropic-parser': [
    anthropic('messages', read(PromptKind.messages, AnswerForm.messages, errorsOf.anthropic)),
    anthropic('messages/count_tokens', COUNT_TOKENS),
  ],
  'vllmhttp-parser': [claim('inference/v1/generate', read(PromptKind.tokens, AnswerForm.usage, errorsOf.vllmHttp))],
  'sglanghttp-parser': [
    {
      suffix: 'generate',
      reading: read(PromptKind.sglang, AnswerForm.sglang, errorsOf.sglang, false),
      match: 'whole path',
      unsupported: 'unsupported path',
    },
  ],
  'vllmgrpc-parser': [
    claim(
      'vllm.grpc.engine.VllmEngine/Generate',
      read(PromptKind.engine, AnswerForm.engine, errorsOf.engine('GenerateRequest'), false),
    ),
    claim(
      'vllm.grpc.engine.VllmEngine/Embed',
      read(PromptKind.engineEmbed, AnswerForm.engineEmbed, errorsOf.engine('EmbedRequest'), false),
    ),
  ],
  'vertexai-parser': [
    vertex('ChatCompletions', PromptKind.vertexChat, 'chat completions', 'valid messages'),
    vertex('RawPredict', PromptKind.vertexResponses, 'responses', 'input'),
    vertex('StreamRawPredict', PromptKind.vertexResponses, 'responses', 'input'),
  ],
  'passthrough-parser': [],
} as const satisfies Record<string, readonly Claim[]>;

export type ParserName = keyof typeof CLAIMS;

/** Parsers of a configuration that names none: every HTTP API with a path of its own, and all other bodies unread. */
export const DEFAULT_PARSERS: readonly ParserName[] = [
  'openai-parser',
  'anthropic-parser',
  'vllmhttp-parser',
  'passthrough-parser',
];

/** Parsers of all paths whose bodies are read: what finds the model of a request before its pool is known. */
export const MODEL_PARSERS: readonly ParserName[] = (Object.keys(CLAIMS) as ParserName[]).filter(
  (parser) => CLAIMS[parser].length > 0,
);

/** Parsers of bodies that only gRPC carries. */
const GRPC_PARSERS: readonly string[] = ['vllmgrpc-parser', 'vertexai-parser'];

/** Parsers that can speak with model servers of an `appProtocol`, which is `http` or `kubernetes.io/h2c`. */
export function parsersFor(appProtocol: string, parsers: readonly string[]): readonly string[] {
  return appProtocol === 'http' ? parsers.filter((parser) => !GRPC_PARSERS.includes(parser)) : parsers;
}

/** Whether a plugin type is a parser that the request path knows. */
export function isParserName(type: string): type is ParserName {
  return Object.hasOwn(CLAIMS, type);
}

/**
 * Compiles a list of parsers. The longest claimed suffix wins. A parser without claims takes every other path and ends
 * the list. Without such a parser, an unclaimed path has no dialect.
 */
export function createDialects(parsers: readonly ParserName[]): Dialects {
  const claims: (Claim & { readonly dialect: Dialect })[] = [];
  let fallback: Dialect | undefined;
  for (const parser of new Set(parsers)) {
    if (CLAIMS[parser].length === 0) {
      fallback = { parser, ...OPAQUE };
      break;
    }
    for (const claimed of CLAIMS[parser]) claims.push({ ...claimed, dialect: { parser, ...claimed.reading } });
  }
  claims.sort((a, b) => b.suffix.length - a.suffix.length);
  const find = (path: string): Dialect | Rejection => {
    const plain = withoutQuery(path);
    for (const claimed of claims) {
      if (!plain.endsWith(claimed.suffix)) continue;
      return serves(claimed, plain) ? claimed.dialect : badRequest(`${claimed.unsupported}: ${path}`);
    }
    return fallback ?? badRequest(`no parser registered matching path suffix for: ${path}`);
  };
  // The paths of most requests are equal.
  let latest = '';
  let found = find(latest);
  return {
    find(path) {
      if (path !== latest) {
        found = find(path);
        latest = path;
      }
      return found;
    },
  };
}

function serves({ match, suffix }: Claim, path: string): boolean {
  const before = path.length - suffix.length;
  if (match === 'suffix' || before === 0) return true;
  if (path.charCodeAt(before - 1) !== 0x2f) return false;
  return match === 'segments' || before === 1;
}

/** The path without its query and without slashes at its end. */
function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  let end = query < 0 ? path.length : query;
  while (end > 0 && path.charCodeAt(end - 1) === 0x2f) end--;
  return path.slice(0, end);
}
